"""How far a run is, on standard error: one line that is written over on a terminal, a line a batch elsewhere."""

from __future__ import annotations

import shutil
import sys
import time
from typing import TextIO

_CLEAR = "\r\x1b[K"
_QUIET_S = 20.0  # off a terminal, a log should show at least this often that the run is alive


class Progress:
    """Says what runs. ``total`` is the number of programs to come."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._live = not quiet and self._stream.isatty()
        self._quiet = quiet
        self._open = False
        self._started = self._printed = time.monotonic()
        self.total = 0
        self.done = 0

    def step(self, line: str) -> None:
        """The next program starts."""
        self.done += 1
        spent = time.monotonic() - self._started
        text = f"[{self.done}/{self.total}] {spent:3.0f} s  {line}" if self.total else line
        if self._live:
            width = shutil.get_terminal_size((80, 24)).columns - 1
            self._stream.write(f"{_CLEAR}{text[:width]}")
            self._open = True
        elif not self._quiet and time.monotonic() - self._printed > _QUIET_S:
            self._printed = time.monotonic()
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def say(self, line: str) -> None:
        """A line that stays."""
        if self._quiet:
            return
        self.clear()
        self._printed = time.monotonic()
        self._stream.write(f"{line}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Take the line away that is written over."""
        if self._open:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._open = False
