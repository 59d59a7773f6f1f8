"""Memory that parsers let go of, given back to the system.

A syntax tree is a hundred times the size of its text, and gone once the file is lowered. The C library keeps what was freed for what comes,
and holds twice of what the rest of a run needs.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from streamlint.support.records import record

OFTEN = 1 << 18  # characters of source


@record(slots=True)
class Parsed:
    """How much was parsed since memory was given back."""

    characters: int = 0

    def add(self, characters: int) -> None:
        """A file was parsed, and its tree is gone."""
        self.characters += characters
        if self.characters >= OFTEN:
            self.characters = 0
            give_back()


def give_back() -> None:
    """Have the C library return what it keeps; glibc alone can be asked to."""
    if sys.platform == "linux":
        import ctypes  # start-up: a small run keeps nothing

        with contextlib.suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)


LARGE = 1 << 30
"""Bytes of a process from which on it is worth the time to look for what a task has left behind."""


def resident() -> int:
    """How much memory this process holds, in bytes; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def collect() -> None:
    """Free what a task has left behind, if the process has grown large: the nodes and frames of its facts hold each other."""
    if resident() > LARGE:
        gc.collect()
        give_back()


_frozen = False  # by us: the number that gc reports is never 0 in Python 3.12, and is counted anew each time


def freeze() -> None:
    """What lives now is not looked at when garbage is collected, until `thaw`."""
    global _frozen
    _frozen = True
    gc.freeze()


def thaw() -> None:
    """Thaw all objects."""
    global _frozen
    _frozen = False
    gc.unfreeze()


def is_frozen() -> bool:
    """Whether something is not looked at."""
    return _frozen


@contextlib.contextmanager
def seldom_collected() -> Iterator[None]:
    """Garbage is collected only where it is asked for: syntax trees are many small objects that live until the end."""
    collecting, frozen = gc.isenabled(), _frozen
    gc.disable()
    try:
        yield
    finally:
        if not frozen:
            thaw()
        if collecting:
            gc.enable()
