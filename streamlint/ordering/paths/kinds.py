"""What a path knows of questions for the kind of a value: ``torch.is_tensor(x)``, ``isinstance(x, torch.Tensor)``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Memory, Object, are_plain
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.transfer.guards import Guards
from streamlint.transfer.transfer import Transfer
from streamlint.waits.operands import argument_registers, operand_of
from streamlint.waits.origins import TENSOR

if TYPE_CHECKING:
    from streamlint.ordering.paths.conditions import Frame

_DEEPEST = 6


class Kinds:
    """The answers to such questions on paths."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.guards = transfer.one_of(Guards, transfer)
        self._names = transfer.names({"none"}, _asks_for_tensor)

    def truth(self, frame: Frame, one: Instruction) -> bool | None:
        """Whether what a function is given on a path is of the kind that a call asks for; None for other calls, and where neither is
        known. Of an object of a class of the program nothing is: it may be below ``torch.Tensor``."""
        tested = self._tested(frame.function, one)
        values = self._values(frame, tested[0]) if tested is not None else []
        if tested is None or not values:
            return None
        if all(isinstance(value, Memory) and TENSOR in self.transfer.facts.models.lineage(value.type) for value in values):
            return tested[1]
        if are_plain(values) and tested[1]:
            return False
        return None

    def _tested(self, function: Function, one: Instruction) -> tuple[int, bool] | None:
        """The register that a call asks of, and what it answers for a tensor."""
        if (tensor := self.guards.asks_for_tensor(function, one[2])) != op.NONE:
            return tensor, True
        if (of_host := self.guards.asks_for_type(function, one[2])[0]) != op.NONE:
            return of_host, False
        given = argument_registers(function, one)
        if last_name(function, one) not in self._names or len(given) != 1 or given[0][0] is not None:
            return None
        rows = [call.row for call in self.transfer.libraries(function, one)]
        return (given[0][1], True) if rows and all(row is not None and _asks_for_tensor(row) for row in rows) else None

    def _values(self, frame: Frame, register: int) -> list[Object]:
        """What a register holds, over the arguments of the calls on the path."""
        for _ in range(_DEEPEST):
            function = frame.function
            definition = function.definitions[register] if register >= 0 else None
            if definition is None or definition[0] != op.PARAM or frame.caller is None or frame.call is None:
                break
            given = (
                operand_of(frame.caller.function, frame.call, function, definition[3]) if frame.call[0] in (op.CALL, op.INVOKE) else None
            )
            if given is None or given < 0:
                return []
            frame, register = frame.caller, given
        return list(self.transfer.values(frame.function, register)) if register >= 0 else []


def _asks_for_tensor(row: Row) -> bool:
    return bool(row.get("asks_for_tensor"))
