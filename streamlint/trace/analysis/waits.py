"""What held the host in each call: the work that a call waited for, and what it takes without a wait.

Sources: CUDA Runtime API reference (13.0), "API synchronization behavior": copies between device and pageable memory return when the copy,
or its staging, has ended; `cudaFree` synchronizes. What the recording shows decides where the reference leaves it open.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.kinds import ALLOCATE, COPY, FREE, LAUNCH, PIN, WAIT, is_direct, kind_of, may_block

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.model import Call

OWN, STREAM, DEVICE, WORK = range(4)
FULL_QUEUE = 512
"""Launches of a stream that are pending when a long launch is put down to a full queue; drivers hold about 1,000."""
_CALL = 2_000
"""Nanoseconds that a call takes without a wait where the run has no example."""
_TAIL = 5_000
"""Nanoseconds from the end of the work to the end of the wait for it where the run has no example."""
_LONG_LAUNCH = 20_000
_STAGED = 2 << 20
"""Bytes of pageable memory up to which uploads did not hold the host on an H100 with a busy stream."""
_STAGING = 30_000
"""Nanoseconds that such an upload takes at most, beside half a nanosecond for each byte."""
_VALUE = 64
"""Bytes up to which a copy to the host is taken for the read of a value, which a repair leaves on the device."""
_LONGER = 4
"""How many times as long as the shortest allocation one takes that waited for the GPU."""
_SKEW = 5_000
"""Nanoseconds by which work may seem to end behind the wait for it: clocks of host and GPU differ a little."""
_STEPS = 64  # back in time, in search of the work that a wait waited for


@record(slots=True)
class Wait:
    """What a call waits for. ``mode`` says what ``target`` names: work for OWN and WORK, a stream's number, a device's number."""

    mode: int
    target: int
    tail: int  # ns from the end of the work to the end of the call
    waited: bool  # whether the work ended after the call's start
    base: int  # ns that the call takes without the wait


@record(slots=True)
class Waits:
    """The waits of a process's calls, by index; calls that wait for nothing have none."""

    of_calls: dict[int, Wait] = field(default_factory=dict)
    full: set[int] = field(default_factory=set)  # launches that waited for a place in the queue
    usual: dict[str, int] = field(default_factory=dict)  # ns that a call of a name takes without a wait

    def without_wait(self, call: Call) -> int:
        """What is left of a call whose wait is removed: nothing of one that need not be made, else what such calls take.

        A few bytes that the host reads stay on the device in the repaired program: their copy need not be made.
        """
        if kind_of(call.name) in (ALLOCATE, FREE, PIN, WAIT) or _reads_value(call):
            return 0
        return min(call.end - call.start, self.usual.get(call.name, _CALL))

    def excess(self, call: Call) -> int:
        """How long a call held the host beyond that."""
        return call.end - call.start - self.without_wait(call)


def waits_of(timeline: Timeline) -> Waits:
    """Find out what each call of a process waited for."""
    reader = _Reader(timeline)
    reader.read()
    return reader.waits


