"""Closures that call what they were made for, as decorators make them: which function a call of one runs."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import BoundMethod, FunctionObject, Object, Site
from streamlint.facts.graph.facts import Facts
from streamlint.facts.values.frames import Frame
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def is_captured(function: Function, call: Instruction) -> bool:
    """Whether a call calls what a variable of a function around holds."""
    made = function.definitions[call[3]] if call[0] == op.CALL and call[3] >= 0 else None
    return made is not None and made[0] == op.LOAD and function.unit.ir.constants[made[3]][1] != function.code.number


def captured(facts: Facts, place: Site, closure: Function, cell: tuple[str, int]) -> list[Object]:
    """What a variable of a function around holds in the closures that a call may call."""
    frames = _frames(facts, place, closure)
    return list(dict.fromkeys(value for frame in frames for value in facts.captured(frame, *cell)))


def _frames(facts: Facts, place: Site, closure: Function) -> Iterator[Frame]:
    """Where the closures were made that a call may call."""
    callees = facts.callees(place.function, place.instruction) if place.instruction[0] in (op.CALL, op.INVOKE) else []
    for value in callees:
        made = value.method if isinstance(value, BoundMethod) else value
        if isinstance(made, FunctionObject) and made.function is closure and made.frame is not None:
            yield made.frame


def may_be_made_for(facts: Facts, place: Site, closure: Function, target: Function) -> bool:
    """Whether the closure that a call calls may be the one that was made for a function: nothing shows that it was made for another."""
    made = [frame.arguments for frame in _frames(facts, place, closure)]
    held_values = [[value for node in given.all for value in node.values] for given in made if given is not None]
    if not held_values or len(held_values) < len(made):
        return True
    return any(isinstance(value, FunctionObject) and value.function is target for values in held_values for value in values)
