"""Waiting in tests: for what is to come, and no longer than is fair."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator


class TooLongError(AssertionError):
    """It took more processor time than any program of this size may."""


@contextlib.contextmanager
def within(seconds: float) -> Iterator[None]:
    """Ends what takes more processor time and is written in Python; what hangs in native code ends the test run, a failure as well."""

    def end(*_: object) -> None:
        raise TooLongError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def until(ask: Callable[[], object]) -> object:
    """What is answered once there is an answer. Raises AssertionError after a minute without one."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.02)
    raise AssertionError("waited in vain")
