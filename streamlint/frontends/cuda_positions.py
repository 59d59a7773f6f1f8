"""From offsets in the expanded text to places in the file."""

from __future__ import annotations

import re
from bisect import bisect_right

from streamlint.frontends.cuda_pieces import Pieces, Use
from streamlint.program import Position

_LINE_END = re.compile(r"\r\n|\r|\n")


class Places:
    """Where the text that was parsed stands in the file."""

    def __init__(self, text: str, pieces: Pieces) -> None:
        self.pieces = pieces.pieces
        self.starts = pieces.starts
        self.lines = [0, *(end.end() for end in _LINE_END.finditer(text))]
        self.verbatim = len(self.pieces) == 1

    def span(self, start: int, end: int) -> Position:
        """The place of the expanded text between two offsets; the use of a macro where its body gave the text."""
        if self.verbatim:
            return self._position(start, end)
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, max(end - 1, start)) - 1
        head, tail = self.pieces[first], self.pieces[last]
        if head.origin >= 0 and tail.origin >= 0:
            low, high = head.origin + start - self.starts[first], tail.origin + end - self.starts[last]
            if low < high or start == end:
                return self._position(low, max(low, high))
        use = self._use(first, last)
        return self._position(use.start, use.end)

    def name_span(self, start: int, end: int) -> Position:
        """As ``span``, with the macro's name alone where a macro body gave the text."""
        if self.verbatim:
            return self._position(start, end)
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, max(end - 1, start)) - 1
        if self.pieces[first].origin >= 0 and self.pieces[last].origin >= 0:
            return self.span(start, end)
        use = self._use(first, last)
        return self._position(use.start, use.name_end)

    def _use(self, first: int, last: int) -> Use:
        for piece in self.pieces[first : last + 1]:
            if piece.use is not None and piece.origin < 0:
                return piece.use
        origin = self.pieces[first].origin
        return Use(origin, origin + 1, origin + 1)

    def _position(self, start: int, end: int) -> Position:
        row = bisect_right(self.lines, start)
        later = row < len(self.lines) and end > self.lines[row]
        end_row = bisect_right(self.lines, end) if later else row
        return (row, start - self.lines[row - 1] + 1, end_row, end - self.lines[end_row - 1] + 1)
