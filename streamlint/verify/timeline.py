"""What host threads and streams did in the last round of an experiment, and where each thread stands just now.

The first is drawn beside the verdict. The second is sent to the parent as it happens, so that a case that hangs can be said to hang
*somewhere*.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

HOST, STREAM = "host", "stream"
Tell = Callable[[str, str, str], None]  # the thread's number as faulthandler prints it, its name, what it is about to do


def _nobody(_thread: str, _name: str, _doing: str) -> None:
    pass


def thread_number() -> str:
    """The number of this thread, as a dump of stacks names it."""
    return f"0x{threading.get_ident():016x}"


class Timeline:
    """Spans on lanes, a lane a host thread or a stream. Times are of ``time.perf_counter``; what is kept counts from :meth:`begin`."""

    def __init__(self, tell: Tell = _nobody) -> None:
        self._tell = tell
        self._zero = 0.0
        self._lanes: dict[str, tuple[str, list[dict[str, Any]]]] = {}

    def begin(self) -> None:
        """A new round: what the last one left is forgotten."""
        self._zero = time.perf_counter()
        self._lanes = {}

    def stands(self, name: str, doing: str) -> None:
        """Say where this thread, called ``name``, is going. Costs some microseconds: not inside of what is timed."""
        self._tell(thread_number(), name, doing)

    def add(self, lane: str, what: str, start: float, end: float, place: str = HOST) -> None:
        """Keep a span of a lane."""
        _, spans = self._lanes.setdefault(lane, (place, []))
        spans.append({"from": self._since(start), "to": self._since(end), "what": what})

    @contextmanager
    def during(self, lane: str, what: str) -> Iterator[None]:
        """Say where this thread stands, and keep the span."""
        self.stands(lane, what)
        start = time.perf_counter()
        try:
            yield
        finally:
            self.add(lane, what, start, time.perf_counter())

    def gate(self, lane: str, shut: float | None, opened: float | None, idle: float | None) -> None:
        """Keep what a gate did to its stream: held it shut, then let its work run until the device was idle."""
        if shut is None or opened is None:
            return
        self.add(lane, "gate", shut, opened, STREAM)
        if idle is not None:
            self.add(lane, "work", opened, idle, STREAM)

    def _since(self, when: float) -> float:
        return round((when - self._zero) * 1e3, 3)

    def lanes(self) -> list[dict[str, Any]]:
        """The round as plain data: name, kind (``host``, ``stream``) and spans in ms, host threads first."""
        rows = [{"name": name, "kind": place, "spans": spans} for name, (place, spans) in self._lanes.items()]
        return sorted(rows, key=in_order)


def in_order(lane: dict[str, Any]) -> tuple[bool, bool, str]:
    """How lanes are sorted: host threads before streams, the program's own before others."""
    return (lane["kind"] != HOST, not lane["name"].startswith("host"), lane["name"])
