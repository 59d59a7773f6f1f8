"""Waits for the null stream that a path passes while work on another stream is pending: by the host, or for an event recorded there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, passed_on
from streamlint.facts.code.objects import Site, given_in_view
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.open_methods import open_methods
from streamlint.ordering.places.places import Place
from streamlint.ordering.races.beginnings import Beginnings
from streamlint.ordering.races.early_reads import EarlyReads
from streamlint.ordering.races.races import Races
from streamlint.ordering.races.reuses import Reuses
from streamlint.ordering.streams.choice import default_is_null
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.walk.walk import ORDERED, Walk
from streamlint.transfer.actions import NULL, Action, Recorded, Stream, Synchronized
from streamlint.transfer.launch_rows import is_null_stream
from streamlint.transfer.modelled import is_null
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked
from streamlint.waits.operands import given_to

_MISSED, _MARK = "missed", "mark"
"""Kinds of what is tracked: a wait that was passed, and an event that is recorded on the null stream."""


class NullWait(NamedTuple):
    """A wait for the null stream, or an event that is recorded there and waited for.

    ``chosen`` is where the stream was chosen: there, or by a call that led there. ``calls`` lead there.
    """

    at: Site
    chosen: Site
    is_record: bool
    calls: tuple[Site, ...]


class PassingNull(Walk):
    """Notes such waits on the paths of a walk."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.waits: dict[Place, NullWait] = {}

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        answer, more = super().judge(state, one, action), self._noted(state, one, action)
        if answer == ORDERED or not more:
            return answer
        return (answer if isinstance(answer, frozenset) else state.tracked) | more

    def _noted(self, state: State, one: Instruction, action: Action) -> frozenset[Tracked]:
        """What is tracked from here on, for a wait or a record on the null stream."""
        here = Site(state.frame.function, one)
        if isinstance(action, Synchronized) and isinstance(action.of, Stream):
            chosen = self.null_by(state.frame, here, action.of)
            return self._missed(NullWait(here, chosen, False, state.frame.calls)) if chosen is not None else frozenset()
        if isinstance(action, Recorded) and self.null_by(state.frame, here, action.stream) is not None:
            return frozenset(Tracked(_MARK, place, "", here) for place in self.places.names(here.function, action.event))
        is_wait = isinstance(action, Synchronized) or (isinstance(action, Waited) and action.is_event)
        event = action.of if is_wait and isinstance(action, Synchronized | Waited) else None
        record = self._record(state, event) if isinstance(event, int) and event >= 0 else None
        return self._missed(NullWait(record, record, True, state.frame.calls)) if record is not None else frozenset()

    def _record(self, state: State, event: int) -> Site | None:
        """Where an event was recorded on the null stream."""
        names = frozenset(self.places.names(state.frame.function, event))
        return next((held.announced for held in state.tracked if held.kind == _MARK and held.place in names), None)

    def _missed(self, wait: NullWait) -> frozenset[Tracked]:
        place = Place(("global", _MISSED, wait.at, wait.chosen))
        self.waits.setdefault(place, wait)
        return frozenset({Tracked(_MISSED, place)})

    def passed_wait(self, state: State) -> NullWait | None:
        """A wait for the null stream that the path of a state has passed."""
        found = sorted((held.place for held in state.tracked if held.kind == _MISSED), key=lambda place: self.waits[place].at.row)
        return self.waits[found[-1]] if found else None

    def is_null_wait(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an instruction waits for the null stream, whoever chose it."""
        of = action.of if isinstance(action, Synchronized) else None
        return isinstance(of, Stream) and self.null_by(state.frame, Site(state.frame.function, one), of) is not None

    def null_by(self, frame: Frame, here: Site, stream: Stream) -> Site | None:
        """Where a stream of an instruction was chosen to be null, as the functions were entered; None if it is not."""
        if stream.kind == NULL:
            return here
        return self._null_register(frame, stream.register, here) if stream.register >= 0 else None

    def _null_register(self, frame: Frame, register: int, here: Site) -> Site | None:
        found = [self._null_source(frame, each, here) for each in _sources(frame.function, register)]
        chosen = [site for site in found if site is not None]
        return next((site for site in chosen if site != here), here) if chosen and len(chosen) == len(found) else None

    def _null_source(self, frame: Frame, register: int, here: Site) -> Site | None:
        function = frame.function
        definition = function.definitions[register] if register >= 0 else None
        if definition is None or definition[0] != op.PARAM or frame.caller is None or frame.call is None:
            is_there = definition is not None and definition[0] != op.PARAM and self._is_null(function, register, frame.caller is not None)
            return here if is_there else None
        call = Site(frame.caller.function, frame.call)
        given = given_to(frame.caller.function, frame.call, function, definition[3])
        if given is None:
            is_spread = not function.is_cpp and self._is_null(function, register, True)
            return call if is_spread or self._is_null_left_out(function, definition[3]) else None
        return self._null_register(frame.caller, given, call) if given >= 0 else None

    def _is_null(self, function: Function, register: int, is_entered: bool = False) -> bool:
        """Whether a register holds the null stream. ``is_entered``: a call in view has led there, so that callers out of view are not
        meant."""
        held = list(self.transfer.values(function, register))
        values = given_in_view(held) if is_entered else held
        return is_null(function, register, values) or is_null_stream(values)

    def _is_null_left_out(self, function: Function, index: int) -> bool:
        """Whether a parameter is the null stream where a call leaves it out."""
        place = function.default_place(index)
        return default_is_null(function, index) or (place is not None and self._is_null(*place))


def _sources(function: Function, register: int) -> list[int]:
    """The registers that one may have its value from, behind copies and joins."""
    return [one[2] for one in behind(function, [register], passed_on) if not passed_on(one)]


class _NullWaitsMissed(PassingNull):
    """A walk that no wait for the null stream ends, whoever hands that over: ``missed`` is found only behind one."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.missed: dict[tuple[Site, Site], tuple[NullWait, frozenset[Site]]] = {}
        """By pairs: the wait that was passed, and where the stream was made, by the functions on the path."""

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return not self.is_null_wait(state, one, action) and super().orders(state, one, action)

    def _up(self, state: State, register: int) -> Iterator[State]:
        """Unknown callers, too: the next call of a method that none in view calls may come to such a wait."""
        yield from super()._up(state, register)
        if all(one[0] in CALLING for one in state.path):
            yield from self._called_next(state, open_methods(self.transfer, state.frame.function))

    def note_missed(self, state: State, pairs: Iterable[tuple[Site, Site]]) -> None:
        """Note the wait that a path has passed, for each pair."""
        if (wait := self.passed_wait(state)) is not None:
            for pair in pairs:
                self.missed.setdefault(pair, (wait, state.sites))


class ReadsBehindNull(_NullWaitsMissed, EarlyReads):
    """Early reads of copies on other streams behind a wait for the null stream."""

    def _report(self, state: State, read: Site, name: str) -> None:
        if self.passed_wait(state) is not None:
            super()._report(state, read, name)
            self.note_missed(state, self._found)


class ReusesBehindNull(_NullWaitsMissed, Reuses):
    """Memory of copies on other streams that the host writes behind a wait for the null stream."""

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        is_reached = super().meets(state, one, action)
        self.note_missed(state, self._found if is_reached else ())
        return is_reached


class MissedWork(NamedTuple):
    """Work on another stream, and what comes too early behind it: the copy ``second``, or what ``wait`` was to order."""

    first: Site
    lane: Lane
    second: Site
    wait: NullWait | None
    calls: tuple[Site, ...]


class _WaitingToo(Beginnings):
    """Looks for work, copies for which the host waits among it."""

    waiting = True


class RacesBehindNull(PassingNull, Races):
    """Races of work on other streams with copies that are queued on the null stream, and with work behind a wait for it."""

    begins = _WaitingToo

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.missed: dict[tuple[Site, NullWait | None], MissedWork] = {}

    def is_wanted(self, lane: Lane) -> bool:
        """Whether work on a stream is followed."""
        raise NotImplementedError

    def is_legacy(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction is a copy on the null stream, for which the host waits."""
        raise NotImplementedError

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        if work.stream.kind != NULL and self.is_wanted(self.lanes.of(Frame(function, None, None, 0), one, work.stream)):
            super()._follow_work(function, one, work)

    def _report(self, state: State, one: Instruction, use: Worked, other: Lane) -> bool:
        function = state.frame.function
        is_legacy = self.is_legacy(function, one)
        wait = None if is_legacy else self.passed_wait(state)
        if not is_legacy and wait is None:
            return False
        second = Site(function, one)
        self.missed.setdefault((second, wait), MissedWork(self._site, self._lane, second, wait, state.frame.calls))
        return True
