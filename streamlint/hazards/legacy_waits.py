"""Calls on the default stream that are meant to order work on a non-blocking stream, and do not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.facts.program import Unit
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.at_hand import is_constructor
from streamlint.ordering.beside import Event
from streamlint.ordering.choices import MADE, NULL, PARAMETER, Choice, behind_copies, default_is_null, given_to
from streamlint.ordering.conditions import Frame
from streamlint.ordering.early_reads import EarlyRead, EarlyReads
from streamlint.ordering.places import Place
from streamlint.ordering.storage import Storages
from streamlint.ordering.walk import State
from streamlint.transfer.actions import CURRENT, Action, Stream, Synchronized
from streamlint.transfer.launches import is_null
from streamlint.transfer.transfer import last_name

COPY, WAIT, RECORD = "synchronous copy on the", "synchronization of the", "event record on the"


class Missed(NamedTuple):
    """A call on the default stream, the work that it does not wait for, and the access that comes too early (None: the call itself).

    ``passed`` is the call that really waits, where ``legacy`` is a caller's choice; ``choice`` is None for a stream that callers give.
    """

    legacy: Site
    kind: str
    work: Site | None
    choice: Choice | None
    read: Site | None
    passed: Site | None
    calls: tuple[Site, ...]


class ReadsBehindNull(EarlyReads):
    """Early reads of copies on non-blocking streams: a wait for the null stream, whoever hands it over, orders nothing."""

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        of = action.of if isinstance(action, Synchronized) else None
        if isinstance(of, Stream) and of.register >= 0 and self._is_null_here(state.frame, of.register):
            return False
        return super().orders(state, one, action)

    def _is_null_here(self, frame: Frame, register: int) -> bool:
        """Whether a stream is null as the functions were entered."""
        function = frame.function
        register = behind_copies(function, register)
        made = function.definitions[register] if register >= 0 else None
        if made is None or made[0] != op.PARAM:
            return register >= 0 and is_null(function, register, list(self.transfer.values(function, register)))
        if frame.caller is None or frame.call is None:
            return False
        given = given_to(frame.caller.function, frame.call, function, made[3])
        if given is None:
            return default_is_null(function, made[3])
        return self._is_null_here(frame.caller, given) if given >= 0 else False


class LegacyWaits:
    """Finds such calls."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.facts = streams.facts
        self.transfer = streams.transfer
        self.storages = Storages(streams.transfer, streams.choices.places, streams.launches)
        self._makers: dict[Unit, bool] = {}

    def find(self) -> Iterator[Missed]:
        """The calls of the program."""
        seen: set[tuple[Site, str]] = set()
        for found in (*self._before_reads(), *self._copies()):
            if (found.legacy, found.kind) not in seen:
                seen.add((found.legacy, found.kind))
                yield found

    # --- the host waits, and reads

    def _before_reads(self) -> Iterator[Missed]:
        for read in ReadsBehindNull(self.transfer).find():
            root = read.copy_calls[0] if read.copy_calls else read.copy
            end = read.read_calls[0] if read.read_calls else read.read
            if end.function is not root.function:
                continue
            made = next((each for each in self._streams_of(read) if self._is_non_blocking(each)), None)
            if made is not None:
                yield from self._between(root, end, read, made)

    def _streams_of(self, read: EarlyRead) -> list[Choice]:
        """The streams on which a copy may run."""
        function, one, copied = read.copy.function, read.copy.instruction, read.copied
        register = copied.stream.register
        if copied.stream.kind == CURRENT:
            current = self.streams.choices.currents.of_library(function, one, copied.stream.library)
            register = current.register if current is not None else -1
        return list(self.streams.choices.of_register(function, register, read.copy)) if register >= 0 else []

    def _is_non_blocking(self, choice: Choice) -> bool:
        return choice.kind == MADE and self.streams.blocking(choice) is False

    def _between(self, root: Site, end: Site, read: EarlyRead, made: Choice) -> Iterator[Missed]:
        function, beside = root.function, self.streams.beside
        for event in reversed(beside.events(function)):
            if event.work is not None or event.choice is None or event.choice.kind != NULL:
                continue
            if beside.leads_to(function, root.instruction, event.instruction) and beside.leads_to(
                function, event.instruction, end.instruction
            ):
                chosen = event.choice.at
                passed = event.at if chosen != event.at else None
                yield Missed(chosen, WAIT, read.copy, made, read.read, passed, tuple(site for site in event.via if site != chosen))
                return

    # --- synchronous copies

    def _copies(self) -> Iterator[Missed]:
        for call in self.transfer.sites(frozenset({"copy", "transfer"})):
            function = call.function
            copies = [
                event for event in self.streams.beside.own(function) if event.instruction == call.instruction and event.work is not None
            ]
            if not any(self._is_legacy_copy(event) for event in copies) or self.streams.per_thread(function.unit) is True:
                continue
            yield from self._behind_work(function, next(event for event in copies if self._is_legacy_copy(event)))

    def _is_legacy_copy(self, event: Event) -> bool:
        work, choice = event.work, event.choice
        if work is None or choice is None or work.kind != "copy" or not work.waits or work.library == "torch":
            return False
        return choice.kind == NULL and not choice.calls

    def _behind_work(self, function: Function, copy: Event) -> Iterator[Missed]:
        reads, writes = self.storages.touched(copy)
        for event in reversed(self.streams.beside.in_flight(function, copy.instruction)):
            if event.choice is None or not self._is_non_blocking(event.choice):
                continue
            theirs = self.storages.touched(event)
            if (reads | writes) & theirs[1] or writes & theirs[0]:
                yield Missed(copy.at, COPY, event.at, event.choice, None, None, ())
                return
        yield from self._of_argument(function, copy, reads)

    def _of_argument(self, function: Function, copy: Event, reads: set[Place]) -> Iterator[Missed]:
        """A function that works on the stream it is given fetches, on the default stream, what its caller hands it."""
        assert copy.work is not None
        if copy.work.direction != "d2h" or is_constructor(function) or not self.streams.at_hand.is_given(function):
            return
        if not reads or not all(place.root[0] == "parameter" for place in reads) or not self._makes_only_non_blocking(function.unit):
            return
        before = self.streams.beside.before(function, copy.instruction)
        if any(event.work is None for event in before):
            return
        behind = self.streams.beside.behind(function, copy.instruction)
        work = next((event for event in behind if event.choice is not None and event.choice.kind == PARAMETER), None)
        if work is not None:
            yield Missed(copy.at, COPY, work.at, None, None, None, ())

    def _makes_only_non_blocking(self, unit: Unit) -> bool:
        """Whether the files at hand make streams, and every one of them non-blocking."""
        if unit not in self._makers:
            names = self.transfer.names(frozenset({"stream"}))
            made = [
                self.streams.asked_blocking(Site(function, one))
                for other in self.facts.program.cpp.visible(unit)
                for function in other.functions
                for one in function.by_opcode[op.CALL]
                if last_name(function, one) in names
            ]
            self._makers[unit] = bool(made) and all(answer is False for answer in made)
        return self._makers[unit]
