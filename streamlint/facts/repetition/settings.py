"""Switches of an object that its methods turn on or off before they come to a loop: ``self.is_training = True``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.loops import Body
from streamlint.facts.values.flags import Flag, is_own
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_MOST_CALLERS = 4
"""Methods that call one another on the way to a loop."""


class Bodies(Protocol):
    """The call graph of a program, and the control flow of its functions."""

    graph: CallGraph

    def body(self, function: Function) -> Body:
        """The control flow of a function."""


def set_before(bodies: Bodies, function: Function, place: Instruction, depth: int = _MOST_CALLERS) -> dict[Flag, bool | str]:
    """The switches of its receiver whose setting is known where a method comes to an instruction, by all methods that call it."""
    if function.owner is None or not function.has_receiver or depth == 0 or not _has_switches(bodies, function.owner):
        return {}
    found: dict[Flag, bool | str] | None = None
    for caller, call in _callers(bodies, function):
        if call[0] != op.INVOKE or not is_own(caller, call[3]):
            return _own(bodies, function, place)
        before = set_before(bodies, caller, call, depth - 1)
        found = before if found is None else {name: on for name, on in found.items() if before.get(name) is on}
    return {**(found or {}), **_own(bodies, function, place)}


def _callers(bodies: Bodies, function: Function) -> Iterator[tuple[Function, Instruction]]:
    """The calls that enter a function, those that are no method's of the same receiver first."""
    places = [one for one in bodies.graph.facts.call_places(function) if one[0] is not function and one[1][0] in (op.CALL, op.INVOKE)]
    for caller, call in sorted(places, key=lambda one: one[1][0] == op.INVOKE and is_own(one[0], one[1][3])):
        calls, is_all = bodies.graph.meant(caller, [call])
        if not is_all or any(edge.callee is function for edge in calls.edges):
            yield caller, call


def _has_switches(bodies: Bodies, owner: ClassInfo) -> bool:
    """Whether a method of a class, or of one that it is mixed into, sets an attribute to true or false."""
    hierarchy = bodies.graph.facts.hierarchy
    for one in dict.fromkeys(each for below in hierarchy.cone(owner) or [owner] for each in hierarchy.order(below)):
        for store in (store for stores in one.own_stores.values() for store in stores):
            value = store.function.definitions[store.value] if store.function.code.name != "__init__" and store.value >= 0 else None
            if value is not None and value[0] == op.CONST and isinstance(store.function.unit.ir.constants[value[3]], bool):
                return True
    return False


def _own(bodies: Bodies, function: Function, place: Instruction) -> dict[Flag, bool | str]:
    """What a method itself sets once, and before it comes to an instruction."""
    stored: dict[str, list[Instruction]] = {}
    for one in function.by_opcode[op.SET_ATTR]:
        if is_own(function, one[2]):
            stored.setdefault(function.text(one[3]), []).append(one)
    found: dict[Flag, bool | str] = {}
    for name, stores in stored.items():
        value = function.definitions[stores[0][4]]
        constant = function.unit.ir.constants[value[3]] if value is not None and value[0] == op.CONST else None
        if len(stores) == 1 and isinstance(constant, bool) and _is_before(bodies.body(function), stores[0], place):
            found[name] = constant
    return found


def _is_before(body: Body, one: Instruction, other: Instruction) -> bool:
    """Whether an instruction has run wherever another one runs."""
    block, last = body.home[one], body.home[other]
    if block != last:
        return body.graph.dominates(block, last)
    inside = body.function.code.blocks[block]
    return inside.index(one) < inside.index(other)
