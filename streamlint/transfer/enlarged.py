"""Buffers that are asked to hold more elements than before, for which they take other memory: ``x.resize_(n)``."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.origins import Origins
from streamlint.transfer.sizes import Sizes
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import alike

_LARGER = {">": True, ">=": True, "<": False, "<=": False}
_ASKING = frozenset({op.INVOKE, op.ATTR, op.ITEM})


class Enlarging:
    """Compares sizes that are asked for with those that buffers were made with."""

    def __init__(self, transfer: Transfer) -> None:
        self.origins = transfer.one_of(Origins, transfer)
        self.sizes = Sizes(self.origins)

    def enlarges(self, call: ModelledCall) -> bool:
        """Whether a call makes a buffer larger: by the numbers of elements, or by a condition that has found it too small."""
        asked, of = call.all("new_shape"), call.one("of", call.receiver)
        if not asked or of is None:
            return False
        wanted = self.sizes.count(call.function, asked)
        before = [None if origin.views else self.sizes.count_at(origin) for origin in self.origins.of(call.function, of)]
        known = [each for each in before if each is not None]
        if wanted is not None and known and len(known) == len(before):
            return wanted > max(known)
        return any(self._is_too_small(call.function, of, *edge) for edge in _edges(call.function, call.instruction))

    def _is_too_small(self, function: Function, buffer: int, block: int, after: int) -> bool:
        """Whether a branch is taken this way only where something is larger than what a buffer says of itself."""
        end = function.code.blocks[block][-1]
        register, turned = unnegated(function, end[2]) if end[0] == op.BRANCH else (op.NONE, False)
        one = function.definitions[register] if register >= 0 else None
        is_left_larger = _LARGER.get(function.text(one[3])) if one is not None and one[0] == op.COMPARE else None
        if one is None or is_left_larger is None:
            return False
        if (end[3] == after) == turned:
            is_left_larger = not is_left_larger
        larger, smaller = (one[4], one[5]) if is_left_larger else (one[5], one[4])
        return _asks(function, smaller, buffer) and not _asks(function, larger, buffer)


def _edges(function: Function, one: Instruction) -> Iterator[tuple[int, int]]:
    """The edges that decide whether an instruction runs."""
    yield from function.control.controlled_by[function.blocks[one]]


def _asks(function: Function, register: int, buffer: int) -> bool:
    """Whether a number is one that a buffer says of itself: ``x.numel()``, ``x.shape[0]``, ``x.size(0)``."""
    same = alike(function, buffer)
    makers = behind(function, [register], lambda one: one[3:4] if one[0] in _ASKING else ())
    return any(one[0] in _ASKING and alike(function, one[3]) == same for one in makers)