def tenth(values: list[int]) -> int:
    """The value that a tenth of the values do not exceed; needs one at least."""
    return sorted(values)[(len(values) - 1) // 10]


class _Reader:
    """Goes through calls in order, and knows the last work of each stream and device up to there."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.waits = Waits()
        self._last: dict[int, int] = {}  # of each stream its last work
        self._front: dict[int, int] = {}  # of each device the work that ends last
        self._device: dict[int, int] = {}  # that each lane used last
        self._ends = sorted((work.end, index) for index, work in enumerate(timeline.works))
        self._ends_of: dict[int, list[int]] = defaultdict(list)  # of each stream's works in order
        self._recorded: deque[int] = deque(maxlen=64)  # work before the latest records of events
        self._shortest: dict[str, int] = {}
        for call in timeline.calls:
            self._shortest[call.name] = min(call.end - call.start, self._shortest.get(call.name, call.end - call.start))
        self._usual_launch = _usual(timeline.calls, lambda call: kind_of(call.name) == LAUNCH)

    def read(self) -> None:
        """Fill ``waits``; the usual tail and duration are taken from the calls themselves in the end."""
        handlers: dict[str, Callable[[int, Call], Wait | None]] = {
            WAIT: self._of_wait,
            COPY: self._of_copy,
            ALLOCATE: self._of_memory,
            FREE: self._of_memory,
            PIN: self._of_memory,
            LAUNCH: self._of_launch,
        }
        found = self.waits.of_calls
        latest: dict[int, int] = {}  # of each lane its last work
        for index, call in enumerate(self.timeline.calls):
            for work in self.timeline.launched.get(index, ()):
                self._take(work, index)
                latest[self.timeline.lanes[index]] = work
            if call.name.endswith("EventRecord") and self.timeline.lanes[index] in latest:
                self._recorded.append(latest[self.timeline.lanes[index]])
            handler = None if call.capturing or call.failed else handlers.get(kind_of(call.name))
            wait = handler(index, call) if handler else None
            if wait is not None:
                found[index] = wait
        self._set_bases()

    def _take(self, index: int, call: int) -> None:
        work = self.timeline.works[index]
        self._last[work.stream] = index
        self._device[self.timeline.lanes[call]] = work.device
        front = self._front.get(work.device)
        if front is None or self.timeline.works[front].end <= work.end:
            self._front[work.device] = index
        ends = self._ends_of[work.stream]
        ends.append(max(work.end, ends[-1]) if ends else work.end)

    def _wait(self, mode: int, target: int, work: int, call: Call) -> Wait | None:
        """A wait for some work; none where the work ended after the call, so that it cannot have waited for it."""
        end = self.timeline.works[work].end
        if end > call.end + _SKEW:
            return None
        return Wait(mode, target, call.end - end, end > call.start, call.end - call.start)

    def _of_wait(self, index: int, call: Call) -> Wait | None:
        if call.name.endswith("StreamSynchronize"):
            last = self._last.get(call.stream) if call.stream is not None else None
            if call.stream is not None and last is not None and (found := self._wait(STREAM, call.stream, last, call)):
                return found
            if call.stream is not None and last is None:
                return None
        elif not call.name.endswith("EventSynchronize"):
            return self._for_device(index, call)
        return self._inferred(index, call)

    def _for_device(self, index: int, call: Call) -> Wait | None:
        device = self._device.get(self.timeline.lanes[index], next(iter(self._front), None))
        front = self._front.get(device) if device is not None else None
        return None if device is None or front is None else self._wait(DEVICE, device, front, call)

    def _inferred(self, index: int, call: Call) -> Wait | None:
        """The wait for an event, or an unknown stream: for the work that ended last in it, else for the last that an event followed."""
        at = bisect_right(self._ends, (call.end + _SKEW, len(self.timeline.works)))
        for _ in range(min(_STEPS, at)):
            at -= 1
            end, work = self._ends[at]
            if end <= call.start:
                break
            if self.timeline.launcher[work] <= index:
                return self._wait(WORK, work, work, call)
        works = self.timeline.works
        work_before = next((work for work in reversed(self._recorded) if works[work].end <= call.start), None)
        return None if work_before is None else self._wait(WORK, work_before, work_before, call)

    def _of_copy(self, index: int, call: Call) -> Wait | None:
        mine = self.timeline.launched.get(index)
        if not mine or mine[-1] in self.timeline.orphans:
            return None
        work = self.timeline.works[mine[-1]]
        if is_direct(call.name, call.source, call.destination):
            return None
        if call.end < work.start or (work.kind == "fill" and call.end < work.end) or _is_staged(call):
            return None
        return Wait(OWN, mine[-1], call.end - work.end, True, call.end - call.start)

    def _of_memory(self, index: int, call: Call) -> Wait | None:
        if "Async" in call.name or "Unregister" in call.name:
            return None
        wait = self._for_device(index, call)
        if wait is None or call.name in ("cudaFree", "cuMemFree", "cudaFreeHost", "cuMemFreeHost"):
            return wait
        length = call.end - call.start
        is_long = length > _LONGER * self._shortest[call.name] and 2 * wait.tail <= length  # else the GPU came to its end meanwhile
        return wait if wait.waited and is_long else None

    def _of_launch(self, index: int, call: Call) -> Wait | None:
        """A launch that took long while its stream had hundreds of others pending waited until the queue had a place."""
        mine = self.timeline.launched.get(index)
        if not mine or call.end - call.start < max(_LONG_LAUNCH, 10 * self._usual_launch):
            return None
        ends = self._ends_of[self.timeline.works[mine[0]].stream]
        if len(ends) - bisect_right(ends, call.start) < FULL_QUEUE:
            return None
        self.waits.full.add(index)
        at = bisect_right(self._ends, (call.end, len(self.timeline.works))) - 1
        if at < 0 or self.timeline.launcher[self._ends[at][1]] > index:
            return None
        wait = self._wait(WORK, self._ends[at][1], self._ends[at][1], call)
        if wait is not None:
            wait.base = self._usual_launch
        return wait

    def _set_bases(self) -> None:
        """Say what calls take without their wait, and bound the tails of those that did not wait."""
        calls, found = self.timeline.calls, self.waits.of_calls
        short: dict[str, list[int]] = defaultdict(list)
        for index, call in enumerate(calls):
            wait = found.get(index)
            if may_block(call.name) and not call.capturing and (wait is None or not wait.waited):
                short[call.name].append(call.end - call.start)
        self.waits.usual = {name: tenth(values) for name, values in short.items()}
        tails = [wait.tail for index, wait in found.items() if wait.waited and kind_of(calls[index].name) == WAIT]
        tail = tenth(tails) if tails else _TAIL
        for index, wait in found.items():
            if not wait.waited:
                wait.tail = min(wait.tail, tail)
            elif index not in self.waits.full:
                call = calls[index]
                wait.base = min(call.end - call.start, self.waits.usual.get(call.name, _CALL))


def _reads_value(call: Call) -> bool:
    """Whether a call copies a number or a few to the host, as `.item()` does."""
    return (
        kind_of(call.name) == COPY and 0 < call.bytes <= _VALUE and call.source == "device" and call.destination in ("pageable", "pinned")
    )


def _is_staged(call: Call) -> bool:
    """Whether an upload of pageable memory took no longer than a copy into the driver's own buffer takes: it waited for nothing."""
    if call.source != "pageable" or call.destination == "pageable" or call.bytes > _STAGED:
        return False
    return call.end - call.start <= _STAGING + call.bytes // 2


def _usual(calls: Iterable[Call], wanted: Callable[[Call], bool]) -> int:
    """The median duration of some calls."""
    lengths = sorted(call.end - call.start for call in calls if wanted(call))
    return lengths[len(lengths) // 2] if lengths else _CALL
