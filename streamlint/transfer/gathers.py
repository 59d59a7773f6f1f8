"""Elements that a tensor of indices picks: ``x[i]`` is a copy, where ``x[0]`` and ``x[1:]`` are views."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import Memory
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, Stream
from streamlint.transfer.work import Modelled, Worked
from streamlint.waits import indices
from streamlint.waits.operands import behind

_MAKING = frozenset({"compute", "transfer", "factory"})


def is_gather(facts: Facts, function: Function, one: Instruction, modelled: Modelled) -> bool:
    """Whether an instruction takes the elements that a tensor, a mask or a list of numbers tells, of whatever has these."""
    if one[0] != op.ITEM or function.is_cpp:
        return False
    return any(_picks(facts, function, part, modelled) for part in indices.parts_of(function, one[4]))


def gathered(one: Instruction) -> Worked:
    """The work of such an instruction: new memory."""
    return Worked(Stream(CURRENT), tuple(one[3:5]), (), "indexing", "", one[2])


def _picks(facts: Facts, function: Function, index: int, modelled: Modelled) -> bool:
    """Whether an index is a tensor of one dimension at least: an element of one, as a loop gives it, is a number."""
    made = function.definitions[index] if index >= 0 else None
    if made is None or made[0] in (op.NEXT, op.ITEM, op.CONST, op.SLICE):
        return False
    if made[0] == op.BUILD:
        return function.kind_built(made) == "list"
    if indices.is_mask(facts, function, index):
        return True
    return any(_makes_tensor(function, each, modelled) for each in behind(function, [index], _onward)) or (
        made[0] == op.PARAM and any(isinstance(value, Memory) for value in facts.values(function, index).values)
    )


def _onward(one: Instruction) -> Iterable[int]:
    """What a variable, or an operator, is given."""
    return op.reads(one) if one[0] in (op.PHI, op.COPY, op.BINARY) else ()


def _makes_tensor(function: Function, one: Instruction, modelled: Modelled) -> bool:
    """Whether a call gives a tensor, and no number of one: ``x.cuda()``, ``torch.randperm(n)``, not ``x.argmax()``."""
    if one[0] not in (op.CALL, op.INVOKE) or function.invokes(one, "summary"):
        return False
    return any(call.row.effect in _MAKING and call.row.get("type") for call in modelled(function, one))
