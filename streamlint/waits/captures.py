"""Rounds that warm up for a capture: what they run is captured behind them, and a capture refuses what waits (SL013 reports it there)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from streamlint.facts.code.functions import Function
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import until


def warms_up(hot: HotRegions, region: Region) -> bool:
    """Whether a capture behind the loop of a region, in the same function, runs what the loop runs."""
    chain = region.chain()
    first, loop = chain[0], chain[0].loop
    if loop is None or len(chain) < 2 or not first.function.by_opcode[op.ENTER]:
        return False
    function, body = first.function, hot.body(first.function)
    calls = hot.graph.calls(function)
    begun = {call.instruction for call in calls.libraries if call.row is not None and call.row.effect == "capture"}
    for scope in function.by_opcode[op.ENTER]:
        if function.definitions[scope[3]] not in begun or not body.graph.dominates(loop.header, body.home[scope]):
            continue
        inside = set(_within(function, body.home[scope], scope, body.graph.successors))
        if any(edge.callee is chain[1].function and edge.instruction in inside for edge in calls.edges):
            return True
    return False


def _within(function: Function, block: int, scope: Instruction, successors: Sequence[Sequence[int]]) -> Iterator[Instruction]:
    """The instructions from the head of a ``with`` statement to its end."""
    start = block, function.code.blocks[block].index(scope) + 1
    return until(function.code, start, lambda one: one[0] == op.EXIT and one[3] == scope[3], successors)
