"""The open measurements of the knowledge base (its section 7), a module a question; ``open_questions.py`` runs them.

A question's module imports without a GPU: ``ask`` runs in a child process and says rows, ``answer`` makes a sentence of them in the parent.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

Row = dict[str, Any]
Say = Callable[[Row], None]
MODULES = {"A": "ipc_queue", "B": "capture_on_null", "C": "first_launch", "D": "fresh_pages", "E": "holders", "F": "uploads"}


@dataclass(frozen=True)
class Part:
    """One child process of a question. ``lazy``: its kernels are loaded when they are first launched."""

    name: str
    lazy: bool = False


class Question(Protocol):
    """What a question's module offers. A row has a ``case``, and a ``failure`` where there is no number."""

    QUESTION: str
    PARTS: tuple[Part, ...]

    def ask(self, part: str, say: Say, scratch: Path) -> None:
        """Measure and say rows. ``scratch``: a folder that the parts of one run share."""

    def answer(self, rows: Sequence[Row]) -> str:
        """The answer in a sentence, from the rows without a failure."""


def median(values: Iterable[float], digits: int = 3) -> float | None:
    """The rounded median; ``None`` of nothing."""
    kept = list(values)
    return round(statistics.median(kept), digits) if kept else None


def told(problem: BaseException) -> str:
    """A problem in a line."""
    return f"{type(problem).__name__}: {' '.join(str(problem).split())[:400]}"


def find(rows: Sequence[Row], **wanted: Any) -> Row:
    """The first row with these values; an empty one if there is none."""
    return next((row for row in rows if all(row.get(key) == value for key, value in wanted.items())), {})
