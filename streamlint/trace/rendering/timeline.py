"""What the page draws: threads and streams as lanes of events, gaps of the GPU, and where in time each place cost something.

Times are nanoseconds from the start of the run. Of a long run only the surroundings of the costly places are kept, up to `MOST` events;
the page says which parts it does not have. The overview is made from all events.
"""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from streamlint.support.records import field, record
from streamlint.trace.kinds import kind_of
from streamlint.trace.model import Call, Stream, Trace, Work
from streamlint.trace.rendering.rows import Row
from streamlint.trace.rendering.words import size
from streamlint.trace.results import Place
from streamlint.trace.spans import Span, joined_spans

MOST = 40_000  # events in a page, 30 bytes each
OCCURRENCES = 40  # of a place
BINS = 400  # of the overview
_SHORTEST_GAP = 2_000  # ns
_AROUND = 1_000_000  # ns that are shown at least around an occurrence
# Lanes by their kind, in the order in which they are drawn.
_HOST, _STREAM, _GAP = "host", "stream", "gap"


@record(slots=True)
class Event:
    start: int
    end: int
    kind: str  # of trace.kinds, or kernel, copy, fill, idle
    name: str
    detail: str = ""
    place: Place | None = None


@record(slots=True)
class Lane:
    name: str
    kind: str
    process: int
    events: list[Event] = field(default_factory=list)


@record(slots=True)
class Occurrence:
    """Once that a place cost something: the call, with the gap that follows."""

    start: int
    end: int
    weight: int


class Drawn:
    """The lanes of a run, and where its places stand in them."""

    def __init__(self, trace: Trace, names: Callable[[str], str | None]) -> None:
        self._trace, self._names = trace, names
        self._start = trace.start
        self._places: dict[int, Place | None] = {}
        self.gaps = {process: gaps(works, trace) for process, works in _by_process(trace.works).items()}
        self.lanes = self._lanes()

    def place(self, call: Call) -> Place | None:
        """The line of the user's code that made a call."""
        if call.stack not in self._places:
            found = None
            for frame in self._trace.stacks[call.stack]:
                if (name := self._names(frame.file)) is not None:
                    found = Place(name, frame.lines or ((frame.line,) if frame.line else ()), frame.function)
                    break
            self._places[call.stack] = found
        return self._places[call.stack]

    def occurrences(self, row: Row) -> list[Occurrence]:
        """The times at which a place cost most, in their order."""
        found: list[Occurrence] = []
        for call in self._trace.calls:
            if not self._is_of(call, row):
                continue
            spans = self.gaps.get(call.process, [])
            at = bisect.bisect_right(spans, (call.end, 1 << 62)) - 1
            start, end = spans[at] if at >= 0 and spans[at][1] > call.start else (call.end, call.end)
            weight = end - start if spans else call.end - call.start
            found.append(Occurrence(call.start - self._start, max(call.end, end) - self._start, weight))
        found = sorted(found, key=lambda one: -one.weight)[:OCCURRENCES]
        return sorted(found, key=lambda one: one.start)

    def _is_of(self, call: Call, row: Row) -> bool:
        place = self.place(call)
        if place is None:
            return not row.cost.place.file and call.name == row.cost.call
        return is_one_of(place, row) and kind_of(call.name) not in ("launch", "query")

    def _lanes(self) -> list[Lane]:
        trace, threads, streams = self._trace, defaultdict[Any, list[Event]](list), defaultdict[Any, list[Event]](list)
        for call in trace.calls:
            event = Event(call.start, call.end, kind_of(call.name), call.name, _of_call(call), self.place(call))
            threads[call.process, call.thread].append(event)
        for work in trace.works:
            streams[work.process, work.device, work.stream].append(Event(work.start, work.end, work.kind, work.name, _of_work(work)))
        many = len({process for process, *_ in [*threads, *streams]}) > 1
        lanes = []
        for process in sorted({process for process, *_ in [*threads, *streams]}):
            mark = f"process {process}: " if many else ""
            mine = [(key, events) for key, events in threads.items() if key[0] == process]
            mine.sort(key=lambda item: (item[0][1] != trace.main_threads.get(process), -len(item[1])))
            lanes += [Lane(mark + _thread(trace, *key), _HOST, process, events) for key, events in mine]
            devices = {device for owner, device, _ in streams if owner == process}
            for key in sorted(key for key in streams if key[0] == process):
                lanes.append(Lane(mark + _stream(trace.streams, key, len(devices) > 1), _STREAM, process, streams[key]))
            idle = [Event(start, end, "idle", "no work on the GPU") for start, end in self.gaps.get(process, ())]
            if idle:
                lanes.append(Lane(f"{mark}GPU idle", _GAP, process, idle))
        return lanes


def is_one_of(place: Place, row: Row) -> bool:
    """Whether a row is of a place; the function's name does not count."""
    return any((place.file, place.lines) == (mine.file, mine.lines) for mine in row.places)


def _by_process(works: Iterable[Work]) -> dict[int, list[Work]]:
    found: dict[int, list[Work]] = defaultdict(list)
    for work in works:
        found[work.process].append(work)
    return found


def gaps(works: Sequence[Work], trace: Trace) -> list[Span]:
    """Where a process had no work on any device, in order; ``works`` by start."""
    found, reached = [], trace.start
    for work in works:
        if work.start - reached >= _SHORTEST_GAP:
            found.append((reached, work.start))
        reached = max(reached, work.end)
    if trace.end - reached >= _SHORTEST_GAP:
        found.append((reached, trace.end))
    return found


