"""The functions that may come to a call of a round: from those that make one, over their callers."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph, Edge
from streamlint.facts.graph.wrapped import Wrapped
from streamlint.facts.repetition.rounds import Rounds
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def reaching(graph: CallGraph, rounds: Rounds, functions: Iterable[Function]) -> frozenset[Function]:
    """The functions from which calls lead to a round's call. Callers are found by names and by what flows, and are then evaluated."""
    named = rounds.candidates(functions)
    return above(graph, (function for function, calls in named.items() if rounds.among(function, calls)))


def above(graph: CallGraph, functions: Iterable[Function]) -> frozenset[Function]:
    """Some functions, and those from which calls lead to them."""
    found = dict.fromkeys(functions)
    waiting, wrapped = list(found), Wrapped(graph)
    while waiting:
        function = waiting.pop()
        places: dict[Function, list[Instruction]] = {}
        for caller, call in (*graph.facts.call_places(function), *graph.facts.resumed_places(function)):
            if caller not in found:
                places.setdefault(caller, []).append(call)
        for caller, calls in places.items():
            if not wrapped.passes_on(caller).isdisjoint(calls) or _enters(wrapped, caller, calls, function):
                found[caller] = None
                waiting.append(caller)
    return frozenset(found)


def _enters(wrapped: Wrapped, caller: Function, calls: list[Instruction], function: Function) -> bool:
    """Whether one of some calls enters a function, or a closure around it."""

    def leads(edge: Edge) -> bool:
        return edge.is_followed and (edge.callee is function or function in wrapped.meant(caller, edge.instruction, edge.callee))

    made, is_all = wrapped.graph.meant(caller, calls)
    if any(map(leads, made.edges)) or (not is_all and any(map(leads, wrapped.graph.calls_at(caller, calls).edges))):
        return True
    is_resumed = function.is_generator or any(one[0] == op.NEXT for one in calls)
    return is_resumed and any(edge.callee is function for edge in wrapped.graph.resumptions(caller))
