"""Calls on the default stream that are meant to order work on a non-blocking stream, and do not."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.facts.values.constructions import is_constructor
from streamlint.findings import Span
from streamlint.hazards.context import span_of
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.ordering.memory.storage import Storages, in_conflict
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.places import Place
from streamlint.ordering.races.early_reads import EarlyRead
from streamlint.ordering.races.null_waits import NullWait, RacesBehindNull, ReadsBehindNull, ReusesBehindNull
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import MADE, NULL, PARAMETER
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.ordering.streams.lanes import Lane
from streamlint.transfer.actions import CURRENT, UNKNOWN, Recorded, Stream, Synchronized
from streamlint.transfer.launch_rows import is_null_stream
from streamlint.transfer.work import Worked

COPY, WAIT, RECORD = "synchronous copy on the", "synchronization of the", "event record on the"


class Missed(NamedTuple):
    """A call on the default stream, the work that it does not wait for, and the access that comes too early (None: the call itself).

    ``passed`` is the call that really waits, where ``legacy`` is a caller's choice; ``made`` is None for a stream that callers give.
    """

    legacy: Site
    kind: str
    work: Site | None
    made: Span | None
    read: Site | None
    passed: Site | None
    calls: tuple[Site, ...]


class CopiesOnNull(RacesBehindNull):
    """Races of work on non-blocking streams."""

    def __init__(self, waits: LegacyWaits) -> None:
        super().__init__(waits.transfer)
        self.of = waits

    def is_wanted(self, lane: Lane) -> bool:
        if not lane.made:  # of a stream that is not made in view, a declaration may say it
            return lane.blocking is False and lane.library not in ("", "torch")
        return all(self.of.streams.asked_blocking(site) is False for site in lane.made)

    def is_legacy(self, function: Function, one: Instruction) -> bool:
        return self.of.legacy_copy(function, one) is not None

    def _worked(self, state: State, one: Instruction, work: Worked) -> str | None:
        """The stream of an array that was made on none is the null stream (numba)."""
        is_on_null = self.is_legacy(state.frame.function, one) and work.stream.kind == UNKNOWN
        return super()._worked(state, one, work._replace(stream=Stream(NULL, library=work.library)) if is_on_null else work)

    def _is_foreign(self, state: State, one: Instruction, work: Worked) -> bool:
        """A synchronous copy on the null stream misses the work of whichever library."""
        return not self.is_legacy(state.frame.function, one) and super()._is_foreign(state, one, work)

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        if function.is_cpp not in self.of.languages:
            return
        if one[0] == op.LAUNCH:  # nothing is known of memory that an unknown kernel may only read
            queued = [each for at, each in self.of.streams.launches.of(function) if at == one]
            written = {register for each in queued for register in each.writes}
            read = {register for each in queued for register in each.reads}
            work = work._replace(writes=tuple(each for each in work.writes if each in written), reads=tuple(read))
        super()._follow_work(function, one, work)


def _is_no_tensor(row: Row) -> bool:
    """Whether a call may copy on the null stream whatever stream PyTorch has made current."""
    return row.library != "torch"


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
        for found in (*self._before_reads(), *self._before_writes(), *self._copies(), *self._races()):
            if (found.legacy, found.kind) not in seen:
                seen.add((found.legacy, found.kind))
                yield found

    # --- the host waits, and reads

    def _null_waits(self) -> Iterator[Function]:
        """The functions that wait for the null stream, or record an event there."""
        for call in self.transfer.sites(frozenset({"synchronize", "record"})):
            function = call.function
            for action in self.transfer.of(function, call.instruction):
                stream = action.of if isinstance(action, Synchronized) else action.stream if isinstance(action, Recorded) else None
                if isinstance(stream, Stream) and self._may_be_null(function, call.instruction, stream):
                    yield function

    def _may_be_null(self, function: Function, one: Instruction, stream: Stream) -> bool:
        if stream.kind == NULL or stream.register < 0:
            return stream.kind == NULL
        if any(is_null_stream([value]) for value in self.transfer.values(function, stream.register)):
            return True
        return any(choice.kind == NULL for choice in self.streams.choices.of_register(function, stream.register, Site(function, one)))

    @cached_property
    def _waiting(self) -> frozenset[bool]:
        """The languages, C++ or not, of the functions that wait for the null stream."""
        return frozenset(function.is_cpp for function in self._null_waits())

    @cached_property
    def languages(self) -> frozenset[bool]:
        """The languages in which something is done on the null stream that does not wait for other streams."""
        return self._waiting | {function.is_cpp for function, _ in self._legacy}

    def _before_reads(self) -> Iterator[Missed]:
        reads = ReadsBehindNull(self.transfer)
        for read in reads.find() if self._waiting else ():
            wait, sites = reads.missed[read.copy, read.read]
            made = next((each for each in self._streams_of(read) if self._is_non_blocking(each)), None)
            if made is not None:
                yield self._of_wait(wait, read.copy, self.streams.made_at(made), read.read)
            elif sites and all(self.streams.asked_blocking(site) is False for site in sites):
                yield self._of_wait(wait, read.copy, span_of(min(sites, key=span_of)), read.read)

    def _before_writes(self) -> Iterator[Missed]:
        """Waits behind which the host writes the memory of a copy that is on another stream."""
        reuses = ReusesBehindNull(self.transfer)
        for reuse in reuses.find() if self._waiting else ():
            wait, sites = reuses.missed.get((reuse.copy, reuse.write), (None, frozenset()))
            if wait is not None and sites and all(self.streams.asked_blocking(site) is False for site in sites):
                yield self._of_wait(wait, reuse.copy, span_of(min(sites, key=span_of)), reuse.write)

    def _of_wait(self, wait: NullWait, work: Site, made: Span | None, read: Site) -> Missed:
        passed = wait.at if wait.chosen != wait.at else None
        calls = tuple(site for site in wait.calls if site != wait.chosen)
        return Missed(wait.chosen, RECORD if wait.is_record else WAIT, work, made, read, passed, calls)

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

    # --- work on other streams

    def _races(self) -> Iterator[Missed]:
        """Work whose result is copied on the null stream, or used behind a wait for it, in whatever functions."""
        races = CopiesOnNull(self)
        for _ in races.find() if self.languages else ():
            pass
        for found in races.missed.values():
            made = span_of(min(found.lane.made, key=span_of)) if found.lane.made else None
            if found.wait is not None:
                yield self._of_wait(found.wait, found.first, made, found.second)
            else:
                yield Missed(found.second, COPY, found.first, made, None, None, found.calls)

    # --- synchronous copies

    @cached_property
    def _legacy(self) -> dict[tuple[Function, Instruction], Event]:
        """The copies on the null stream for which the host waits."""
        found: dict[tuple[Function, Instruction], Event] = {}
        for call in self.transfer.sites(frozenset({"copy", "transfer"}), where=_is_no_tensor):
            function = call.function
            if self.streams.per_thread(function.unit) is True:
                continue
            for event in self.streams.beside.own(function):
                if event.instruction == call.instruction and self._is_legacy_copy(event):
                    found.setdefault((function, event.instruction), event)
        return found

    def legacy_copy(self, function: Function, one: Instruction) -> Event | None:
        """Such a copy, if an instruction is one."""
        return self._legacy.get((function, one))

    def _copies(self) -> Iterator[Missed]:
        for (function, _), copy in self._legacy.items():
            yield from self._behind_work(function, copy)

    def _is_legacy_copy(self, event: Event) -> bool:
        work, choice = event.work, event.choice
        if work is None or choice is None or work.kind != "copy" or not work.waits or work.library == "torch":
            return False
        return choice.kind == NULL and not choice.calls

    def _behind_work(self, function: Function, copy: Event) -> Iterator[Missed]:
        touched = self.storages.touched(copy)
        for event in reversed(self.streams.beside.in_flight(function, copy.instruction)):
            if event.choice is None or not self._is_non_blocking(event.choice):
                continue
            if in_conflict(touched, self.storages.touched(event)):
                yield Missed(copy.at, COPY, event.at, self.streams.made_at(event.choice), None, None, ())
                return
        yield from self._of_argument(function, copy, touched[0])

    def _of_argument(self, function: Function, copy: Event, reads: set[Place]) -> Iterator[Missed]:
        """A function that works on the stream it is given fetches, on the default stream, what its caller hands it."""
        assert copy.work is not None
        if copy.work.direction != "d2h" or is_constructor(function) or not self.streams.in_scope.is_given(function):
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
        """Whether the files of the run make streams, and every one of them non-blocking."""
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
