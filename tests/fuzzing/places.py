"""Texts that were rewritten, and where each place of the new one was before."""

from __future__ import annotations

import bisect
import itertools
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from streamlint.support.lines import split_lines


@dataclass(frozen=True, order=True)
class Change:
    """Put ``content`` where the text stood from ``start`` to ``end``; a name that replaces a name ``keeps`` its place."""

    start: int
    end: int
    content: str
    keeps: bool = False


class Rewritten:
    """A text with changes applied."""

    def __init__(self, before: str, changes: Iterable[Change]) -> None:
        self.before = before
        parts: list[str] = []
        self._pieces: list[tuple[int, int, int]] = []  # in the new text: start; in the old one: start, or -1; length
        new = old = 0
        for change in sorted(changes):
            if change.start < old:
                continue  # two wanted the same text: the first has it
            for content, start in ((before[old : change.start], old), (change.content, change.start if change.keeps else -1)):
                self._pieces.append((new, start, len(content)))
                parts.append(content)
                new += len(content)
            old = change.end
        self._pieces.append((new, old, len(before) - old))
        self.text = "".join([*parts, before[old:]])
        self._starts = starts(self.text)

    def was_at(self, row: int, column: int) -> int:
        """The offset in the old text of a place in the new; -1 for what was not there."""
        offset = self._starts[row - 1] + column - 1
        start, old, length = self._pieces[max(0, bisect.bisect_right(self._pieces, (offset, sys.maxsize, 0)) - 1)]
        if old < 0 or offset > start + length:
            return -1
        return old + offset - start


def starts(text: str) -> list[int]:
    """Where each line begins, as the linter counts lines."""
    ends = (len(line) for line in split_lines(text))
    found = [0]
    for length in itertools.islice(ends, len(split_lines(text)) - 1):
        at = found[-1] + length
        found.append(at + (2 if text[at : at + 2] == "\r\n" else 1))
    return found
