"""Whether work on the null stream meets memory that a non-blocking stream works on: then the two race, and the null stream is the cause."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.beside import Event
from streamlint.ordering.choices import NULL
from streamlint.transfer.launch_rows import Queued
from streamlint.waits.operands import operand_of

_DEEPEST = 4


class SameMemory:
    """Answers for work in C++ that a function, or one that it calls, puts on the null stream."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.transfer = streams.transfer

    def is_raced(self, holder: Function, at: Site, calls: tuple[Site, ...], work: Queued) -> bool:
        """Whether work of a non-blocking stream that is in flight in ``holder``, or comes next there, touches the memory of work ``at`` a
        place that ``calls`` lead to, and one of the two writes it."""
        place = calls[0].instruction if calls else at.instruction
        own = self._touched(holder, at, calls, work)
        if not any(own):
            return False
        beside = self.streams.beside
        before = (event for event in beside.in_flight(holder, place) if self._is_unordered(event))
        if any(self._meets(own, holder, event) for event in before):
            return True
        behind = [] if work.waits or self._is_recorded(holder) else beside.behind(holder, place)
        return any(self._meets(own, holder, event) for event in behind if self._is_unordered(event))

    def _is_unordered(self, event: Event) -> bool:
        return event.work is not None and event.choice is not None and self.streams.blocking(event.choice) is False

    def _meets(self, own: tuple[set[object], set[object]], holder: Function, event: Event) -> bool:
        if event.work is None:
            return False
        reads, writes = own
        others = self._touched(holder, event.at, event.via, event.work)
        return bool(writes & (others[0] | others[1]) or reads & others[1])

    def _touched(self, holder: Function, at: Site, calls: tuple[Site, ...], work: Queued) -> tuple[set[object], set[object]]:
        """The memory that work reads and writes, by the names that ``holder`` has for it."""
        reads, writes = (set(self._named(holder, at, calls, side)) for side in (work.reads, work.writes))
        return reads, writes

    def _named(self, holder: Function, at: Site, calls: tuple[Site, ...], registers: Iterable[int]) -> Iterator[object]:
        path = list(calls)
        if at.function is not holder and not path:
            return
        for register in registers:
            function, held = at.function, register
            for call in reversed(path):
                outer = self._parameter(function, held)
                given = operand_of(call.function, call.instruction, function, outer) if outer is not None else None
                if given is None:
                    break
                function, held = call.function, given
            if function is holder and held >= 0 and not self._is_number(function, held):
                place = self.streams.choices.places.of(function, held)
                yield place.root, tuple(key for key in place.path if key not in ("&", "*"))

    def _is_number(self, function: Function, register: int) -> bool:
        one = function.definitions[register]
        return one is None or one[0] in (op.CONST, op.BINARY)

    def _parameter(self, function: Function, register: int) -> int | None:
        one = function.definitions[register] if register >= 0 else None
        for _ in range(_DEEPEST):
            if one is None or one[0] not in (op.CAST, op.COPY):
                break
            one = function.definitions[one[4] if one[0] == op.CAST else one[3]]
        return one[3] if one is not None and one[0] == op.PARAM else None

    def _is_recorded(self, holder: Function) -> bool:
        """Whether an event is recorded on the null stream, for which others may wait."""
        names = self.transfer.names(frozenset({"record"}))
        calls: list[Instruction] = [one for one in holder.by_opcode[op.CALL] if one[3] >= 0]
        for one in calls:
            if holder.dotted(one[3]).rpartition("::")[2] not in names:
                continue
            for call in self.transfer.modelled(holder, one):
                held = call.row.get("stream")
                register = call.given(held) if isinstance(held, Selector) else None
                if call.row.effect == "record" and (register is None or self._is_null(holder, one, register)):
                    return True
        return False

    def _is_null(self, holder: Function, one: Instruction, register: int) -> bool:
        return any(choice.kind == NULL for choice in self.streams.choices.of_register(holder, register, Site(holder, one)))
