"""The functions that may come to a call of a round: from those that make one, over their callers."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.call_graph import CallGraph
from streamlint.facts.functions import Function
from streamlint.facts.rounds import Rounds


def reaching(graph: CallGraph, rounds: Rounds, functions: Iterable[Function]) -> frozenset[Function]:
    """The functions from which calls lead to a round's call. Callers are found by names and by what flows, and are then evaluated."""
    names = rounds.names
    candidates = [function for function in functions if not names.isdisjoint(function.called_names)]
    graph.prepare(candidates)
    found = dict.fromkeys(function for function in candidates if rounds.of(function))
    waiting = list(found)
    while waiting:
        function = waiting.pop()
        for caller in dict.fromkeys(caller for caller, _ in graph.facts.call_places(function)):
            if caller not in found and any(edge.callee is function and not edge.is_elsewhere for edge in graph.calls(caller).edges):
                found[caller] = None
                waiting.append(caller)
    return frozenset(found)
