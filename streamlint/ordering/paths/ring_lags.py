"""Rings of buffers and of events that one counter goes round in: how many rounds ago the event was recorded that a round waits for."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.counters import is_counter, moved
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind_copies
from streamlint.facts.code.objects import Constant
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Recorded
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike


class RingElement(NamedTuple):
    """An element of a ring: ``ring[(counter + offset) % size]``."""

    ring: Key
    counter: Key
    offset: int
    size: int


class RingLags:
    """Compares the rounds of two rings."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def is_before(self, function: Function, memory: int, frame: Frame, wait: Instruction, event: int) -> bool:
        """Whether the event that a round waits for was recorded before the round that has last used the same memory as this one."""
        while frame.function is not function:
            given = self._given(frame, event)
            if given is None:
                return False
            frame, wait, event = given
        buffer, awaited = self._slot(function, memory), self._slot(function, event)
        if buffer is None or awaited is None or buffer.counter != awaited.counter:
            return False
        records = self._records(function, awaited)
        if len(records) != 1:
            return False
        [(record, recorded)] = records
        lag = (recorded.offset - awaited.offset) % awaited.size
        if lag == 0 and not function.runs_before(record, wait):
            lag = awaited.size
        return lag > buffer.size

    def _given(self, frame: Frame, register: int) -> tuple[Frame, Instruction, int] | None:
        """What the caller of a function gives for a parameter."""
        one = frame.function.definitions[behind_copies(frame.function, register)] if register >= 0 else None
        if one is None or one[0] != op.PARAM or frame.caller is None or frame.call is None:
            return None
        given = operand_of(frame.caller.function, frame.call, frame.function, one[3])
        return (frame.caller, frame.call, given) if given is not None else None

    def _records(self, function: Function, awaited: RingElement) -> list[tuple[Instruction, RingElement]]:
        """The calls of a function that record events of a ring, each with the slot; none where one of them is not known."""
        found: list[tuple[Instruction, RingElement]] = []
        for one in (each for opcode in CALLING for each in function.by_opcode[opcode]):
            for action in self.transfer.of(function, one):
                slot = self._slot(function, action.event) if isinstance(action, Recorded) else None
                if slot is not None and slot.ring == awaited.ring:
                    found.append((one, slot))
        return found if all(slot[1:2] + slot[3:] == awaited[1:2] + awaited[3:] for _, slot in found) else []

    @memoized
    def _slot(self, function: Function, register: int) -> RingElement | None:
        """The element of a ring that a register holds."""
        register = behind_copies(function, register)
        one = function.definitions[register] if register >= 0 else None
        index = function.definitions[one[4]] if one is not None and one[0] == op.ITEM and one[4] >= 0 else None
        if one is None or index is None or index[0] != op.BINARY or function.text(index[3]) != "%":
            return None
        size, (counter, offset) = self._number(function, index[5]), moved(function, index[4])
        counted = function.definitions[counter] if counter >= 0 and is_counter(function, counter) else None
        if size < 1 or counted is None or counted[0] == op.BINARY:
            return None
        return RingElement(alike(function, one[3]), alike(function, counter), offset, size)

    def _number(self, function: Function, register: int) -> int:
        """The number that a register is known to hold; 0 for none."""
        values = [value.value if isinstance(value, Constant) else None for value in self.transfer.values(function, register)]
        return values[0] if len(values) == 1 and isinstance(values[0], int) else 0
