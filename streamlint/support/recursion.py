"""How deep Python itself may call: what follows the calls of others goes deeper than its own limit."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

FRAMES = 10_000


@contextmanager
def deeper(frames: int = FRAMES) -> Iterator[None]:
    """At least so many frames of Python may be entered in here."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, frames))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
