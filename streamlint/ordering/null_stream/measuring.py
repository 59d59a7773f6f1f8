"""Functions that measure: one piece of work is queued again and again between two looks at a clock. Waits are their purpose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.transfer import device
from streamlint.transfer.device import DeviceOperations

_WORK = frozenset({device.KERNEL, device.WORK, device.COMPUTE, device.COPY, "graph"})


class _Look(NamedTuple):
    """A look at a clock: where, and the object and its method that tell the time; both "" for the clock of the host or of events."""

    block: int
    clock: object = ""
    method: str = ""


class Measuring:
    """Which functions of a program measure."""

    def __init__(self, operations: DeviceOperations) -> None:
        self.operations = operations
        self.transfer = operations.transfer
        self._known: dict[Function, bool] = {}

    def times_repeated_work(self, function: Function) -> bool:
        """Whether a function queues one piece of work again and again between two looks at a clock."""
        if function not in self._known:
            looks = list(self._looks(function))
            self._known[function] = len(looks) > 1 and self._measures(function, looks)
        return self._known[function]

    def _measures(self, function: Function, looks: list[_Look]) -> bool:
        graph = function.control
        inner = {loop.parent for loop in graph.loops if loop.parent != NOBODY}
        for number, loop in enumerate(graph.loops):
            if number in inner or self._pieces(function, loop.body) != 1:
                continue
            before = [look for look in looks if look.block not in loop.body and graph.dominates(look.block, loop.header)]
            behind = [look for look in looks if look.block not in loop.body and graph.dominates(loop.header, look.block)]
            if any(_is_pair(first, second) for first in before for second in behind):
                return True
        return False

    def _pieces(self, function: Function, blocks: frozenset[int]) -> int:
        """How many pieces of work the blocks queue."""
        return sum(
            operation.kind in _WORK
            for block in blocks
            for one in function.code.blocks[block]
            if one[0] in (op.CALL, op.INVOKE, op.LAUNCH)
            for operation in self.operations.of(function, one)[:1]
        )

    def _looks(self, function: Function) -> Iterator[_Look]:
        effects = {one: effect for one in function.code.instructions() if (effect := self._effect(function, one))}
        takes_elapsed = "elapsed" in effects.values()
        for number, block in enumerate(function.code.blocks):
            has_waited = False
            for one in block:
                effect = effects.get(one, "")
                if effect == "clock" or (effect == "record" and takes_elapsed):
                    yield _Look(number)
                elif has_waited and one[0] == op.INVOKE and not effect:
                    yield _Look(number, one[3], function.text(one[4]))
                if one[0] in (op.CALL, op.INVOKE, op.LAUNCH):
                    has_waited = effect == "synchronize"

    def _effect(self, function: Function, one: Instruction) -> str:
        if one[0] not in (op.CALL, op.INVOKE):
            return ""
        return next((call.row.effect for call in self.transfer.modelled(function, one)), "")


def _is_pair(first: _Look, second: _Look) -> bool:
    """Whether two looks are at one clock; of an object, the second by another method than the first."""
    return first.clock == second.clock and (first.clock == "" or first.method != second.method)


class Agreements:
    """Which copies are a part of what ranks agree on: numbers of the host go up into a collective, and what comes of it down."""

    def __init__(self, operations: DeviceOperations) -> None:
        self.operations = operations
        self._known: dict[Function, list[tuple[Instruction, list[str]]]] = {}

    def is_one(self, function: Function, copy: Instruction, direction: str) -> bool:
        """Whether a copy stands beside a collective, and no kernel works on its data."""
        calls = self._work(function)
        place = next((number for number, (one, _) in enumerate(calls) if one == copy), None)
        if place is None:
            return False
        if direction == "h2d":
            return next((kinds[0] for _, kinds in calls[place + 1 :] if kinds), "") == device.COLLECTIVE
        before = [kind for _, kinds in calls[:place] for kind in kinds]
        return before[-1:] == [device.COLLECTIVE] and device.KERNEL not in before

    def _work(self, function: Function) -> list[tuple[Instruction, list[str]]]:
        """A function's calls as they are written, with the kinds of work that each queues."""
        if function not in self._known:
            of_work = (device.KERNEL, device.WORK, device.COLLECTIVE)
            calls = (one for one in function.code.instructions() if one[0] in (op.CALL, op.INVOKE, op.LAUNCH))
            self._known[function] = [
                (one, [each.kind for each in self.operations.of(function, one) if each.kind in of_work]) for one in calls
            ]
        return self._known[function]