def _thread(trace: Trace, process: int, thread: int) -> str:
    if trace.main_threads.get(process) == thread:
        return "main thread"
    name = trace.thread_names.get((process, thread), "")
    return f"thread {name}" if name else f"thread {thread}"


def _stream(known: dict[tuple[int, int], Stream], key: tuple[int, int, int], devices: bool) -> str:
    process, device, number = key
    stream = known.get((process, number))
    where = f"GPU {device}, " if devices else ""
    if stream is not None and stream.is_default:
        return f"{where}default stream"
    return f"{where}stream {number}{', non-blocking' if stream is not None and stream.non_blocking else ''}"


def _of_call(call: Call) -> str:
    parts = [_copy(call.bytes, call.source, call.destination), call.operator]
    parts += [f"stream {call.stream}"] if call.stream is not None else []
    parts += ["capturing"] if call.capturing else []
    parts += [f"failed with {call.failed}"] if call.failed else []
    return ", ".join(part for part in parts if part)


def _of_work(work: Work) -> str:
    return _copy(work.bytes, work.source, work.destination) if work.kind != "kernel" else ""


def _copy(count: int, source: str, destination: str) -> str:
    way = f"{source or '?'} to {destination or '?'}" if source or destination else ""
    return " ".join(part for part in (size(count) if count else "", way) if part)


# --- as the page reads it ----------------------------------------------------------------------------------------------------------------


@record(slots=True)
class _Numbers:
    """The texts and places that the page lists once; events have their numbers."""

    texts: dict[str, int] = field(default_factory=dict)
    places: dict[Place, int] = field(default_factory=dict)

    def of_text(self, text: str) -> int:
        return self.texts.setdefault(text, len(self.texts))

    def of_place(self, place: Place | None) -> int:
        return self.places.setdefault(place, len(self.places)) if place else -1


def _columns(events: Sequence[Event], begin: int, numbers: _Numbers) -> dict[str, list[int]]:
    return {
        "from": [event.start - begin for event in events],
        "length": [event.end - event.start for event in events],
        "kinds": [numbers.of_text(event.kind) for event in events],
        "names": [numbers.of_text(event.name) for event in events],
        "details": [numbers.of_text(event.detail) for event in events],
        "places": [numbers.of_place(event.place) for event in events],
    }


def timeline(drawn: Drawn, rows: Sequence[Row], trace: Trace) -> dict[str, Any]:
    """Lanes, occurrences of each cost, overview, and the parts of the run that are there."""
    occurrences = [drawn.occurrences(row) for row in rows]
    kept = windows(drawn.lanes, occurrences, trace)
    numbers = _Numbers()
    lanes = []
    for lane in drawn.lanes:
        events = sorted((event for event in lane.events if _within(event, kept, trace.start)), key=lambda event: event.start)
        if events:
            lanes.append({"name": lane.name, "kind": lane.kind} | _columns(events, trace.start, numbers))
    return {
        "wall": trace.end - trace.start,
        "lanes": lanes,
        "texts": list(numbers.texts),
        "places": [[place.file, list(place.lines), place.function] for place in numbers.places],
        "costs": [
            {
                "places": [number for place, number in numbers.places.items() if is_one_of(place, row)],
                "occurrences": [[one.start, one.end, one.weight] for one in found],
            }
            for row, found in zip(rows, occurrences, strict=True)
        ],
        "windows": kept,
        "overview": {"gpu": overview(trace, trace.works), "host": overview(trace, [call for call in trace.calls if _holds(call)])},
    }


def windows(lanes: Sequence[Lane], occurrences: Sequence[Sequence[Occurrence]], trace: Trace) -> list[Span]:
    """The parts of the run whose events are in the page, in order: all of it, or what surrounds the worst occurrences of each place."""
    starts = sorted(event.start - trace.start for lane in lanes for event in lane.events)
    if len(starts) <= MOST:
        return [(0, trace.end - trace.start)]
    left, kept = MOST, list[Span]()
    worst = [sorted(found, key=lambda one: -one.weight) for found in occurrences]
    for turn in range(OCCURRENCES):
        for found in worst:
            if turn >= len(found):
                continue
            one = found[turn]
            around = max(_AROUND, one.end - one.start)
            begin, end = max(0, one.start - around), min(one.end + around, trace.end - trace.start)
            count = bisect.bisect_right(starts, end) - bisect.bisect_left(starts, begin)
            if count <= left:
                kept.append((begin, end))
                left -= count
    return joined_spans(kept)


def _within(event: Event, kept: Sequence[Span], zero: int) -> bool:
    at = bisect.bisect_right(kept, (event.end - zero, 1 << 62)) - 1
    return at >= 0 and kept[at][1] >= event.start - zero


def _holds(call: Call) -> bool:
    return kind_of(call.name) not in ("launch", "query", "other")


def overview(trace: Trace, ones: Iterable[Call | Work]) -> list[int]:
    """How busy each part of the run was, in percent."""
    length = max((trace.end - trace.start) / BINS, 1.0)
    busy = [0.0] * BINS
    for start, end in joined_spans((one.start - trace.start, one.end - trace.start) for one in ones):
        first = int(start / length)
        for at in range(max(first, 0), min(int(end / length) + 1, BINS)):
            busy[at] += max(min(end, (at + 1) * length) - max(start, at * length), 0.0)
    return [min(round(100 * part / length), 100) for part in busy]
