"""Work that the legacy default stream put in a row, and launches that another thread's call held up.

Source: CUDA Runtime API reference (13.0), "Stream synchronization behavior": work on the legacy default stream waits for all blocking
streams of its device, and they wait for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.analysis.places import NO_GROUP
from streamlint.trace.kinds import LAUNCH, kind_of, may_block

if TYPE_CHECKING:
    from streamlint.trace.analysis.places import Groups
    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.analysis.waits import Waits
    from streamlint.trace.model import Call

_TIGHT = 20_000
"""Nanoseconds after the end of what it waited for in which work starts."""
_CASES = 3
"""Pieces of work that start so, before a stream of unknown flags counts as a blocking one."""
_LONG = 20_000
"""Nanoseconds that a launch takes at least to be one that was held up, and ten times as long as usual."""


@record(slots=True)
class Latest:
    """The work of a device that ends last so far: on the default stream, and on blocking ones."""

    default: tuple[int, int] = (0, -1)  # end, work
    blocking: tuple[int, int] = (0, -1)
    of_streams: dict[int, int] = field(default_factory=dict)  # ends


def blocking_streams(timeline: Timeline) -> tuple[set[int], set[int]]:
    """The legacy default streams of a process, and the streams that wait for them.

    Where the recording does not say whether a stream is a blocking one, it is if its work never runs beside that of the default stream,
    repeatedly starts right when that ends, and no call made streams wait for events.
    """
    defaults = {number for number, stream in timeline.streams.items() if stream.is_default}
    others = {work.stream for work in timeline.works} - defaults
    if not defaults or not others:
        return defaults, set()
    known = {number: timeline.streams[number].non_blocking for number in others if number in timeline.streams}
    found = {number for number in others if known.get(number) is False}
    open_question = {number for number in others if known.get(number) is None}
    if open_question and not any("WaitEvent" in call.name for call in timeline.calls):
        found |= _seen_to_wait(timeline, defaults, open_question)
    return defaults, found


def _seen_to_wait(timeline: Timeline, defaults: set[int], streams: set[int]) -> set[int]:
    tight: dict[int, int] = defaultdict(int)
    overlapping: set[int] = set()
    latest: tuple[int, int] = 0, -1  # end and stream of the work that ends last so far on the default stream
    ends: dict[int, int] = {}
    for index in sorted(range(len(timeline.works)), key=lambda one: timeline.works[one].start):
        work = timeline.works[index]
        if work.stream in defaults:
            overlapping.update(stream for stream, end in ends.items() if end > work.start)
            latest = max(latest, (work.end, work.stream))
            continue
        if work.stream in streams:
            ready = max(timeline.calls[timeline.launcher[index]].end, ends.get(work.stream, 0))
            if latest[0] > work.start:
                overlapping.add(work.stream)
            elif ready < latest[0] and work.start - latest[0] <= _TIGHT:
                tight[work.stream] += 1
            ends[work.stream] = max(work.end, ends.get(work.stream, 0))
    return {stream for stream, cases in tight.items() if cases >= _CASES and stream not in overlapping}


def add_serialized(timeline: Timeline, groups: Groups) -> None:
    """Add the time that launched work waited because of the default stream to the groups that launched the work there."""
    defaults, blocking = blocking_streams(timeline)
    if not blocking:
        return
    devices: dict[int, Latest] = defaultdict(Latest)
    numbers = groups.of_calls[timeline.process]
    for index, work in enumerate(timeline.works):
        if work.stream not in defaults and work.stream not in blocking:
            continue
        latest = devices[work.device]
        ready = max(timeline.calls[timeline.launcher[index]].end, latest.of_streams.get(work.stream, 0))
        on_default = work.stream in defaults
        end, cause = latest.blocking if on_default else latest.default
        culprit = index if on_default else cause
        if cause >= 0 and ready < end <= work.start <= end + _TIGHT:
            number = numbers[timeline.launcher[culprit]]
            if number != NO_GROUP and culprit not in timeline.orphans:
                groups.groups[number].serialized += end - ready
        if on_default:
            latest.default = max(latest.default, (work.end, index))
        else:
            latest.blocking = max(latest.blocking, (work.end, index))
        latest.of_streams[work.stream] = max(work.end, latest.of_streams.get(work.stream, 0))


def add_held_up(timeline: Timeline, waits: Waits, groups: Groups) -> None:
    """Add to groups the time that long launches of other threads overlapped their calls. Launches into a full queue do not count."""
    if len({call.thread for call in timeline.calls}) == 1:
        return
    long = _long_launches(timeline, waits)
    holding: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))  # of each thread: starts, indexes of its calls
    for index, call in enumerate(timeline.calls):
        if may_block(call.name) and not call.capturing and call.end - call.start >= _LONG:
            starts, indexes = holding[call.thread]
            starts.append(call.start)
            indexes.append(index)
    for launch in long:
        best = (0, -1)
        for thread, (starts, indexes) in holding.items():
            at = bisect_right(starts, launch.end) - 1
            while thread != launch.thread and at >= 0:
                call = timeline.calls[indexes[at]]
                if call.end <= launch.start:
                    break  # the calls of a thread do not overlap one another
                best = max(best, (min(call.end, launch.end) - max(call.start, launch.start), indexes[at]))
                at -= 1
        number = groups.of_calls[timeline.process][best[1]] if best[1] >= 0 else NO_GROUP
        if number != NO_GROUP:
            groups.groups[number].held_up += best[0]


def _long_launches(timeline: Timeline, waits: Waits) -> list[Call]:
    launches = [(index, call) for index, call in enumerate(timeline.calls) if kind_of(call.name) == LAUNCH]
    if not launches:
        return []
    lengths = sorted(call.end - call.start for _, call in launches)
    border = max(_LONG, 10 * lengths[(len(lengths) - 1) // 2])
    return [call for index, call in launches if call.end - call.start >= border and index not in waits.full]
