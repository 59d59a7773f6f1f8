"""Edits and texts: applying some, and finding the way back."""

from __future__ import annotations

import functools
import itertools
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence

from streamlint.findings import Edit, Span
from streamlint.support.lines import line_starts, place_at
from streamlint.support.records import record


class Overlap(Exception):
    """Two edits want the same text."""


@record(frozen=True, slots=True)
class _Change:
    start: int
    end: int
    content: str


class Edited:
    """A text with edits applied, and where each place of it was before. ``starts`` are the offsets at which its lines begin, if known."""

    def __init__(self, before: str, edits: Iterable[Edit], starts: list[int] | None = None) -> None:
        self.before = before
        self._starts = line_starts(before) if starts is None else starts
        changes = sorted({self._change(edit): None for edit in edits}, key=lambda change: (change.start, change.end))
        for one, two in itertools.pairwise(changes):
            if one.end > two.start:
                raise Overlap
        self._changes = changes

    @functools.cached_property
    def text(self) -> str:
        """The text after the edits."""
        parts, last = [], 0
        for change in self._changes:
            parts += [self.before[last : change.start], change.content]
            last = change.end
        return "".join([*parts, self.before[last:]])

    @functools.cached_property
    def _new_starts(self) -> list[int]:
        return line_starts(self.text)

    @functools.cached_property
    def _moves(self) -> Sequence[tuple[int, int, int]]:
        """Of each change: where it begins and ends in the new text, and how far it moves what follows."""
        moves, moved = [], 0
        for change in self._changes:
            start = change.start + moved
            moved += len(change.content) - (change.end - change.start)
            moves.append((start, start + len(change.content), moved))
        return moves

    def was_at(self, row: int, column: int) -> tuple[int, int]:
        """The place in the old text of one in the new; for what was not there, the row of the edit that brings it, and column 0."""
        offset = self._new_starts[row - 1] + column - 1
        number = bisect_right(self._moves, offset, key=lambda move: move[0]) - 1
        if number < 0:
            return place_at(self._starts, offset)
        _, end, moved = self._moves[number]
        if offset < end:
            return place_at(self._starts, self._changes[number].start)[0], 0
        return place_at(self._starts, offset - moved)

    def deleted(self) -> Iterator[tuple[str, str]]:
        """What each edit takes away, and what it puts there."""
        for change in self._changes:
            if change.end > change.start:
                yield self.before[change.start : change.end], change.content

    def _change(self, edit: Edit) -> _Change:
        span: Span = edit.span
        start = self._starts[span.row - 1] + span.column - 1
        return _Change(start, self._starts[span.end_row - 1] + span.end_column - 1, edit.content)
