"""Idle time of GPUs, and the waits that it follows from.

A gap begins when a GPU has done all that was launched, and ends with the next work. It follows from the wait in which the launching
thread was held when it began: behind it, the thread has to refill an empty queue. Calls that hold the thread within the gap
have as much of it as they last. A gap without such calls belongs to nobody: the thread was busy with something else, such as a loader.

No wait can cost more time than it held its thread, however long the gap behind it is. So the avoidable part is counted beside: each wait
opens a credit of the time that it held the thread; gaps that the thread ends take from it, the latest wait first, also later ones, for
as long as the thread launches no faster than the GPU works. A wait for the GPU at another place closes the credits before it: the thread
would have been held there instead.
"""

from __future__ import annotations

from collections import defaultdict, deque

from streamlint import TYPE_CHECKING
from streamlint.support.records import record
from streamlint.trace.analysis.places import NO_GROUP
from streamlint.trace.kinds import may_block
from streamlint.trace.spans import joined_spans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlint.trace.analysis.places import Group, Groups
    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.analysis.waits import Waits
    from streamlint.trace.model import Call, Work
    from streamlint.trace.spans import Span

_NEAR = 5_000
"""Nanoseconds before the end of the last work at which the wait for it may seem to end: clocks of host and GPU differ a little."""
_SHARED = 0.05
"""Share of the smaller busy time by which works of two processes may overlap on one GPU; beyond, their equal numbers mean two GPUs."""


@record(frozen=True, slots=True)
class Gap:
    """Time in which a GPU had nothing to do. ``process`` and ``work`` say which work ended it."""

    start: int
    end: int
    process: int
    work: int


def gaps_of(timelines: Sequence[Timeline]) -> list[Gap]:
    """The gaps between the first and the last work of each GPU, by start: the GPU works where any stream of any process does."""
    found: list[Gap] = []
    for shared in _devices(timelines):
        works = sorted((one.works[index].start, one.works[index].end, one.process, index) for one, indexes in shared for index in indexes)
        busy = works[0][1]
        for start, end, process, index in works:
            if start > busy:
                found.append(Gap(busy, start, process, index))
            busy = max(busy, end)
    return sorted(found, key=lambda gap: (gap.start, gap.end))


def idle_time(timelines: Sequence[Timeline], wall: int) -> int:
    """The time of a run in which GPUs had no work, from its start to its end; the sum of the GPUs that had any."""
    found = 0
    for shared in _devices(timelines):
        busy = joined_spans(_time(one.works[index]) for one, indexes in shared for index in indexes)
        found += max(0, wall - sum(end - start for start, end in busy))
    return found


def _devices(timelines: Sequence[Timeline]) -> list[list[tuple[Timeline, list[int]]]]:
    """The works of each GPU, by process. Kernels of two processes take turns on one GPU: where they overlap, the GPUs are two."""
    found: list[list[tuple[Timeline, list[int]]]] = []
    by_number: dict[int, list[tuple[list[tuple[int, int]], list[tuple[Timeline, list[int]]]]]] = defaultdict(list)
    for timeline in timelines:
        mine: dict[int, list[int]] = defaultdict(list)
        for index, work in enumerate(timeline.works):
            mine[work.device].append(index)
        for device, indexes in sorted(mine.items()):
            busy = joined_spans(_time(timeline.works[index]) for index in indexes)
            place = next((one for one in by_number[device] if _take_turns(one[0], busy)), None)
            if place is None:
                shared: list[tuple[Timeline, list[int]]] = []
                by_number[device].append((busy, shared))
                found.append(shared)
            else:
                shared = place[1]
            shared.append((timeline, indexes))
    return found


def _time(work: Work) -> Span:
    return work.start, work.end


