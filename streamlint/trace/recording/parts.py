"""When a recording in parts goes on, and when CUPTI is away: a recorded training step is slower, the others are as they always are."""

from __future__ import annotations

import time

PART = 2.0
"""Seconds of a part: long enough for several steps, and for what its begin and its end cost to be little beside it."""


class Parts:
    """The parts of a recording, of which a share of the time is recorded; all of it by default."""

    def __init__(self, share: float = 1.0) -> None:
        self.share = share
        self.is_away = False
        self.until = float("inf")

    def begin(self) -> None:
        """A part begins now, or the pause behind one."""
        if self.share < 1:
            self.until = time.monotonic() + (PART * (1 / self.share - 1) if self.is_away else PART)

    def is_over(self) -> bool:
        """Whether it has lasted as long as it should."""
        return time.monotonic() >= self.until
