"""The recorded timeline of a process as a program that can be replayed without some of its waits.

Threads keep the time between their calls, launches what they cost, work its duration. Work starts after its launch, after the work before
it in its stream, after what the default stream makes it wait for, and after work of another stream if the recording shows it to start
right then (an event, a busy copy engine), or if it is the first of another stream behind a wait for an event. Waits end when what they
waited for has ended, and take at least what such a call takes. A wait that is removed takes only that, and its copies what copies of
pinned memory take. Where the host waited for an event, a stream does so in the repaired program: later work starts after it all the same.
Run unchanged, the program gives the recorded times.

A program can also be written without what recording took of the host's time: between calls, in calls, and from a launch to the start of its
work. Work keeps its duration, which records do not change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.analysis.places import NO_GROUP
from streamlint.trace.analysis.rates import pinned_time
from streamlint.trace.analysis.streams import blocking_streams
from streamlint.trace.analysis.waits import DEVICE, STREAM, tenth
from streamlint.trace.kinds import may_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.analysis.waits import Wait, Waits
    from streamlint.trace.model import Call

    Rates = dict[tuple[str, str], float]
    # Slot of the stream; ns from the call's start, from the end of the work before; duration; further conditions.
    Launched = tuple[int, int, int, int, tuple[tuple[int, int, int], ...]]
    # Lane, ns since the lane's last call, duration, work, mode, target and tail of the wait; duration and work without the wait; whether
    # later work starts after what it waited for all the same.
    Step = tuple[int, int, int, tuple[Launched, ...], int, int, int, int, tuple[Launched, ...], bool]

_LAG, _GAP = 5_000, 1_000  # ns from a launch to the start of its work, and between works of a stream, where the run shows none
_MOST = 4  # times as long as that, no stream without other reasons takes
_SLACK = 3_000
"""Nanoseconds that work starts late before another reason is looked for."""
_LATE = 20_000
_STEPS = 8  # works that are looked at, back in time, in search of that reason
LEFT = 0.3
"""Share of the host's time that is left at least, however much was recorded in it."""
SLOWER = 2
"""How many times as long as usual records may have taken: a host whose caches are cold behind a wait is slow in these as well."""
_NEVER = -(1 << 62)
NO_SOURCE = NO_WORK = -1
_LAST, _FRONT, _END = range(3)  # where the end of a condition of work, or of a wait, is found: by stream, by front, by work
_MOMENT, _BEGIN = 3, [0]  # a moment of the recording is that long after its clock's beginning
_ALL, _DEFAULT, _BLOCKING = range(3)  # the fronts of a device: the latest end of all its work, on the default stream, on blocking ones
_KINDS = 3


@record(slots=True)
class Program:
    """A process as steps. ``of_groups`` says which steps a group's calls are."""

    steps: list[Step] = field(default_factory=list)
    of_groups: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    clocks: list[int] = field(default_factory=list)  # of each lane, at the start
    rest: list[int] = field(default_factory=list)  # of each lane, ns after its last step
    slots: list[tuple[int, ...]] = field(default_factory=list)  # of each stream, the fronts that its work moves
    devices: int = 0
    end: int = 0  # as recorded

    def run(self, gone: Iterable[int] = (), held: list[int] | None = None) -> int:
        """The time at which the process ends without the waits of some steps, in ns.

        ``held`` is given, for each step, how long it holds its thread beyond what it takes without its wait.
        """
        flags = bytearray(len(self.steps))
        for number in gone:
            flags[number] = 1
        clocks, last = list(self.clocks), [_NEVER] * len(self.slots)
        fronts = [_NEVER] * (_KINDS * self.devices)
        ends: list[int] = []
        sources, add, slots = (last, fronts, ends, _BEGIN), ends.append, self.slots
        ordered = _NEVER
        for (lane, pause, base, works, mode, target, tail, freed, freed_works, orders), is_gone in zip(self.steps, flags, strict=True):
            start = clocks[lane] + pause
            for slot, lag, space, length, more in freed_works if is_gone else works:
                end = start + lag
                if last[slot] + space > end:
                    end = last[slot] + space
                if ordered > end:
                    end = ordered
                for source, number, distance in more:
                    end = max(end, sources[source][number] + distance)
                end += length
                last[slot] = end
                add(end)
                for number in slots[slot]:
                    if end > fronts[number]:
                        fronts[number] = end
            if is_gone:
                clocks[lane] = start + freed
                if orders:
                    ordered = max(ordered, sources[mode][target])
            elif mode == NO_SOURCE:
                clocks[lane] = start + base
            else:
                clocks[lane] = max(start + base, sources[mode][target] + tail)
            if held is not None:
                held.append(clocks[lane] - start - freed)
        ended = [clock + rest for clock, rest in zip(clocks, self.rest, strict=True)]
        return max(ended + fronts)


