"""Threads that call CUDA and are watched from outside: one call at a time, or the same call in a loop."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from questions import Row, told

SPAN_S = 2e-5  # a looper keeps when calls longer than this began and ended
_START_S = 5.0
_TICK_S = 0.0002


def poll(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true within that time."""
    end = time.perf_counter() + seconds
    while not condition():
        if time.perf_counter() > end:
            return condition()
        time.sleep(_TICK_S)
    return True


class Attempt:
    """A call on a worker."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call = call
        self._started, self._returned = threading.Event(), threading.Event()
        self.error = ""

    def run(self) -> None:
        """Make the call; for the worker."""
        self._started.set()
        try:
            self._call()
        except Exception as problem:
            self.error = told(problem)
        finally:
            self._returned.set()

    def back_within(self, seconds: float) -> bool:
        """Whether the call has returned, at most that long after it was made."""
        return self._started.wait(_START_S) and self._returned.wait(seconds)


class Worker:
    """A thread on device 0 that makes one call after another."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._attempts: queue.SimpleQueue[Attempt] = queue.SimpleQueue()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        self._cupy.cuda.Device(0).use()
        while True:
            self._attempts.get().run()

    def do(self, call: Callable[[], Any]) -> Attempt:
        """Start the call and come back at once."""
        attempt = Attempt(call)
        self._attempts.put(attempt)
        return attempt


class Looper:
    """Makes the same call again and again on a thread of its own; use with ``with``.

    Only the spans of long calls are kept, and a count of all: a list of every call would itself touch fresh pages.
    """

    def __init__(self, cupy: Any, call: Callable[[], Any]) -> None:
        self._cupy, self._call = cupy, call
        self._stop = False
        self._spans: list[tuple[float, float]] = []
        self.count = 0
        self.error = ""
        self._thread = threading.Thread(target=self._work, daemon=True)

    def _work(self) -> None:
        self._cupy.cuda.Device(0).use()
        call, clock, spans = self._call, time.perf_counter, self._spans
        try:
            while not self._stop:
                begin = clock()
                call()
                end = clock()
                self.count += 1
                if end - begin > SPAN_S:
                    spans.append((begin, end))
        except Exception as problem:
            self.error = told(problem)

    def __enter__(self) -> Looper:
        self._thread.start()
        poll(lambda: self.count > 200 or bool(self.error), _START_S)
        return self

    def __exit__(self, *_problem: object) -> None:
        self._stop = True
        self._thread.join()

    def between(self, begin: float, end: float, calls: int) -> Row:
        """The longest call that overlaps the window, how many took over 1 ms, and calls per second."""
        if self.error:
            raise RuntimeError(self.error)
        spans = [stop - start for start, stop in self._spans if stop > begin and start < end]
        long = [span for span in spans if span > 1e-3]
        return {
            "longest_ms": max(spans, default=SPAN_S) * 1e3,
            "over_1ms": len(long),
            "over_1ms_total_ms": sum(long) * 1e3,
            "per_second": calls / (end - begin),
        }
