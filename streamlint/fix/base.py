"""The lines of a source, and edits that keep the text around them."""

from __future__ import annotations

from streamlint.findings import Edit, Fix, Span
from streamlint.support.lines import split_lines

SAFE, UNSAFE = "safe", "unsafe"


class NotThere(Exception):
    """The syntax that a fix needs does not stand at the place."""


def only(text: str, start: tuple[int, int], end: tuple[int, int]) -> str:
    """A text with blanks for all but one part, so that places stay; rows and columns count from 1, the end is exclusive."""
    lines = split_lines(text)
    for row, line in enumerate(lines, 1):
        first = start[1] - 1 if row == start[0] else 0
        last = end[1] - 1 if row == end[0] else len(line)
        inside = start[0] <= row <= end[0]
        lines[row - 1] = " " * first + line[first:last] + " " * (len(line) - last) if inside else " " * len(line)
    return ("\r\n" if "\r\n" in text else "\n").join(lines)


class Lines:
    """The lines of a text, and edits of whole lines."""

    def string_around(self, span: Span) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Where the content of the string of several lines around a place begins and ends, if there is one."""
        return None

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.lines = split_lines(text)
        self.newline = "\r\n" if "\r\n" in text else "\n"

    def indent(self, row: int) -> str:
        """The blanks that a line begins with."""
        line = self.lines[row - 1]
        return line[: len(line) - len(line.lstrip())]

    def lines_before(self, row: int, *lines: str) -> Edit:
        """New lines above a row, indented as it is."""
        lead = self.indent(row)
        return self.edit(row, 1, row, 1, "".join(f"{lead}{line}{self.newline}" for line in lines))

    def lines_after(self, row: int, *lines: str, like: int = 0) -> Edit:
        """New lines below a row."""
        lead, end = self.indent(like or row), len(self.lines[row - 1]) + 1
        return self.edit(row, end, row, end, "".join(f"{self.newline}{lead}{line}" for line in lines))

    def edit(self, row: int, column: int, end_row: int, end_column: int, content: str) -> Edit:
        """An edit of this file."""
        return Edit(content, Span(self.file, row, column, end_row, end_column))


def fix(message: str, applicability: str, *edits: Edit) -> Fix:
    """A fix of some edits, in the order of the text."""
    return Fix(message, tuple(sorted(edits, key=lambda edit: edit.span)), applicability)
