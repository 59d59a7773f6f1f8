"""What a piece of work asked of other files, kept beside its answer: who is given the answer later rests on the same questions.

Much that is found out about a file is found once and kept, in tables and by decorators. A question that is asked while it is found would be
missed by everybody who comes later, or, noted for the file, be blamed on everybody who ever looks at it. So each answer that may come
from a question is kept with its notes, and `kept` and `remembered` hand both on. Two pieces that lead to each other point to each other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

K = TypeVar("K")
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Row = tuple[Any, ...]  # a kind of question, and what it was about
OWN = "own row"  # the kind of the notes on the user's rows: see `own_rows`


class Notes:
    """The questions of one piece of work, and the notes of the pieces that it was given."""

    __slots__ = ("asked", "parts")

    def __init__(self) -> None:
        self.asked: set[Row] = set()
        self.parts: set[Notes] = set()

    def rows(self) -> Iterator[Row]:
        """All questions, also of the parts; some more than once."""
        seen, waiting = {self}, [self]
        while waiting:
            notes = waiting.pop()
            yield from notes.asked
            fresh = notes.parts - seen
            seen |= fresh
            waiting.extend(fresh)


Kept = tuple[T, Notes | None]  # an answer, and what was asked for it
_open = [Notes()]  # of the pieces that are at work, the innermost one last


def begin() -> None:
    """A new piece of work, which nobody keeps: the check of a file."""
    _open[:] = [Notes()]


def note(row: Row) -> None:
    """A question of the piece at work."""
    _open[-1].asked.add(row)


def noted() -> Notes:
    """What was asked since the piece at work began."""
    return _open[-1]


@contextmanager
def aside() -> Iterator[None]:
    """Work of whose questions nobody is told."""
    _open.append(Notes())
    try:
        yield
    finally:
        _open.pop()


def kept(table: dict[K, Kept[T]], key: K, work: Callable[..., T], *args: Any) -> T:
    """What a table holds under a key; ``work`` finds it once."""
    held = table.get(key)
    if held is None:
        table[key] = held = _done(Notes(), work, args)
    if held[1] is not None:
        _open[-1].parts.add(held[1])
    return held[0]


def kept_in_rounds(table: dict[K, Kept[T]], key: K, first: T, work: Callable[..., T], *args: Any) -> T:
    """The same for work that may come back to its own key: there it finds ``first``."""
    held = table.get(key)
    if held is None:
        notes = Notes()
        table[key] = first, notes
        try:
            table[key] = held = _done(notes, work, args)
        except BaseException:
            del table[key]
            raise
    if held[1] is not None:
        _open[-1].parts.add(held[1])
    return held[0]


def _done(notes: Notes, work: Callable[..., T], args: tuple[Any, ...]) -> Kept[T]:
    _open.append(notes)
    try:
        answer = work(*args)
    finally:
        _open.pop()
    notes.parts.discard(notes)
    if notes.asked or len(notes.parts) > 1:
        return answer, notes
    return answer, next(iter(notes.parts), None)  # most ask nothing, or what one other asked


def remembered(most: int) -> Callable[[F], F]:
    """`functools.lru_cache` for a function that may ask of other files."""

    def decorate(work: F) -> F:
        @functools.lru_cache(maxsize=most)
        def find(*args: Any, **more: Any) -> Kept[Any]:
            return _done(Notes(), functools.partial(work, **more) if more else work, args)

        @functools.wraps(work)
        def ask(*args: Any, **more: Any) -> Any:
            answer, notes = find(*args, **more)
            if notes is not None:
                _open[-1].parts.add(notes)
            return answer

        ask.cache_clear, ask.cache_parameters = find.cache_clear, find.cache_parameters  # type: ignore[attr-defined]
        return ask  # type: ignore[return-value]

    return decorate
