"""Generators, as those see them who take their values: by a loop, a scope, ``next``, or a function such as ``enumerate``."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Instance
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import Flow, Tracked
from streamlint.ordering.places.places import ANY, Key, Place, register_place


def as_given(flow: Flow, generator: Function, caller: Function, call: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
    """What is tracked in a caller once a generator has given it a value, which stands in the register of the call that has run it."""
    if call[0] == op.NEXT or _is_scope(caller, call) or (call[0] == op.CALL and last_name(caller, call) == "next"):
        return tracked
    given = [held for held in tracked if held.place.root == ("register", call[2])]
    others = tracked.difference(given)
    arguments = iterated(flow.facts, caller, call, generator)
    if not arguments:
        return others | _elements(given, call[2])
    elements = frozenset(each for register in arguments for each in _elements(given, register))
    return others | (flow.after(caller, call, elements, 0) - elements)  # of the elements `enumerate` makes others


def iterated(facts: Facts, caller: Function, call: Instruction, generator: Function) -> list[int]:
    """The arguments of a call of which it takes the elements, by a generator that their class has as its ``__iter__``."""
    if call[0] != op.CALL or generator.code.name != "__iter__":
        return []
    return [register for register in call[5:] if register >= 0 and any(map(_is_object, facts.values(caller, register).values))]


def taken_of(function: Function, call: Instruction) -> tuple[Key, ...]:
    """The key of what a loop takes out of what a function gives that is no generator: an ``__iter__`` gives an iterable."""
    return (ANY,) if call[0] == op.NEXT and function.code.name == "__iter__" and not function.is_generator else ()


def _is_object(value: object) -> bool:
    return isinstance(value, Instance)


def _elements(given: Iterable[Tracked], register: int) -> frozenset[Tracked]:
    """What a register holds, as elements of what another one holds."""
    root = register_place(register).root
    return frozenset(held._replace(place=Place(root, (ANY, *held.place.path))) for held in given)


def _is_scope(function: Function, call: Instruction) -> bool:
    """Whether a call of a generator is that of a context manager: what it yields is what ``as`` names."""
    return any(use[0] == op.ENTER for use in function.uses[call[2]])
