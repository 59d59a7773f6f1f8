"""What others may do meanwhile: a thread that waits for another one goes on behind what that has done before."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.functions import Function
from streamlint.facts.objects import Container, LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.conditions import Frame
from streamlint.transfer.transfer import Transfer, last_name

_EFFECTS = frozenset({"block", "get"})
_CALLS = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT})
_GUARDS = ("Lock", "RLock", "Condition", "Semaphore")


class Meanwhile:
    """The waits of threads for one another."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._beside: dict[tuple[Function, Instruction, Function], bool] = {}
        self._waits: dict[tuple[Function, Instruction], bool] = {}

    def is_beside(self, frame: Frame) -> bool:
        """Whether a path is in a thread that a function of it has started."""
        while frame.caller is not None and frame.call is not None:
            key = frame.caller.function, frame.call, frame.function
            if key not in self._beside:
                edges = self.transfer.edges(*key[:2])
                self._beside[key] = any(edge.callee is frame.function and edge.is_elsewhere for edge in edges)
            if self._beside[key]:
                return True
            frame = frame.caller
        return False

    def waits(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction waits for another thread, which may have waited for the device before: a lock, a queue, a condition."""
        if one[0] not in _CALLS and one[0] != op.ENTER:
            return False
        key = (function, one)
        if key not in self._waits:
            self._waits[key] = self._is_lock(function, one) if one[0] == op.ENTER else self._is_wait(function, one)
        return self._waits[key]

    def _is_lock(self, function: Function, one: Instruction) -> bool:
        values = self.transfer.values(function, one[3])
        return any(isinstance(value, LibraryObject) and value.type.endswith(_GUARDS) for value in values)

    def _is_wait(self, function: Function, one: Instruction) -> bool:
        if one[0] == op.INVOKE and function.text(one[4]) == "get":  # lists have no such method, queues do
            values = self.transfer.values(function, one[3])
            return any(isinstance(value, Container) and value.kind == "list" for value in values) or self._is_modelled(function, one)
        if last_name(function, one) not in self._names or self.transfer.graph.joining.is_end(function, one):
            return False
        return self._is_modelled(function, one)

    def _is_modelled(self, function: Function, one: Instruction) -> bool:
        return any(call.row.effect in _EFFECTS for call in self.transfer.modelled(function, one))

    @cached_property
    def _names(self) -> frozenset[str]:
        return self.transfer.names(_EFFECTS)
