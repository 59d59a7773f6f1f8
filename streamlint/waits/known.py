"""What is known on the way to a wait: how the conditions come out that lead there."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.hot import HotRegions, Region
from streamlint.facts.instructions import unnegated
from streamlint.ir import opcodes as op
from streamlint.waits.steady import steadiness_of
from streamlint.waits.wait import Wait

Fact = tuple[object, ...]


class Known:
    """Answers for the waits of hot regions."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.steadiness = steadiness_of(hot)

    def at(self, wait: Wait, region: Region) -> dict[Fact, bool]:
        """The conditions under which a wait is reached: how they come out is known on the way to it."""
        function = wait.function
        body = self.hot.body(function)
        found: dict[Fact, bool] = {}
        seen: set[int] = set()
        waiting = [body.home[wait.instruction]]
        while waiting:
            edges = body.graph.controlled_by[waiting.pop()]
            if len(edges) != 1 or edges[0][0] in seen or (region.loop is not None and edges[0][0] == region.loop.header):
                continue
            seen.add(edges[0][0])
            found.update(self.of_edge(function, *edges[0]))
            waiting.append(edges[0][0])
        return found

    def of_edge(self, function: Function, before: int, after: int) -> list[tuple[Fact, bool]]:
        """What an edge says of a condition: of a register, and of an attribute of the receiver that rounds do not change."""
        end = function.code.blocks[before][-1]
        if end[0] != op.BRANCH or end[3] == end[4]:
            return []
        register, turned = unnegated(function, end[2])
        truth = (after == end[3]) != turned
        one = function.definitions[register]
        found: list[tuple[Fact, bool]] = [(("register", function, register), truth)]
        owner = function.method.owner if function.method is not None else None
        is_own = one is not None and one[0] == op.ATTR and owner is not None and function.is_parameter(one[3], 0)
        if is_own and one is not None and not self.steadiness.is_changed(function, one):
            found.append((("attribute", owner, function.text(one[4])), truth))
        return found
