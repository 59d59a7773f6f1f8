"""Rounds that take long by what they do on the host, so that a wait for the device adds nothing: they write a whole file, or sleep."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph, LibraryCall
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop

_DEEPEST = 4
_SECONDS = 0.01


class LongRounds:
    """Answers for the loops of a program."""

    def __init__(self, graph: CallGraph) -> None:
        self.graph = graph
        self._always: dict[Function, bool] = {}

    def take_long(self, function: Function, loop: Loop) -> bool:
        """Whether each round of a loop writes a file or sleeps."""
        return self._has_long(function, function.control.every_round(loop), _DEEPEST)

    def _has_long(self, function: Function, blocks: Collection[int], depth: int) -> bool:
        calls, homes = self.graph.calls(function), function.blocks
        if any(homes.get(call.instruction) in blocks and self._is_long(function, call) for call in calls.libraries):
            return True
        entered: dict[Instruction, list[Function]] = defaultdict(list)
        for edge in calls.edges if depth else ():
            if homes.get(edge.instruction) in blocks:
                entered[edge.instruction] += [edge.callee] if edge.is_direct else []
        return any(each and all(self._is_always(callee, depth - 1) for callee in each) for each in entered.values())

    def _is_always(self, function: Function, depth: int) -> bool:
        if function not in self._always:
            self._always[function] = False  # where it calls itself
            control = function.control
            blocks = {block for block in control.order if control.post_dominates(block, 0)}
            self._always[function] = not function.is_generator and self._has_long(function, blocks, depth)
        return self._always[function]

    def _is_long(self, function: Function, call: LibraryCall) -> bool:
        if call.row is None or not call.row.get("sleeps"):
            return call.name in self.graph.facts.models.marked("writes-files")
        given = call.instruction[6 if call.instruction[0] == op.INVOKE else 5 :]
        one = function.definitions[given[0]] if given and given[0] >= 0 else None
        seconds = function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CONST else _SECONDS
        return not isinstance(seconds, (int, float)) or seconds >= _SECONDS
