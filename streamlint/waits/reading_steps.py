"""Steps of an optimizer that are loops themselves: they call a closure at each point that they try, and read each time what it gives."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.hot import TRAINING, HotRegions, Region
from streamlint.ir import Instruction

_DEEPEST = 3
"""Calls from a loop to such a step."""


class ReadingSteps:
    """Finds such steps."""

    def __init__(self, hot: HotRegions) -> None:
        self.hot = hot
        self.rounds = hot.rounds

    def is_one(self, function: Function, one: Instruction) -> bool:
        """Whether a call steps so: the row of its round names the argument that the row of the call reads."""
        for step in self.rounds.of(function):
            row = self.hot.facts.models.call(step.name) if step.instruction == one and step.row.function is not None else None
            read = row.get("reads") if row is not None else None
            if isinstance(read, list | tuple) and step.row.function in read:
                return True
        return False

    def runs(self, region: Region) -> bool:
        """Whether a region is what such a step calls."""
        return region.caller is not None and region.call is not None and self.is_one(region.caller.function, region.call)

    def are_all(self, region: Region) -> bool:
        """Whether nothing else trains in a loop, and a region does not run in such a step itself: its rounds come once in many."""
        first = region.chain()[0]
        if first.loop is None or any(map(self.runs, region.chain())):
            return False
        home = self.hot.body(first.function).home
        return self._are_alone(first.function, [one for one in self._trained(first.function) if home[one] in first.loop.body], _DEEPEST)

    def _are_alone(self, function: Function, calls: list[Instruction], depth: int) -> bool:
        """Whether all that some calls do of training are such steps, and there are any."""
        return bool(calls) and all(self.is_one(function, one) or self._is_alone(function, one, depth) for one in calls)

    def _is_alone(self, function: Function, one: Instruction, depth: int) -> bool:
        if not depth or any(step.instruction == one for step in self.rounds.of(function)):
            return False
        callees = [edge.callee for edge in self.hot.graph.calls(function).edges if edge.instruction == one and edge.is_followed]
        return bool(callees) and all(self._are_alone(callee, self._trained(callee), depth - 1) for callee in callees)

    def _trained(self, function: Function) -> list[Instruction]:
        """The calls of a function that train."""
        return [one.instruction for one in self.hot.steps(function, {}) if one.does in TRAINING]
