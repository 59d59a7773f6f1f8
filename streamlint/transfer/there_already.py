"""Uploads of what an earlier call has brought to the same device: they copy nothing. Devices are the same by what names them."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.modelled import ModelledCall, operands_of
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike, conditions

_SAME = {op.COPY: 3, op.CAST: 4, op.REBIND: 5}
_COMPUTING = frozenset({op.BINARY, op.UNARY, op.INPLACE})
_MOST = 60


class ThereAlready:
    """Goes back over what a tensor was computed from."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def is_there(self, call: ModelledCall, register: int, passed: tuple[Site, ...]) -> bool:
        """Whether an upload, or the call of the helper that makes it where it is needed, is given what was brought to its device before."""
        device = next(iter(call.all("device")), op.NONE)
        function, one = call.function, call.instruction
        if device < 0 or function.is_cpp:
            return False
        if len(passed) == 1 and self._asks(function, one, register, device):
            outer, entering = passed[0]
            tensor, wanted = (self._given(function, each, passed[0]) for each in (register, device))
            return min(tensor, wanted) >= 0 and self._comes_from(outer, tensor, alike(outer, wanted), entering, function, set())
        return not passed and self._comes_from(function, register, alike(function, device), one, None, set())

    def _asks(self, function: Function, one: Instruction, register: int, device: int) -> bool:
        """Whether a copy stands behind the question whether the tensor is on another device: where it is not made, it is there."""
        for condition, holds in conditions(function, function.blocks[one]):
            asked = function.definitions[condition] if condition >= 0 else None
            if asked is None or asked[0] != op.COMPARE or (function.text(asked[3]) == "!=") != holds:
                continue
            made = function.definitions[asked[4]]
            if made is not None and made[0] == op.ATTR and made[3] == register and asked[5] == device:
                return function.text(made[4]) == "device"
        return False

    def _given(self, function: Function, register: int, site: Site) -> int:
        """What a call gives for a parameter; NONE where a register holds none."""
        one = function.definitions[register] if register >= 0 else None
        given = operand_of(*site, function, one[3]) if one is not None and one[0] == op.PARAM else None
        return op.NONE if given is None else given

    def _comes_from(
        self, function: Function, register: int, device: Key, last: Instruction, helper: Function | None, seen: set[int]
    ) -> bool:
        """Whether a value was brought to a device, or computed from what was, whichever way it came."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or register in seen or len(seen) > _MOST:
            return False
        seen.add(register)
        if one[0] == op.PHI:
            return all(self._comes_from(function, part, device, last, helper, seen) for part in one[3:] if part not in seen)
        if one[0] in _SAME:
            return self._comes_from(function, one[_SAME[one[0]]], device, last, helper, seen)
        if one[0] in CALLING and one is not last:
            brought = self._brings(function, one, device, helper)
            if brought is not None:
                return brought
        elif one[0] not in _COMPUTING:
            return False
        given = operands_of(function, one) if one[0] in CALLING else op.reads(one)
        return one is not last and any(self._comes_from(function, each, device, last, helper, seen) for each in given)

    def _brings(self, function: Function, one: Instruction, device: Key, helper: Function | None) -> bool | None:
        """Whether a call brings what it is given to the device; None of one that may compute with it, where it is."""
        if helper is not None and any(edge.callee is helper for edge in self.transfer.edges(function, one)):
            return any(alike(function, each) == device for each in operands_of(function, one))
        calls = list(self.transfer.modelled(function, one))
        moves = [call for call in calls if call.row.effect == "transfer"]
        if any(call.all("device") or call.row.get("to") != "argument" for call in moves):
            return any(alike(function, each) == device for call in moves for each in call.all("device"))
        return False if any(call.row.get("host") or call.row.effect in ("factory", "load") for call in calls) else None
