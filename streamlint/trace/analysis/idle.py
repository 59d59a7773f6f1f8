"""Idle time of the GPU, and the calls that it follows from."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Sequence

from streamlint.trace.model import Call, Trace, Work

SHORTEST = 2_000  # ns: between kernels that follow each other there is always a little
NEAR = 20_000  # ns between the end of the last work and the end of the wait for it
Span = tuple[int, int]


def by_process(ones: Iterable[Work]) -> dict[int, list[Work]]:
    """Work in its order, for each process."""
    found: dict[int, list[Work]] = defaultdict(list)
    for one in ones:
        found[one.process].append(one)
    return found


def gaps(works: Sequence[Work], start: int, end: int) -> list[Span]:
    """Where a process had no work on any device between two times, in order; ``works`` by start."""
    found, reached = [], start
    for work in works:
        if work.start - reached >= SHORTEST:
            found.append((reached, work.start))
        reached = max(reached, work.end)
    if end - reached >= SHORTEST:
        found.append((reached, end))
    return found


def idle_by_call(trace: Trace, blocking: Sequence[Call]) -> list[int]:
    """For each blocking call the idle time that follows because of it, in ns. Calls and work are in order.

    A gap begins when the device has done all that was launched. The call in which the host was held at that moment has caused it: behind
    that call the host has to launch anew. A call that holds the host within a gap has caused as much of it as it lasted. Time before the
    first work and after the last one has no cause.
    """
    idle = [0] * len(blocking)
    works = by_process(trace.works)
    for process, mine in works.items():
        numbers = [number for number, call in enumerate(blocking) if call.process == process]
        starts = [blocking[number].start for number in numbers]
        longest = max((blocking[number].end - blocking[number].start for number in numbers), default=0)
        for begin, end in gaps(mine, mine[0].start, max(work.end for work in mine)):
            first = bisect.bisect_left(starts, begin - longest)
            last = bisect.bisect_left(starts, end)
            near = [number for number in numbers[first:last] if blocking[number].end >= begin - NEAR]
            _share_out(idle, blocking, near, (begin, end))
    return idle


def _share_out(idle: list[int], blocking: Sequence[Call], near: Sequence[int], gap: Span) -> None:
    """Give the time of one gap to its calls."""
    begin, end = gap
    cause = max((number for number in near if blocking[number].start <= begin), key=lambda number: blocking[number].end, default=None)
    left, reached = end - begin, begin
    for number in near:
        call = blocking[number]
        if number == cause or call.start <= begin:
            continue
        own = max(min(call.end, end) - max(call.start, reached), 0)
        reached = max(reached, call.end)
        idle[number] += own
        left -= own
    if cause is not None:
        idle[cause] += left
