"""What a run would take without the waits of a line: the recorded timeline played again, with the host not held there.

The host does all else as before, in the same order; threads move together. The device keeps its order: work begins once it is launched, the
work before it on its stream is done, and so is all that was done before it when the run was recorded. Other waits stay, and end when
the work that ended them before is done: so the next wait that cannot be left out bounds what one without this one can gain.
It is an estimate: that the host can go on without the value it waited for is assumed.
"""

from __future__ import annotations

import bisect
import heapq
from collections import defaultdict
from collections.abc import Collection, Sequence

from streamlint.records import field, record
from streamlint.trace.kinds import COPY, WAIT, kind_of
from streamlint.trace.model import Call, Work

NEAR = 20_000  # ns within which a wait ends after the work that it waited for
SHORT = 5_000  # ns that a call takes which does not wait


@record(slots=True)
class _Queue:
    """What was launched on a stream: recorded ends, and simulated ones."""

    recorded: list[int] = field(default_factory=list)
    simulated: list[int] = field(default_factory=list)


class Simulation:
    """The calls of one process, to be played again and again."""

    def __init__(self, calls: Sequence[Call], works: Sequence[Work]) -> None:
        self._calls = calls
        started: dict[int, list[Work]] = defaultdict(list)
        for work in works:
            started[work.correlation].append(work)
        self._works = [started.get(call.correlation, []) if call.correlation else [] for call in calls]
        lags = [work.start - call.start for call, mine in zip(calls, self._works, strict=True) for work in mine]
        self._lag = max(min(lags, default=0), 0)
        self._waits = [self._may_wait(call, mine) for call, mine in zip(calls, self._works, strict=True)]
        self._as_it_was = self._play(frozenset())

    def gain(self, without: Collection[int]) -> int:
        """By how much the run would be shorter without the waits in some calls, which are given by their numbers; in ns."""
        return max(self._as_it_was - self._play(without), 0)

    @staticmethod
    def _may_wait(call: Call, works: Sequence[Work]) -> bool:
        """Whether a call held the host until work was done: a wait, or a copy that returned when it had ended."""
        kind = kind_of(call.name)
        return kind == WAIT or (kind == COPY and any(call.end >= work.end - NEAR // 4 for work in works))

    def _play(self, without: Collection[int]) -> int:
        """When the run is over, with the host not held in some calls."""
        queues: dict[tuple[int, int], _Queue] = defaultdict(_Queue)
        done: list[tuple[int, int]] = []  # recorded and simulated ends of work, the earliest first
        before = shift = last = 0
        for number, call in enumerate(self._calls):
            start = call.start + shift
            for work in self._works[number]:
                while done and done[0][0] <= work.start:
                    before = max(before, heapq.heappop(done)[1])
                queue = queues[work.device, work.stream]
                begin = max(start + self._lag, before, queue.simulated[-1] if queue.simulated else 0)
                end = begin + work.end - work.start
                queue.recorded.append(work.end)
                queue.simulated.append(end)
                heapq.heappush(done, (work.end, end))
                last = max(last, end)
            if number in without:
                shift = start + min(call.end - call.start, SHORT) - call.end
            elif self._waits[number]:
                shift = self._end_of_wait(call, start, queues) - call.end
            last = max(last, call.end + shift)
        return last

    @staticmethod
    def _end_of_wait(call: Call, start: int, queues: dict[tuple[int, int], _Queue]) -> int:
        """When a wait ends that begins at another time: behind the work that had ended when it did, also if that was long ago."""
        recorded = simulated = 0
        for queue in queues.values():
            at = bisect.bisect_right(queue.recorded, call.end + NEAR // 4) - 1
            if at >= 0 and queue.recorded[at] > recorded:
                recorded, simulated = queue.recorded[at], queue.simulated[at]
        return max(start, simulated) + max(call.end - max(call.start, recorded), 0)