def program_of(timeline: Timeline, waits: Waits, groups: Sequence[int], rates: Rates, end: int, *, unrecorded: bool = False) -> Program:
    """Translate a process. ``groups`` has the group of each call, ``end`` is when the process ended, in ns.

    ``rates`` are those of copies of pinned memory. ``unrecorded`` takes out what recording took of the host's time.
    """
    writer = _Writer(timeline, waits, rates, unrecorded)
    return writer.write(groups, end)


@record(slots=True)
class _Pace:
    """How fast a stream takes up work: short times of the run, by kind of work."""

    lag: dict[str, int]
    space: int

    @classmethod
    def of(cls, timeline: Timeline) -> _Pace:
        lags: dict[str, list[int]] = defaultdict(list)
        spaces: list[int] = []
        ends: dict[int, int] = {}
        for index, work in enumerate(timeline.works):
            call = timeline.calls[timeline.launcher[index]]
            before = ends.get(work.stream, call.start)
            if before > call.end:
                spaces.append(max(work.start - before, 0))
            elif before <= call.start <= work.start:
                lags[work.kind].append(work.start - call.start)
            ends[work.stream] = work.end
        return cls({kind: _short(values, _LAG) for kind, values in lags.items()}, _short(spaces, _GAP))


def _short(values: list[int], otherwise: int) -> int:
    """What a tenth of the values do not exceed: most of them may have waited for something else besides."""
    return min(tenth(values), _MOST * otherwise) if values else otherwise


