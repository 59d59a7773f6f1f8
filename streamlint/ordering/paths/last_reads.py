"""Whether a register is read behind an instruction, before it is made anew."""

from __future__ import annotations

from collections.abc import Sequence

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.liveness import spread
from streamlint.support.memo import memoized


class LastReads:
    """The registers that are read from a place on."""

    def is_read_behind(self, function: Function, one: Instruction, register: int) -> bool:
        """Whether an instruction behind another one may read a register that nothing has made anew meanwhile."""
        block, index = function.homes[one]
        for other in function.code.blocks[block][index + 1 :]:
            if register in op.reads(other):
                return True
            if op.DEFINES[other[0]] and other[2] == register:
                return False
        return any(self._read_from(function)[after] >> register & 1 for after in function.control.successors[block])

    @memoized
    def _read_from(self, function: Function) -> list[int]:
        """By block: the registers that are read from its beginning on, before they are made anew, as bits."""
        blocks = function.code.blocks
        made = [sum(1 << one[2] for one in code if op.DEFINES[one[0]]) for code in blocks]
        return spread(function, [_read_first(code) for code in blocks], made)


def _read_first(code: Sequence[Instruction]) -> int:
    """The registers that instructions read before one of them makes them anew, as bits."""
    found = made = 0
    for one in code:
        for register in op.reads(one):
            found |= 1 << register & ~made if register >= 0 else 0
        made |= 1 << one[2] if op.DEFINES[one[0]] else 0
    return found
