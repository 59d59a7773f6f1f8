"""Branches whose ways differ in the stream of a launch, a copy or a memset alone: who takes one chooses the stream."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import FunctionObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.null_stream.found_null import ways
from streamlint.transfer.launch_rows import GIVEN, Queued
from streamlint.transfer.launches import Launches
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import alike

_STREAM = 3
"""The number of the stream in the configuration of a launch."""


def is_chosen_by_branch(launches: Launches, function: Function, one: Instruction, work: Queued) -> bool:
    """Whether work stands on one way of a branch, and the same work with a stream on the other one."""
    if work.kind in ("copy", "memset"):
        mine = _moved(function, work)
        others = (
            (other, each)
            for other, each in launches.of(function)
            if each.how == GIVEN and each.kind == work.kind and _moved(function, each) == mine
        )
        return any(_is_on_other_way(function, one, other) for other, _ in others)
    if one[0] != op.LAUNCH or not _is_plain(launches.transfer, function, one):
        return False
    return any(
        other[5] > _STREAM and _but_for_stream(function, other) == _but_for_stream(function, one) and _is_on_other_way(function, one, other)
        for other in function.by_opcode[op.LAUNCH]
    )


def _is_on_other_way(function: Function, one: Instruction, other: Instruction) -> bool:
    """Whether a branch leads to one of two instructions on one way, and to the other one on the other."""
    mine, theirs = ways(function, one), ways(function, other)
    return any(branch in theirs and theirs[branch].isdisjoint(edges) for branch, edges in mine.items())


def _moved(function: Function, work: Queued) -> tuple[object, ...]:
    """The memory that a copy or a memset reads and writes."""
    sides = (tuple(alike(function, behind_copies(function, each)) for each in side) for side in (work.reads, work.writes))
    return tuple(sides)


def _but_for_stream(function: Function, one: Instruction) -> tuple[object, ...]:
    """What a launch is of, with which arguments, on how large a grid."""
    config = one[6 : 6 + min(one[5], _STREAM - 1)]
    given = (*config, *one[6 + one[5] :])
    return function.dotted(one[3]), *(alike(function, register) for register in given)


def _is_plain(transfer: Transfer, function: Function, one: Instruction) -> bool:
    """Whether a launch is of a known kernel that is no template: nothing but its arguments distinguishes it from another one."""
    held = [value for value in transfer.values(function, one[3]) if isinstance(value, FunctionObject)]
    return len(held) == 1 and not held[0].function.code.template
