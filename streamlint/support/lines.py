"""Lines of a text as compilers have them: form feeds and Unicode separators end none. Rows and columns count from 1."""

from __future__ import annotations

import re
from bisect import bisect_right

_END = re.compile(r"\r\n|\r|\n")


def split_lines(text: str) -> list[str]:
    """Lines without their ends."""
    return _END.split(text)


def line_starts(text: str) -> list[int]:
    """The offsets at which lines begin."""
    return [0, *(end.end() for end in _END.finditer(text))]


def place_at(starts: list[int], offset: int) -> tuple[int, int]:
    """Row and column of an offset."""
    row = bisect_right(starts, offset)
    return row, offset - starts[row - 1] + 1


def position_at(starts: list[int], start: int, end: int) -> tuple[int, int, int, int]:
    """Rows and columns of a stretch, which ends in the row of its last character."""
    row = bisect_right(starts, start)
    later = row < len(starts) and end > starts[row]
    end_row = bisect_right(starts, end) if later else row
    return row, start - starts[row - 1] + 1, end_row, end - starts[end_row - 1] + 1
