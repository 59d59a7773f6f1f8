"""The work of a run shared among processes, where that pays."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")
_FEWEST = 8  # below this a second process costs more than it saves

_work: Callable[[str], object] | None = None


def shared(work: Callable[[str], T], names: Sequence[str], jobs: int, size: Callable[[str], int] = len) -> Iterator[T]:
    """``work`` for each name, in order, in up to ``jobs`` processes that are forked from this one with all that it holds.

    What is largest by ``size`` is begun first, so that no process is left with a long one at the end.
    """
    global _work
    if jobs < 2 or len(names) < _FEWEST or not hasattr(os, "fork"):
        yield from map(work, names)
        return
    _work = work
    done: dict[str, T] = {}
    try:
        with multiprocessing.get_context("fork").Pool(min(jobs, len(names))) as pool:
            results: Iterator[tuple[str, T]] = pool.imap_unordered(_call, sorted(names, key=size, reverse=True))
            done.update(results)
    finally:
        _work = None
    yield from (done[name] for name in names)


def _call(name: str) -> tuple[str, Any]:
    assert _work is not None
    return name, _work(name)
