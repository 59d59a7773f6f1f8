"""Edits and texts: applying some, and finding the way back."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamlint.findings import Edit, Span
from streamlint.lines import line_starts, place_at


class Overlap(Exception):
    """Two edits want the same text."""


@dataclass(frozen=True, slots=True)
class _Change:
    start: int
    end: int
    content: str


class Edited:
    """A text with edits applied, and where each place of it was before."""

    def __init__(self, before: str, edits: Iterable[Edit]) -> None:
        self.before = before
        self._starts = line_starts(before)
        changes = sorted({self._change(edit): None for edit in edits}, key=lambda change: (change.start, change.end))
        for one, two in itertools.pairwise(changes):
            if one.end > two.start:
                raise Overlap
        self._changes = changes
        self.text = self._applied()
        self._new_starts = line_starts(self.text)

    def was_at(self, row: int, column: int) -> tuple[int, int] | None:
        """The place in the old text of one in the new; None for what was not there."""
        offset, moved = self._new_starts[row - 1] + column - 1, 0
        for change in self._changes:
            if offset < change.start + moved:
                break
            if offset < change.start + moved + len(change.content):
                return None
            moved += len(change.content) - (change.end - change.start)
        old = offset - moved
        return place_at(self._starts, old)

    def deleted(self) -> Iterator[tuple[str, str]]:
        """What each edit takes away, and what it puts there."""
        for change in self._changes:
            if change.end > change.start:
                yield self.before[change.start : change.end], change.content

    def _change(self, edit: Edit) -> _Change:
        span: Span = edit.span
        start = self._starts[span.row - 1] + span.column - 1
        return _Change(start, self._starts[span.end_row - 1] + span.end_column - 1, edit.content)

    def _applied(self) -> str:
        parts, last = [], 0
        for change in self._changes:
            parts += [self.before[last : change.start], change.content]
            last = change.end
        return "".join([*parts, self.before[last:]])
