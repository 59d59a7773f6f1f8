"""Front ends: source text in, `streamlint.program.Module` out."""

from __future__ import annotations


class UnreadableSource(Exception):
    """Source that no front end can read, with the place (from 1) and a reason that a user understands."""

    def __init__(self, row: int, column: int, message: str) -> None:
        super().__init__(f"{row}:{column}: {message}")
        self.row = row
        self.column = column
        self.message = message

    def __reduce__(self) -> tuple[type[UnreadableSource], tuple[int, int, str]]:
        return UnreadableSource, (self.row, self.column, self.message)
