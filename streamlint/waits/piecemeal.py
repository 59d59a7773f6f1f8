"""Waits of a loop inside of the round: it reads part for part of a tensor, or a number of one weight after the other, which one read behind
or before that loop would give at once."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.facts.repetition.loops import Body
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.support.records import replace
from streamlint.waits.operands import taken_from
from streamlint.waits.quiet import Quiet
from streamlint.waits.regions import ROWS, serves, trains
from streamlint.waits.uses import Uses
from streamlint.waits.wait import Wait


class Piecemeal:
    """Answers whether one read would do for all rounds of a loop inside of the round."""

    def __init__(self, hot: HotRegions, graph: CallGraph, quiet: Quiet, uses: Uses, all_loops: bool) -> None:
        self.hot = hot
        self.graph = graph
        self.quiet = quiet
        self.uses = uses
        self.all_loops = all_loops

    def is_part_by_part(self, wait: Wait, region: Region) -> bool:
        """Whether a loop in the round reads one part of a tensor after the other, which one read would give at once."""
        body = self.hot.body(wait.function)
        if region.function is not wait.function:
            return False
        made = body.function.definitions[wait.value] if wait.value >= 0 else None
        sides = [body.function.definitions[side] for side in made[4:6]] if made is not None and made[0] == op.COMPARE else [made]
        parts = [part for one in sides if one is not None for part in self._parts(body.function, one, not trains(region))]
        own = region.loop if region.does != ROWS else None
        around = [loop.body for loop in body.graph.loops if body.home[wait.instruction] in loop.body and loop is not own]
        return any(
            self._is_of_device(body.function, whole)
            and self._is_outside(body, blocks, whole)
            and (serves(region) or self._queues(body, blocks))
            for blocks in around
            for one, whole in parts
            if body.home[one] in blocks
        )

    def _parts(self, function: Function, one: Instruction, deeply: bool) -> Iterator[tuple[Instruction, int]]:
        """What takes a part out of something that a register holds; ``deeply``: also rows, and parts of parts."""
        while one[0] == op.ITEM or (deeply and one[0] in (op.NEXT, op.UNPACK)):
            whole = taken_from(function, one)
            inner = function.definitions[whole] if whole is not None and whole >= 0 else None
            if whole is None or inner is None:
                return
            yield one, whole
            if not deeply:
                return
            one = inner

    def is_one_by_one(self, wait: Wait, region: Region) -> bool:
        """Whether a loop in the round reads a number of each weight that it does not need itself: ``total += weight.grad.norm().item()``.

        One read behind the loop would give whoever needs the sum as much.
        """
        chain = region.chain()
        targets = [*(one.call for one in chain[1:] if one.call is not None), wait.instruction]
        for index in reversed(range(len(chain))):
            one, body = chain[index], self.hot.body(chain[index].function)
            around = body.graph.innermost[body.home[targets[index]]]
            if around == NOBODY:
                continue
            loop = body.graph.loops[around]
            if loop is one.loop or not self._queues(body, loop.body):
                return False
            inner = replace(one, blocks=one.blocks & loop.body, loop=loop, caller=None, call=None, row=None)
            for below in chain[index + 1 :]:
                inner = replace(below, caller=inner)
            return self.uses.is_avoidable(wait, inner, self.all_loops)
        return False

    def _queues(self, body: Body, blocks: frozenset[int]) -> bool:
        """Whether something in a loop queues work, with all loops may do so: else only its first read waits, as one read of all would."""
        if not self.all_loops:
            calls = (call for call in self.graph.calls(body.function).libraries if call.row is not None and call.row.effect == "compute")
            work = [*(call.instruction for call in calls), *body.function.by_opcode[op.BINARY], *body.function.by_opcode[op.INPLACE]]
            return any(body.home[one] in blocks and self._is_of_device(body.function, one[2]) for one in work)
        ones = (one for block in blocks for one in body.function.code.blocks[block])
        return any(self.quiet.queues(body.function, one) or self.quiet.entered(body.function, one) for one in ones)

    def _is_of_device(self, function: Function, register: int) -> bool:
        return any(isinstance(value, Memory) and value.space == "device" for value in self.hot.facts.values(function, register).values)

    def _is_outside(self, body: Body, blocks: frozenset[int], register: int) -> bool:
        """Whether what a register holds is there before a loop, and the loop puts nothing into it."""
        made = body.function.definitions[register]
        puts = (one for one in body.function.by_opcode[op.SET_ITEM] if one[2] == register)
        return made is not None and body.home[made] not in blocks and not any(body.home[one] in blocks for one in puts)
