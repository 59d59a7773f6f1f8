"""Whether what a backward pass starts from was moved to the host before: ``loss.cpu()``, through the functions that give it back."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.waits.origins import TENSOR

_MOST = 200
"""Registers that are looked at for one."""
_VIEWS = ("view", "same")


class Part(NamedTuple):
    """A register, and the places in displays that lead from what it holds to the value: the first place is the outermost."""

    function: Function
    register: int
    places: tuple[int, ...]


def moved_to_host(graph: CallGraph, function: Function, register: int) -> list[tuple[Function, int]]:
    """The registers that hold a value before it is copied to the host; empty unless it is, whichever way it comes."""
    found: list[tuple[Function, int]] = []
    start = Part(function, register, ())
    seen = {start}
    waiting = [start]
    while waiting:
        part = waiting.pop()
        one = part.function.definitions[part.register] if part.register >= 0 else None
        if one is None or len(seen) > _MOST:
            return []
        if not part.places and _moves(graph, part.function, one):
            found.append((part.function, one[3]))
            continue
        behind = before(graph, part, one)
        if not behind:
            return []
        waiting += [each for each in behind if each not in seen]
        seen.update(behind)
    return found


def _moves(graph: CallGraph, function: Function, one: Instruction) -> bool:
    """Whether an instruction copies a tensor, and nothing but the host is where it may copy it to."""
    if one[0] != op.INVOKE:
        return False
    spaces = {value.space for value in graph.facts.values(function, one[2]).values if isinstance(value, Memory)}
    return spaces == {"host"} and any(row is not None and row.effect == "transfer" for row in rows_of(graph, function, one))


def rows_of(graph: CallGraph, function: Function, one: Instruction) -> list[Row | None]:
    """What a method of a tensor does; of an unknown value, too: a backward pass starts from what it gives."""
    calls = graph.of_call(function, one)
    if calls.libraries or any(edge.is_followed for edge in calls.edges):
        return [call.row for call in calls.libraries]
    return [graph.facts.models.method(TENSOR, function.text(one[4]), ".")]


def before(graph: CallGraph, part: Part, one: Instruction) -> list[Part]:
    """Where the value of a part was right before an instruction; empty where nothing says so."""
    function, _, places = part
    if one[0] in (op.PHI, op.COPY):
        return [Part(function, each, places) for each in op.reads(one)]
    if one[0] == op.UNPACK and one[6] == op.NONE:
        return [Part(function, one[3], (one[4], *places))]
    if one[0] == op.ITEM and isinstance(place := function.constant(one[4]), int):
        return [Part(function, one[3], (place, *places))]
    if one[0] == op.BUILD and places and function.unit.ir.constants[one[3]] == "tuple" and 0 <= places[0] < len(one) - 4:
        return [Part(function, one[4 + places[0]], places[1:])]
    return _before_call(graph, part, one) if one[0] in (op.CALL, op.INVOKE) else []


def _before_call(graph: CallGraph, part: Part, one: Instruction) -> list[Part]:
    function, _, places = part
    calls = graph.of_call(function, one)
    callees = [edge.callee for edge in calls.edges if edge.is_followed]
    if callees and not calls.libraries:
        return [Part(callee, end[2], places) for callee in callees for end in callee.by_opcode[op.RETURN]]
    if one[0] == op.INVOKE and not callees and all(row is not None and row.effect in _VIEWS for row in rows_of(graph, function, one)):
        return [Part(function, one[3], places)]
    return []
