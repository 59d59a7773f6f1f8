"""Whether control flow leads from one instruction of a function to another one, whatever is done in between."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir.graph import NOBODY


def leads_to(function: Function, first: Instruction, second: Instruction, without: int = NOBODY) -> bool:
    """Whether a path leads from behind one instruction to another one; not through a block, say the head of a loop, for another round."""
    (block, index), (other, place) = function.homes[first], function.homes[second]
    if block == other and index < place:
        return True
    return other in function.control.reach(function.control.successors[block], [without])
