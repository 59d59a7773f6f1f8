"""What the events of PyTorch's profiler (Kineto) say, one by one: calls, work on the device, and spans of Python functions and operators.

Known forms: PyTorch 1.8 to 1.11 (categories `Runtime`, `Kernel`, `Operator`, whole microseconds), 1.12 to 2.3 (microseconds since
1970) and later ones (microseconds since ``baseTimeNanoseconds``).
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.support.records import field, record
from streamlint.trace.kinds import plain
from streamlint.trace.model import UNKNOWN, Call, Stream, Work
from streamlint.trace.readers.tables import Table

Event = Mapping[str, Any]
Thread = tuple[int, int]
_COPY = re.compile(r"\((\w+) -> (\w+)\)")
_FILL = re.compile(r"Memset \((\w+)\)")
_MEMORY = {"pageable": "pageable", "pinned": "pinned", "device": "device", "managed": "managed", "unified": "managed", "array": "array"}
_ADDRESS = " at 0x"
_NO_STREAM = 0xFFFFFFFF
DEFAULT_STREAM = 7
"""CUPTI's number of the legacy default stream of a process's first context, in all known versions."""
_FIRST_MADE = 1 << 40
_FOREVER = 1 << 62


class Spans:
    """Spans of a thread in columns: half a million of them take 12 MB."""

    __slots__ = ("end", "name", "start")

    def __init__(self) -> None:
        self.start, self.end, self.name = array("q"), array("q"), array("i")

    def add(self, start: int, end: int, name: int) -> None:
        """Append a span; ``name`` is an index into a table of names."""
        self.start.append(start)
        self.end.append(end)
        self.name.append(name)

    def __len__(self) -> int:
        return len(self.start)


def nanoseconds(value: object) -> int:
    """A time of Kineto, which is in microseconds: a number, or the text of one with a fraction, whose digits all count.

    Raises ValueError where it is no number.
    """
    if type(value) is str:
        whole, _, part = value.partition(".")
        try:
            return int(whole + (part + "000")[:3])
        except ValueError:
            return round(float(value) * 1000)
    if type(value) is int:
        return value * 1000
    raise ValueError(value)


def number(value: object) -> int:
    """A whole number of an event's arguments, 0 where there is none."""
    try:
        return int(value) if isinstance(value, (int, str)) else 0
    except ValueError:
        return 0


@record(slots=True)
class Events:
    """What was read of a file. Works have no process yet: Kineto files them under their device."""

    calls: list[Call] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    python: dict[Thread, Spans] = field(default_factory=dict)
    operators: dict[Thread, Spans] = field(default_factory=dict)
    names: Table[str] = field(default_factory=Table)
    waits: dict[int, int] = field(default_factory=dict)  # streams of synchronizations, by correlation
    span: tuple[int, int] | None = None  # that the profiler recorded
    thread_names: dict[Thread, str] = field(default_factory=dict)
    negative: int = 0  # events that end before they begin
    odd: int = 0  # events without a time
    _made: dict[str, int] = field(default_factory=dict)

    def take(self, event: Event) -> None:
        """Keep what an event says of the run; most kinds of events say nothing that is asked for."""
        phase = event.get("ph")
        if phase == "X":
            handler = _HANDLERS.get(str(event.get("cat")))
            if handler is not None:
                try:
                    start, length = nanoseconds(event["ts"]), nanoseconds(event.get("dur", 0))
                except (KeyError, OverflowError, ValueError):
                    start = length = _FOREVER
                if max(abs(start), length) >= _FOREVER:
                    self.odd += 1
                    return
                if length < 0:
                    self.negative += 1
                    length = 0
                handler(self, event, start, start + length)
        elif phase == "M" and event.get("name") == "thread_name":
            thread = self.thread(event)
            self.thread_names[thread] = str(_arguments(event).get("name", ""))

    def thread(self, event: Event) -> Thread:
        """Process and thread of an event. Texts, as merged traces have them, get numbers."""
        process, thread = event.get("pid", 0), event.get("tid", 0)
        return process if type(process) is int else self._number(process), thread if type(thread) is int else self._number(thread)

    def _number(self, value: object) -> int:
        text = str(value)
        return int(text) if text.isdecimal() and len(text) < 20 else self._made.setdefault(text, _FIRST_MADE + len(self._made))


def _arguments(event: Event) -> Mapping[str, Any]:
    found = event.get("args")
    return found if isinstance(found, dict) else {}


def _call(events: Events, event: Event, start: int, end: int) -> None:
    process, thread = events.thread(event)
    details = _arguments(event)
    name = plain(str(event.get("name", "")))
    events.calls.append(Call(name, process, thread, start, end, correlation=number(details.get("correlation"))))


def _work(kind: str) -> Callable[[Events, Event, int, int], None]:
    def take(events: Events, event: Event, start: int, end: int) -> None:
        details = _arguments(event)
        process, thread = events.thread(event)
        name = str(event.get("name", ""))
        work = Work(kind, events.names.all[events.names.number(name)], process, 0, thread, start, end)
        work.device = number(details.get("device", process))
        work.stream = number(details.get("stream", thread))
        work.correlation = number(details.get("correlation"))
        work.bytes = number(details.get("bytes"))
        if kind == "copy" and (found := _COPY.search(name)):
            work.source, work.destination = (_MEMORY.get(one.lower(), UNKNOWN) for one in found.groups())
        elif kind == "fill" and (found := _FILL.search(name)):
            work.destination = _MEMORY.get(found[1].lower(), UNKNOWN)
        events.works.append(work)

    return take


def _python(events: Events, event: Event, start: int, end: int) -> None:
    name = str(event.get("name", ""))
    if _ADDRESS in name:
        name = name.partition(_ADDRESS)[0]  # else each object would be a name of its own
    _spans(events.python, events.thread(event)).add(start, end, events.names.number(name))


def _operator(events: Events, event: Event, start: int, end: int) -> None:
    _spans(events.operators, events.thread(event)).add(start, end, events.names.number(str(event.get("name", ""))))


def _wait(events: Events, event: Event, start: int, end: int) -> None:
    details = _arguments(event)
    stream = number(details.get("stream", _NO_STREAM))
    if 0 <= stream < _NO_STREAM:
        events.waits[number(details.get("correlation"))] = stream


def _span(events: Events, event: Event, start: int, end: int) -> None:
    if events.span is None and str(event.get("name", "")).startswith("PyTorch Profiler"):
        events.span = start, end


def _spans(table: dict[Thread, Spans], thread: Thread) -> Spans:
    found = table.get(thread)
    if found is None:
        found = table[thread] = Spans()
    return found


_HANDLERS: dict[str, Callable[[Events, Event, int, int], None]] = {
    **dict.fromkeys(("cuda_runtime", "cuda_driver", "Runtime"), _call),
    **dict.fromkeys(("kernel", "Kernel"), _work("kernel")),
    **dict.fromkeys(("gpu_memcpy", "Memcpy"), _work("copy")),
    **dict.fromkeys(("gpu_memset", "Memset"), _work("fill")),
    **dict.fromkeys(("cpu_op", "Operator"), _operator),
    "python_function": _python,
    "cuda_sync": _wait,
    "Trace": _span,
}


def streams_of(works: list[Work]) -> dict[tuple[int, int], Stream]:
    """The streams that work ran on."""
    found: dict[tuple[int, int], Stream] = {}
    for work in works:
        key = work.process, work.stream
        if key not in found:
            found[key] = Stream(*key, is_default=work.stream == DEFAULT_STREAM, device=work.device)
    return found
