"""The functions that may come to a call of a round: from those that make one, over their callers."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.facts.rounds import Rounds
from streamlint.ir import Instruction


def reaching(graph: CallGraph, rounds: Rounds, functions: Iterable[Function]) -> frozenset[Function]:
    """The functions from which calls lead to a round's call. Callers are found by names and by what flows, and are then evaluated."""
    names = rounds.names
    named = {function: rounds.named(function) for function in functions if not names.isdisjoint(function.called_names)}
    for function, calls in named.items():
        graph.ask(function, calls)
    found = dict.fromkeys(function for function, calls in named.items() if rounds.is_among(function, calls))
    waiting = list(found)
    while waiting:
        function = waiting.pop()
        places: dict[Function, list[Instruction]] = {}
        for caller, call in graph.facts.call_places(function):
            if caller not in found:
                places.setdefault(caller, []).append(call)
        for caller, calls in places.items():
            if any(edge.callee is function and edge.is_followed for edge in graph.calls_at(caller, calls).edges):
                found[caller] = None
                waiting.append(caller)
    return frozenset(found)
