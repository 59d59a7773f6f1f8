"""Where pieces of code stand.

A program holds millions of places, and a tuple takes 80 bytes beside those of its numbers: each is held as one number of 32.
"""

from __future__ import annotations

import functools

Position = tuple[int, int, int, int]
NOWHERE: Position = (0, 0, 0, 0)

# The row stands above them, with no end of its own. What is longer than this is held as it is.
_COLUMNS, _LINES = 12, 14
_END, _BEGIN, _ROW = _COLUMNS, 2 * _COLUMNS, 2 * _COLUMNS + _LINES
_LAST_COLUMN, _MOST_LINES = (1 << _COLUMNS) - 1, (1 << _LINES) - 1


def packed(at: Position) -> int | Position:
    """A position as one number, where its lines are not too long or too many for that."""
    row, column, end_row, end_column = at
    lines = end_row - row
    if 0 <= column <= _LAST_COLUMN and 0 <= end_column <= _LAST_COLUMN and 0 <= lines <= _MOST_LINES and row >= 0:
        return row << _ROW | lines << _BEGIN | column << _END | end_column
    return at


@functools.lru_cache(maxsize=1 << 14)  # a path comes to the same places repeatedly
def unpacked(kept: int | Position) -> Position:
    """The position itself."""
    if kept.__class__ is tuple:
        return kept
    row = kept >> _ROW  # type: ignore[operator]
    return row, kept >> _END & _LAST_COLUMN, row + (kept >> _BEGIN & _MOST_LINES), kept & _LAST_COLUMN  # type: ignore[operator]


PACKED = (packed, unpacked)
