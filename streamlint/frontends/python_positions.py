"""Where the nodes of Python's own tree stand: without the parentheses around them."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from typing import Any

from streamlint.program import Position
from streamlint.support.lines import line_starts, split_lines

_BLANK = re.compile(r"(?:\s|\\\r?\n|#[^\r\n]*)*")
_SIGN = re.compile(r"#[^\r\n]*|[(),]")


class Places:
    """``places[node]`` is a position: rows and columns from 1, columns in code points."""

    def __init__(self, text: str, lines: list[str]) -> None:
        self._text, self._lines = text, lines
        self._wide = {} if text.isascii() else {row: line.encode() for row, line in enumerate(lines, 1) if not line.isascii()}
        self._starts: list[int] = []
        self._rows = list(range(len(lines) + 2))
        self._known: dict[Position, Position] = {}

    def __getitem__(self, node: Any) -> Position:
        row, column, end_row, end_column = node.lineno, node.col_offset, node.end_lineno, node.end_col_offset
        if self._wide:
            column, end_column = self._counted(row, column), self._counted(end_row, end_column)
        # Positions are a third of what a lowered file holds: each is made once, of the same numbers.
        at = self._rows[row], column + 1, self._rows[end_row], end_column + 1
        return self._known.setdefault(at, at)

    def _counted(self, row: int, column: int) -> int:
        """Code points instead of the bytes that Python counts."""
        line = self._wide.get(row)
        return column if line is None else len(line[:column].decode())

    def block(self, node: Any) -> Position:
        """A compound statement, which does not end with a semicolon."""
        row, column, end_row, end_column = self[node]
        line = self._lines[end_row - 1]
        if line[end_column - 2] == ";":
            end_column = len(line[: end_column - 2].rstrip()) + 1
        return row, column, end_row, end_column

    def last(self, node: Any, name: str) -> Position:
        """The name that a node ends with."""
        _, _, row, column = self[node]
        at = row, max(column - len(name), 1), row, column
        return self._known.setdefault(at, at)

    def named(self, node: Any, name: str) -> Position:
        """The last time that a node says a name."""
        start = self._text.rfind(name, self.start(node), self.end(node))
        return self[node] if start < 0 else (*self.place(start), *self.place(start + len(name)))

    def is_enclosed(self, node: ast.Tuple) -> bool:
        """Whether a tuple has parentheses of its own, which Python counts to it."""
        if not node.elts:
            return True
        start, first = self.start(node), node.elts[0]
        if start == self.start(first):
            return False
        opened = self._signs(start, self.start(first)).count("(")
        closed = self._signs(self.end(first), self.end(node)).partition(",")[0].count(")")
        return opened > closed

    def within(self, node: ast.Tuple | ast.GeneratorExp, last: ast.AST) -> Position:
        """What stands between a node's own parentheses; ``last`` is the last node in it."""
        blank = _BLANK.match(self._text, self.start(node) + 1)
        assert blank is not None
        end = self.end(last)
        for found in _SIGN.finditer(self._text, end, self.end(node) - 1):
            if found[0][0] != "#":
                end = found.end()
        return (*self.place(blank.end()), *self.place(end))

    def _signs(self, start: int, end: int) -> str:
        """Parentheses and commas between two nodes."""
        return "".join(sign for sign in _SIGN.findall(self._text, start, end) if sign[0] != "#")

    def start(self, node: Any) -> int:
        """The offset in the text at which a node begins."""
        return self._offset(node.lineno, node.col_offset)

    def end(self, node: Any) -> int:
        """The offset in the text behind a node."""
        return self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, row: int, column: int) -> int:
        return self._offsets()[row - 1] + (self._counted(row, column) if self._wide else column)

    def _offsets(self) -> list[int]:
        if not self._starts:
            self._starts = line_starts(self._text)
        return self._starts

    def place(self, offset: int) -> tuple[int, int]:
        """The row and column of an offset."""
        row = bisect_right(self._offsets(), offset)
        return row, offset - self._starts[row - 1] + 1


class Quoted(Places):
    """Positions of code inside of a string: all of it stands where the string does."""

    def __init__(self, text: str, at: Position) -> None:
        super().__init__(text, split_lines(text))
        self._at = at

    def __getitem__(self, node: Any) -> Position:
        return self._at

    def last(self, node: Any, name: str) -> Position:
        return self._at

    def within(self, node: ast.Tuple | ast.GeneratorExp, last: ast.AST) -> Position:
        return self._at