class _Writer:
    """Translates calls and work in order, with the recorded ends up to there."""

    def __init__(self, timeline: Timeline, waits: Waits, rates: Rates, unrecorded: bool) -> None:
        self.timeline, self.waits, self.rates = timeline, waits, rates
        self._of_call = timeline.overhead if unrecorded else 0
        self._unrecorded = unrecorded
        self.program = Program()
        self.pace = _Pace.of(timeline)
        self._slots: dict[int, int] = {}
        self._devices: dict[int, int] = {}
        self._last: dict[int, int] = {}  # recorded end of a slot's last work
        self._fronts: list[int] = []
        self._barriers: dict[int, int] = {}  # of streams, the front of what their work waits for besides
        self._defaults, self._blocking = blocking_streams(timeline)
        self._ends = sorted((work.end, index) for index, work in enumerate(timeline.works))
        self._latest = self._before_record = self._awaited = NO_WORK  # launched last, before the last record of an event, and before one
        # that a stream waits for

    def write(self, groups: Sequence[int], end: int) -> Program:
        timeline, program = self.timeline, self.program
        self._register()
        lanes = max(timeline.lanes) + 1
        clocks = [timeline.begin] * lanes
        pauses = [0] * lanes  # of each lane, the time since its last step
        program.end, program.clocks = end, list(clocks)
        for index, call in enumerate(timeline.calls):
            lane = timeline.lanes[index]
            pauses[lane] += self._pause(call, call.start - clocks[lane])
            clocks[lane] = call.end
            self._events(call)
            group = groups[index] if may_block(call.name) and not call.capturing else NO_GROUP
            if group == NO_GROUP and index not in self.waits.of_calls and index not in timeline.launched:
                pauses[lane] += self._without(call.end - call.start)
                continue
            if group != NO_GROUP:
                program.of_groups[group].append(len(program.steps))
            program.steps.append(self._step(index, call, pauses[lane], group != NO_GROUP))
            pauses[lane] = 0
        program.rest = pauses
        program.rest[0] += max(end - clocks[0], 0)
        return program

    def _events(self, call: Call) -> None:
        """Keep what was launched before an event was recorded that a stream is made to wait for; the recording does not name either."""
        if call.name.endswith("EventRecord") or call.name.endswith("EventRecordWithFlags"):
            self._before_record = self._latest
        elif call.name.endswith("StreamWaitEvent"):
            self._awaited = self._before_record

    def _pause(self, call: Call, length: int) -> int:
        """What is left of the time before a call without what was recorded meanwhile."""
        return max(length - SLOWER * call.overhead, round(length * LEFT)) if self._unrecorded and length > 0 else length

    def _without(self, length: int) -> int:
        """What is left of the time of a call without its record."""
        return max(length - self._of_call, round(length * LEFT)) if length > 0 else length

    def _step(self, index: int, call: Call, pause: int, is_removable: bool) -> Step:
        works = tuple([self._launched(work) for work in self.timeline.launched.get(index, ())])
        wait = self.waits.of_calls.get(index)
        base, tail = (wait.base, wait.tail) if wait else (call.end - call.start, 0)
        base = self._without(base)
        mode, target = self._source(wait) if wait else (NO_SOURCE, 0)
        freed, freed_works = base, works
        if is_removable:
            freed = self._without(self.waits.without_wait(call))
            freed_works = self._freed(index, works)
        orders = mode != NO_SOURCE and call.name.endswith("EventSynchronize")
        return self.timeline.lanes[index], pause, base, works, mode, target, tail, freed, freed_works, orders

    def _freed(self, index: int, works: tuple[Launched, ...]) -> tuple[Launched, ...]:
        """The work of a call that holds nobody: launched at once, its host memory pinned."""
        lag = self._lag("copy")
        times = [pinned_time(self.timeline.works[work], self.rates) for work in self.timeline.launched.get(index, ())]
        return tuple([(slot, min(usual, lag), space, time, more) for (slot, usual, space, _, more), time in zip(works, times, strict=True)])

    def _source(self, wait: Wait) -> tuple[int, int]:
        """Where a run finds the end that a wait waits for."""
        if wait.mode == STREAM:
            return _LAST, self._slots[wait.target]
        if wait.mode == DEVICE:
            return _FRONT, _KINDS * self._devices[wait.target] + _ALL
        return _END, wait.target

    def _register(self) -> None:
        """Number streams, and devices by their own numbers."""
        for work in self.timeline.works:
            first = _KINDS * self._devices.setdefault(work.device, len(self._devices))
            if work.stream in self._slots:
                continue
            self._slots[work.stream] = len(self.program.slots)
            fronts = [first + _ALL]
            if self._blocking and work.stream in self._defaults | self._blocking:
                is_default = work.stream in self._defaults
                fronts.append(first + (_DEFAULT if is_default else _BLOCKING))
                self._barriers[work.stream] = first + (_BLOCKING if is_default else _DEFAULT)
            self.program.slots.append(tuple(fronts))
        self.program.devices = len(self._devices)
        self._fronts = [_NEVER] * (_KINDS * len(self._devices))

    def _lag(self, kind: str) -> int:
        return self.pace.lag.get(kind, _LAG)

    def _launched(self, index: int) -> Launched:
        """When work may start: what it started after in the recording stays exact, other conditions may come to bind."""
        work = self.timeline.works[index]
        slot = self._slots[work.stream]
        called = self.timeline.calls[self.timeline.launcher[index]].start
        before = self._last.get(slot, _NEVER)
        lag, space = work.start - called, work.start - before
        usual_lag, usual_space = min(lag, self._lag(work.kind)), min(space, self.pace.space)
        ready = max(called + usual_lag, before + usual_space)
        more, is_reason = self._conditions(index, ready)
        if not is_reason:  # a delay is the launch's, or the stream's
            if before + usual_space > called + usual_lag:
                usual_space = space
            else:
                usual_lag = lag
        self._last[slot], self._latest = work.end, index
        for number in self.program.slots[slot]:
            self._fronts[number] = max(self._fronts[number], work.end)
        joined = self.timeline.joined.get(index)
        if joined is not None:  # it ran on until the last rank took part, and would do so if it had begun earlier
            return slot, self._without(usual_lag), usual_space, work.end - joined, (*more, (_MOMENT, 0, joined))
        return slot, self._without(usual_lag), usual_space, work.end - work.start, more

    def _conditions(self, index: int, ready: int) -> tuple[tuple[tuple[int, int, int], ...], bool]:
        """What else work waits for, with the time from there to its start if it did wait, and whether it did."""
        work = self.timeline.works[index]
        found: list[tuple[int, int, int]] = []
        barrier = self._barriers.get(work.stream)
        if barrier is not None and _NEVER < self._fronts[barrier] <= work.start:
            front = self._fronts[barrier]
            if front > ready and work.start - front <= _LATE:
                return ((_FRONT, barrier, work.start - front),), True
            found.append((_FRONT, barrier, 0))
        awaited = self._awaited
        if awaited != NO_WORK and self.timeline.works[awaited].stream != work.stream:
            self._awaited = NO_WORK
            if self.timeline.works[awaited].end <= work.start:
                found.append((_END, awaited, 0))
        if work.start - ready > _SLACK and (reason := self._reason(index, ready)) is not None:
            found.append((_END, reason, work.start - self.timeline.works[reason].end))
            return tuple(found), True
        return tuple(found), False

    def _reason(self, index: int, ready: int) -> int | None:
        """The work of another stream, launched earlier, that ended right before work started, and later than it was ready."""
        work = self.timeline.works[index]
        at = bisect_right(self._ends, (work.start, len(self._ends)))
        for end, other in reversed(self._ends[max(at - _STEPS, 0) : at]):
            if end <= ready or work.start - end > _LATE:
                return None
            if other < index and self.timeline.works[other].stream != work.stream:
                return other
        return None
