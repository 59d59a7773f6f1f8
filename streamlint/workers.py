"""The work of a run shared among processes, where that pays."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
_FEWEST = 8  # below this a second process costs more than it saves

_work: Callable[[str], object] | None = None


def shared(work: Callable[[str], T], names: Sequence[str], jobs: int) -> Iterator[T]:
    """``work`` for each name, in order, in up to ``jobs`` processes that are forked from this one with all that it holds."""
    global _work
    if jobs < 2 or len(names) < _FEWEST or not hasattr(os, "fork"):
        yield from map(work, names)
        return
    _work = work
    try:
        with multiprocessing.get_context("fork").Pool(min(jobs, len(names))) as pool:
            yield from pool.imap(_call, names, chunksize=2)
    finally:
        _work = None


def _call(name: str) -> T:  # type: ignore[type-var]
    assert _work is not None
    return _work(name)  # type: ignore[return-value]
