"""What the rounds of a loop do, by themselves and in the functions that they call: work on the device, uploads, waits of the host."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.counters import gone_over
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, LibraryObject, Memory, Site
from streamlint.hazards.every_round import EveryRound
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.transfer.actions import Action, Copied, Read, Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import argument_registers

_DEEPEST = 5
_WORKING = frozenset({"launch", "collective", "memset"})
_COMPUTING = frozenset({op.BINARY, op.INPLACE, op.UNARY})
FEW = 4
_TOGETHER = frozenset({"zip", "enumerate"})


class Step(NamedTuple):
    """An instruction that a round of a loop runs. ``is_deeper``: in a loop of its own."""

    function: Function
    instruction: Instruction
    is_deeper: bool


class Inside:
    """Questions to what loops run."""

    def __init__(self, transfer: Transfer, rounds: EveryRound) -> None:
        self.transfer = transfer
        self.rounds = rounds

    def steps(self, function: Function, loop: Loop) -> Iterator[Step]:
        """The instructions of a loop's rounds, and of the functions that they call."""
        yield from self._steps(function, loop, False, {function}, ())

    def _steps(
        self, function: Function, loop: Loop | None, is_deeper: bool, seen: set[Function], calls: tuple[Site, ...]
    ) -> Iterator[Step]:
        body = self.rounds.body(function)
        for block in sorted(self.rounds.blocks(function, loop)):
            index = body.graph.innermost[block]
            inner = body.graph.loops[index] if index >= 0 else None
            is_inner = is_deeper or (inner is not None and inner != loop and not self._is_short(function, inner, calls))
            for one in function.code.blocks[block]:
                yield Step(function, one, is_inner)
                if one[0] not in CALLING or len(calls) >= _DEEPEST:
                    continue
                for edge in self.transfer.edges(function, one):
                    if edge.is_followed and edge.callee not in seen:
                        seen.add(edge.callee)
                        yield from self._steps(edge.callee, None, is_inner, seen, (*calls, Site(function, one)))

    def _is_short(self, function: Function, loop: Loop, calls: tuple[Site, ...]) -> bool:
        """Whether a loop adds little to its round: it has few rounds, or takes the rows of a tensor one by one instead of all at once."""
        rounds = self.rounds.rounds(function, loop)
        if rounds is None and calls:
            rounds = self.transfer.rounds.trips.given(function, loop, *calls[-1])
        return (rounds is not None and rounds <= FEW) or self._is_over_rows(function, loop)

    def _is_over_rows(self, function: Function, loop: Loop) -> bool:
        over = gone_over(function, loop.header)
        made = function.definitions[over] if over >= 0 else None
        is_zip = made is not None and made[0] == op.CALL and function.dotted(made[3]) in _TOGETHER
        of = [register for _, register in argument_registers(function, made)] if made is not None and is_zip else [over]
        return any(self._memory(function, register) for register in of if register >= 0)

    # --- what a step is

    def actions(self, step: Step) -> tuple[Action, ...]:
        """What a step does."""
        return self.transfer.of(step.function, step.instruction)

    def is_long(self, step: Step) -> bool:
        """Whether a step takes long by what it does: it sorts, or exchanges data with other processes."""
        if step.instruction[0] not in (op.CALL, op.INVOKE):
            return False
        rows = [call.row for call in self.transfer.modelled(step.function, step.instruction)]
        return any(row.effect == "collective" or row.get("long") for row in rows)

    def waits(self, step: Step) -> bool:
        """Whether the host waits there."""
        return any(self._is_wait(step, action) for action in self.actions(step))

    def _is_wait(self, step: Step, action: Action) -> bool:
        if isinstance(action, Synchronized):
            return not self._frees(step)
        if isinstance(action, Copied):
            return action.direction == "d2h" and action.asynchronous is False
        if isinstance(action, Read) and action.waits:
            return any(value.space == "device" for value in self._memory(step.function, action.register))
        return False

    def _frees(self, step: Step) -> bool:
        return any(call.row.effect == "free" for call in self.transfer.modelled(step.function, step.instruction))

    def uploads(self, step: Step) -> bool:
        """Whether data of the host is brought to the device."""
        return any(isinstance(action, Copied) and action.direction in ("h2d", "device<unknown") for action in self.actions(step))

    def is_work(self, step: Step) -> bool:
        """Whether a step queues work on the device, as far as the program shows."""
        function, one = step.function, step.instruction
        if one[0] == op.LAUNCH:
            return True
        if one[0] in _COMPUTING:
            return self._is_there(function, one[2])
        if one[0] not in (op.CALL, op.INVOKE):
            return False
        if any(
            call.row.effect in _WORKING or (call.row.effect in ("compute", "factory") and self._is_there(function, one[2]))
            for call in self.transfer.modelled(function, one)
        ):
            return True
        return self._is_opaque_work(function, one)

    def _is_opaque_work(self, function: Function, one: Instruction) -> bool:
        """A call of a module, or an unknown call that takes a tensor which no host is known to hold."""
        libraries = self.transfer.libraries(function, one)
        if any(isinstance(call.receiver, LibraryObject) and call.receiver.kind == "module" and call.row is None for call in libraries):
            return True
        if one[0] == op.CALL and self._is_of_modules(function, one[3]):
            return True
        if any(call.row is not None for call in libraries) or self.transfer.edges(function, one):
            return False
        first = 6 if one[0] == op.INVOKE else 5
        return any(value.space != "host" for register in one[first:] for value in self._memory(function, register))

    def _is_of_modules(self, function: Function, register: int) -> bool:
        """Whether a register holds one of a list of modules."""
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.NEXT, op.ITEM, op.ITER):
            held = self.transfer.values(function, one[3])
            if any(isinstance(value, Container) and value.kind == "modules" for value in held):
                return True
            one = function.definitions[one[3]] if one[0] != op.ITEM else None
        return False

    def _is_there(self, function: Function, register: int) -> bool:
        return any(value.space == "device" for value in self._memory(function, register))

    def _memory(self, function: Function, register: int) -> list[Memory]:
        return [value for value in self.transfer.values(function, register) if isinstance(value, Memory)]
