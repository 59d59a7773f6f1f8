"""What others may do meanwhile: a thread that waits for another one goes on behind what that has done before."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Container, LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.models import Row
from streamlint.ordering.paths.conditions import Frame
from streamlint.transfer.transfer import Transfer

_EFFECTS = frozenset({"block", "get"})
_CALLS = frozenset({op.CALL, op.INVOKE, op.CONSTRUCT})


class Meanwhile:
    """The waits of threads for one another."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self._concurrent: dict[tuple[Function, Instruction, Function], bool] = {}
        self._waits: dict[tuple[Function, Instruction], bool] = {}
        self._wakes: dict[tuple[Function, Instruction, int], bool] = {}
        self._let_go: dict[tuple[Function, Instruction], bool] = {}

    def is_concurrent(self, frame: Frame) -> bool:
        """Whether a path is in a thread that a function of it has started."""
        while frame.caller is not None and frame.call is not None:
            key = frame.caller.function, frame.call, frame.function
            if key not in self._concurrent:
                edges = self.transfer.edges(*key[:2])
                self._concurrent[key] = any(edge.callee is frame.function and edge.is_elsewhere for edge in edges)
            if self._concurrent[key]:
                return True
            frame = frame.caller
        return False

    def is_polling(self, frame: Frame, loop: Loop) -> bool:
        """Whether a loop of a thread waits in its rounds until another thread has done something: it is taken to be entered."""
        blocks = frame.function.code.blocks
        return self.is_concurrent(frame) and any(self.waits(frame.function, one) for number in loop.body for one in blocks[number])

    def lets_go(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction starts a thread for which its function does not wait: what comes before it is before all of the thread,
        and the function goes on beside it."""
        if one[0] not in _CALLS:
            return False
        key = (function, one)
        if key not in self._let_go:
            joining = self.transfer.graph.joining
            self._let_go[key] = one in joining.starts(function) and not joining.is_joined(function, one)
        return self._let_go[key]

    def wakes(self, function: Function, one: Instruction, depth: int = 0) -> bool:
        """C++: whether a call wakes threads that wait, by itself or in what it calls, ``depth`` calls deep."""
        if one[0] not in (op.CALL, op.INVOKE) or not function.is_cpp:
            return False
        if one[0] == op.INVOKE and function.text(one[4]) in function.known("wakes"):
            return True
        key = (function, one, depth)
        if depth and key not in self._wakes:
            callees = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed]
            self._wakes[key] = any(self.wakes(each, inner, depth - 1) for each in callees for inner in each.by_opcode[op.INVOKE])
        return depth > 0 and self._wakes[key]

    def waits(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction waits for another thread, which may have waited for the device before: a lock, a queue, a condition,
        or time that passes until somebody has done something."""
        if one[0] not in _CALLS and one[0] != op.ENTER:
            return False
        key = (function, one)
        if key not in self._waits:
            self._waits[key] = self._is_lock(function, one) if one[0] == op.ENTER else self._is_wait(function, one)
        return self._waits[key]

    def _is_lock(self, function: Function, one: Instruction) -> bool:
        values = self.transfer.values(function, one[3])
        return any(isinstance(value, LibraryObject) and value.type in function.unit.models.marked("guard") for value in values)

    def _is_wait(self, function: Function, one: Instruction) -> bool:
        if one[0] == op.INVOKE and function.text(one[4]) == "get":  # lists have no such method, queues do
            values = self.transfer.values(function, one[3])
            return any(isinstance(value, Container) and value.kind == "list" for value in values) or self._is_modelled(function, one)
        if last_name(function, one) not in self._names or self.transfer.graph.joining.is_end(function, one):
            return False
        return self._is_modelled(function, one)

    def _is_modelled(self, function: Function, one: Instruction) -> bool:
        return any(call.row.effect in _EFFECTS or call.row.get("sleeps") for call in self.transfer.modelled(function, one))

    @cached_property
    def _names(self) -> frozenset[str]:
        return self.transfer.names(_EFFECTS) | self.transfer.names({"none"}, _sleeps)


def _sleeps(row: Row) -> bool:
    return bool(row.get("sleeps"))
