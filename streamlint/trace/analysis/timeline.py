"""The run of one process, in the order of its launches: which call started which work, and which threads take turns."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlint.trace.model import Call, Stream, Trace, Work

_OVERLAPS = 0.02
"""Share of a thread's calls that may overlap calls of the main thread although both take turns: clocks are read at different moments."""
_TURN = 3
"""Calls that a thread makes at least, on average, before the main thread goes on, if both take turns."""


@record(slots=True)
class Timeline:
    """One process. Works stand in the order of their launches, calls in that of their starts; both are named by their index."""

    process: int
    calls: list[Call]
    works: list[Work]
    launcher: list[int]  # of each work, the call that launched it
    launched: dict[int, list[int]]  # of a call, its works
    orphans: set[int]  # works whose call was not recorded: their launcher is the last call before their start
    lanes: list[int]  # of each call; threads that take turns share a lane, the main thread's is 0
    streams: dict[int, Stream] = field(default_factory=dict)
    overhead: int = 0  # ns that its record adds to each call
    joined: dict[int, int] = field(default_factory=dict)  # of works that waited for other ranks: when the last one took part

    @property
    def begin(self) -> int:
        """The start of the first call or work, in ns."""
        return min([self.calls[0].start, *(work.start for work in self.works[:1])])


def timelines(trace: Trace) -> list[Timeline]:
    """The processes of a run that made calls, by number."""
    calls: dict[int, list[Call]] = defaultdict(list)
    works: dict[int, list[Work]] = defaultdict(list)
    for call in sorted(trace.calls, key=lambda one: one.start):
        calls[call.process].append(call)
    for work in sorted(trace.works, key=lambda one: one.start):
        works[work.process].append(work)
    return [_timeline(trace, process, calls[process], works[process]) for process in sorted(calls)]


def _timeline(trace: Trace, process: int, calls: list[Call], works: list[Work]) -> Timeline:
    by_correlation = {call.correlation: number for number, call in enumerate(calls) if call.correlation}
    starts = [call.start for call in calls]
    found: list[tuple[int, int, Work, bool]] = []
    for order, work in enumerate(works):
        number = by_correlation.get(work.correlation, -1) if work.correlation else -1
        is_orphan = number < 0
        if is_orphan:
            number = max(bisect_right(starts, work.start) - 1, 0)
        found.append((number, order, work, is_orphan))
    found.sort(key=lambda one: one[:2])
    launched: dict[int, list[int]] = {}
    for index, (number, *_) in enumerate(found):
        launched.setdefault(number, []).append(index)
    main = trace.main_threads.get(process, calls[0].thread)
    names = {thread: name for (owner, thread), name in trace.thread_names.items() if owner == process}
    return Timeline(
        process,
        calls,
        [work for _, _, work, _ in found],
        [number for number, *_ in found],
        launched,
        {index for index, one in enumerate(found) if one[3]},
        _lanes(calls, main, names),
        {number: stream for (owner, number), stream in trace.streams.items() if owner == process},
        trace.overhead,
    )


def _lanes(calls: Sequence[Call], main: int, names: dict[int, str]) -> list[int]:
    """A lane for each call. Autograd's thread, for example, works while the main thread stands in ``backward()``: they take turns."""
    turns = _takes_turns(calls, main, names)
    numbers = {main: 0, **dict.fromkeys(turns, 0)}
    for call in calls:
        if call.thread not in numbers:
            numbers[call.thread] = max(numbers.values()) + 1
    return [numbers[call.thread] for call in calls]


def _takes_turns(calls: Sequence[Call], main: int, names: dict[int, str]) -> list[int]:
    """The threads whose calls do not overlap those of the main thread, nor of one another, and come in rows."""
    count: dict[int, int] = defaultdict(int)
    rows: dict[int, int] = defaultdict(int)
    for call in calls:
        count[call.thread] += 1
    if len(count) == 1:
        return []
    since: set[int] = set()  # threads with calls since the last one of the main thread
    for call in calls:
        if call.thread == main:
            since.clear()
        elif call.thread not in since:
            since.add(call.thread)
            rows[call.thread] += 1
    likely = {
        thread
        for thread, number in count.items()
        if thread != main and (number >= _TURN * rows[thread] or "autograd" in names.get(thread, ""))
    }
    overlaps = _overlaps(calls, {main, *likely})
    return sorted(thread for thread in likely if overlaps[thread] <= _OVERLAPS * count[thread])


def _overlaps(calls: Iterable[Call], threads: set[int]) -> dict[int, int]:
    """Of each thread the number of its calls that begin in one of another thread, or in which one of another begins."""
    found: dict[int, int] = defaultdict(int)
    latest: Call | None = None  # the call that ends last so far
    for call in calls:
        if call.thread not in threads:
            continue
        if latest is not None and latest.thread != call.thread and call.start < latest.end:
            found[call.thread] += 1
            found[latest.thread] += 1
        if latest is None or call.end >= latest.end:
            latest = call
    return found
