"""Branches whose ways differ in the stream of a launch alone: who takes one chooses the stream."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.objects import FunctionObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import alike

_STREAM = 3
"""The number of the stream in the configuration of a launch."""


def is_chosen_by_branch(transfer: Transfer, function: Function, one: Instruction) -> bool:
    """Whether a launch stands on one way of a branch, and the same launch with a stream on the other one."""
    if one[0] != op.LAUNCH or not _is_plain(transfer, function, one):
        return False
    controlled, homes = function.control.controlled_by, function.homes
    mine = dict(controlled[homes[one][0]])
    for other in function.by_opcode[op.LAUNCH]:
        if other is not one and other[5] > _STREAM and _but_for_stream(function, other) == _but_for_stream(function, one):
            theirs = dict(controlled[homes[other][0]])
            if any(branch in theirs and theirs[branch] != edge for branch, edge in mine.items()):
                return True
    return False


def _but_for_stream(function: Function, one: Instruction) -> tuple[object, ...]:
    """What a launch is of, with which arguments, on how large a grid."""
    config = one[6 : 6 + min(one[5], _STREAM - 1)]
    given = (*config, *one[6 + one[5] :])
    return function.dotted(one[3]), *(alike(function, register) for register in given)


def _is_plain(transfer: Transfer, function: Function, one: Instruction) -> bool:
    """Whether a launch is of a kernel at hand that is no template: nothing but its arguments tells it from another one."""
    held = [value for value in transfer.values(function, one[3]) if isinstance(value, FunctionObject)]
    return len(held) == 1 and not held[0].function.code.template
