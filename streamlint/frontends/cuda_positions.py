"""From offsets in the expanded text to places in the file."""

from __future__ import annotations

from bisect import bisect_right

from streamlint.frontends.cuda_pieces import Pieces, Use
from streamlint.program import Position
from streamlint.support.lines import line_starts, position_at


class Places:
    """Where the text that was parsed stands in the file."""

    def __init__(self, text: str, pieces: Pieces) -> None:
        self.pieces = pieces.pieces
        self.starts = pieces.starts
        self.lines = line_starts(text)
        self.verbatim = len(self.pieces) == 1

    def span(self, start: int, end: int) -> Position:
        """The place of the expanded text between two offsets; the use of a macro where its body gave the text."""
        if self.verbatim:
            return position_at(self.lines, start, end)
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, max(end - 1, start)) - 1
        head, tail = self.pieces[first], self.pieces[last]
        if head.origin >= 0 and tail.origin >= 0:
            low, high = head.origin + start - self.starts[first], tail.origin + end - self.starts[last]
            if low < high or start == end:
                return position_at(self.lines, low, max(low, high))
        use = self._use(first, last)
        return position_at(self.lines, use.start, use.end)

    def name_span(self, start: int, end: int) -> Position:
        """As ``span``, with the macro's name alone where a macro body gave the text."""
        if self.verbatim:
            return position_at(self.lines, start, end)
        first = bisect_right(self.starts, start) - 1
        last = bisect_right(self.starts, max(end - 1, start)) - 1
        if self.pieces[first].origin >= 0 and self.pieces[last].origin >= 0:
            return self.span(start, end)
        use = self._use(first, last)
        return position_at(self.lines, use.start, use.name_end)

    def _use(self, first: int, last: int) -> Use:
        for piece in self.pieces[first : last + 1]:
            if piece.use is not None and piece.origin < 0:
                return piece.use
        origin = self.pieces[first].origin
        return Use(origin, origin + 1, origin + 1)
