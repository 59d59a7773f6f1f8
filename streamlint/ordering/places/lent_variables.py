"""C++: static variables to which functions give references, through which others set them: ``current() = stream``."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import operand_of


class LentVariables:
    """Knows by its function whether such a variable is set elsewhere, so that what it begins with says little of it."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def is_given(self, function: Function, one: Instruction) -> bool:
        """Whether a call gives a variable that is set elsewhere."""
        if not function.is_cpp or one[0] not in (op.CALL, op.INVOKE):
            return False
        callees = self.transfer.facts.callee_functions(function, one)
        return bool(callees) and all(_gives_static(callee) and self._is_set(callee) for callee in callees)

    @memoized
    def _is_set(self, callee: Function) -> bool:
        return any(self._sets(caller, call, use) for caller, call in self.transfer.callers(callee) for use in caller.uses[call[2]])

    def _sets(self, function: Function, call: Instruction, use: Instruction) -> bool:
        """Whether a use of the reference that a call gives sets the variable."""
        if use[0] == op.SET_DEREF:
            return use[2] == call[2]
        if use[0] == op.BIND:
            return any(one != use and one[2] == use[2] for one in function.by_opcode[op.BIND])
        if use[0] not in (op.CALL, op.INVOKE):
            return False
        entered = (edge.callee for edge in self.transfer.edges(function, use) if edge.is_followed)
        outs = ((callee, one[2]) for callee in entered for one in callee.by_opcode[op.OUT])
        is_out = any(operand_of(function, use, callee, index) == call[2] for callee, index in outs)
        return is_out or any(each.row.effect == "swap" for each in self.transfer.modelled(function, use))


def _gives_static(callee: Function) -> bool:
    """Whether a function gives a reference to one of its static variables."""
    kind = callee.code.returns
    if not (isinstance(kind, tuple) and kind[3] and callee.code.statics):
        return False
    begun = {behind_copies(callee, register) for register in callee.code.statics}
    return all(behind_copies(callee, end[2]) in begun for end in callee.by_opcode[op.RETURN])
