"""Text that remembers where each part of it stood in the file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Use(NamedTuple):
    """The place of a macro's use in the file: its name and its closing parenthesis."""

    start: int
    name_end: int
    end: int


class Piece(NamedTuple):
    """A run of text: from the file at ``origin``, or (``origin`` is -1) from a macro body."""

    text: str
    origin: int
    use: Use | None


class Pieces:
    """A text made of pieces, which can be cut."""

    def __init__(self, pieces: Iterable[Piece]) -> None:
        self.pieces = [piece for piece in pieces if piece.text]
        self.text = "".join(piece.text for piece in self.pieces)
        self.starts: list[int] = []
        at = 0
        for piece in self.pieces:
            self.starts.append(at)
            at += len(piece.text)

    def piece_at(self, offset: int) -> tuple[Piece, int]:
        """The piece that holds ``offset``, and the offset in it."""
        index = bisect_right(self.starts, offset) - 1
        return self.pieces[index], offset - self.starts[index]

    def origin(self, offset: int) -> int:
        """The offset in the file, or -1."""
        piece, inside = self.piece_at(offset)
        return piece.origin + inside if piece.origin >= 0 else -1

    def cut(self, start: int, end: int) -> list[Piece]:
        """The pieces between two offsets."""
        found: list[Piece] = []
        if start >= end:
            return found
        index = bisect_right(self.starts, start) - 1
        while index < len(self.pieces) and self.starts[index] < end:
            piece, base = self.pieces[index], self.starts[index]
            low, high = max(start - base, 0), min(end - base, len(piece.text))
            found.append(Piece(piece.text[low:high], piece.origin + low if piece.origin >= 0 else -1, piece.use))
            index += 1
        return found