def _take_turns(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> bool:
    """Whether two processes hardly ever worked at once."""
    overlap, at = 0, 0
    for start, end in one:
        while at < len(other) and other[at][1] <= start:
            at += 1
        following = at
        while following < len(other) and other[following][0] < end:
            overlap += min(end, other[following][1]) - max(start, other[following][0])
            following += 1
    smaller = min(sum(end - start for start, end in spans) for spans in (one, other))
    return overlap <= _SHARED * smaller


def attribute(gaps: Sequence[Gap], timelines: Sequence[Timeline], waits: Sequence[Waits], groups: Groups) -> None:
    """Add to each group the idle time that follows from its calls, and the avoidable part of it."""
    by_process: dict[int, dict[int, list[Gap]]] = defaultdict(lambda: defaultdict(list))
    launchers = {one.process: one for one in timelines}
    for gap in gaps:
        timeline = launchers[gap.process]
        if gap.work not in timeline.orphans:
            by_process[gap.process][timeline.launcher[gap.work]].append(gap)
    for timeline, waited in zip(timelines, waits, strict=True):
        lanes: dict[int, _Lane] = {}
        mine = by_process[timeline.process]
        for index, call in enumerate(timeline.calls):
            lane = lanes.get(timeline.lanes[index])
            if lane is None:
                lane = lanes[timeline.lanes[index]] = _Lane(groups.groups)
            number = groups.of_calls[timeline.process][index]
            blocks = number != NO_GROUP and may_block(call.name) and not call.capturing
            wait = waited.of_calls.get(index)
            held = _Held(call, number, wait is not None and wait.waited, waited.excess(call)) if blocks else None
            for gap in mine.get(index, ()):
                if held is not None or call.start > gap.start:  # else its work had been launched before: none of the host's
                    lane.follow(gap, call, held)
                    lane.avoid(gap, call, held)
            if held is not None:
                lane.hold(held)


@record(slots=True)
class _Held:
    """A call that held its thread; ``excess`` is how much longer than it takes without a wait, less what gaps took."""

    call: Call
    group: int
    waited: bool  # for the GPU
    excess: int


class _Lane:
    """The calls that held a thread."""

    def __init__(self, groups: Sequence[Group]) -> None:
        self._groups = groups
        self._recent: deque[_Held] = deque()
        self._credits: list[tuple[int, int]] = []  # group, ns; the latest last

    def hold(self, held: _Held) -> None:
        """A call held the thread."""
        self._recent.append(held)
        if held.excess <= 0:
            return
        if held.waited:
            place = self._groups[held.group].place
            self._credits = [one for one in self._credits if self._groups[one[0]].place == place]
        if self._credits and self._credits[-1][0] == held.group:
            held.excess += self._credits.pop()[1]
        self._credits.append((held.group, held.excess))

    def follow(self, gap: Gap, call: Call, held: _Held | None) -> None:
        """A call ends a gap: give it to the calls that it follows from."""
        while self._recent and self._recent[0].call.end < gap.start - _NEAR:
            self._recent.popleft()
        left, cause = gap.end - gap.start, NO_GROUP
        for one in (*self._recent, *([held] if held is not None else [])):
            if one.waited and one.call.start <= gap.start and one.call is not call:
                cause = one.group
            elif one.call.end > gap.start:
                within = min(one.call.end, gap.end) - max(one.call.start, gap.start)
                self._groups[one.group].idle += within
                left -= within
        if cause != NO_GROUP:
            self._groups[cause].idle += left

    def avoid(self, gap: Gap, call: Call, held: _Held | None) -> None:
        """A call ends a gap: take the avoidable part of it from the credits, that of the call itself first."""
        left = gap.end - gap.start
        if held is not None:
            own = max(0, min(left, held.excess, gap.end - call.start))
            self._groups[held.group].avoidable += own
            held.excess -= own
            left -= own
        while left > 0 and self._credits and call.start > gap.start:
            number, credit = self._credits.pop()
            taken = min(left, credit)
            self._groups[number].avoidable += taken
            left -= taken
            if credit > taken:
                self._credits.append((number, credit - taken))
