"""Functions of which the user declares that they wait for their stream: ``def finish(lane):  # streamlint: synchronizes``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.facts.graph.call_graph import Edge
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.transfer.actions import Action, Synchronized
from streamlint.transfer.modelled import operands_of, stream_held


def waited(facts: Facts, function: Function, one: Instruction, edges: Iterable[Edge]) -> Iterator[Action]:
    """The host waits for the streams and events that such a function is given, or holds as a method; where it is given none, nobody says
    which stream is its own, and it is taken to wait for all work."""
    name = _declared(facts, function, one, edges)
    if not name:
        return
    found = False
    for register in operands_of(function, one):
        values = list(facts.values(function, register).values) if register >= 0 else []
        held = [value for value in values if isinstance(value, LibraryObject) and value.kind in ("stream", "event")]
        if held:
            found = True
            library = held[0].type.partition(".")[0] if "." in held[0].type else ""
            is_event = any(value.kind == "event" for value in held)
            yield Synchronized(register if is_event else stream_held(function, register, values, library), name)
    if not found:
        yield Synchronized(None, name)


def _declared(facts: Facts, function: Function, one: Instruction, edges: Iterable[Edge]) -> str:
    """The name of the function that a call runs, if each that it may run is declared to wait."""
    callees = [edge.callee for edge in edges if edge.is_direct]
    if callees:
        return callees[0].code.name if all(map(facts.declarations.waits, callees)) else ""
    outside = facts.declarations.called(function, one) if function.is_cpp else None
    return outside.qualname if outside is not None and outside.waits else ""
