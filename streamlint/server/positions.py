"""Rows and columns to the client's lines and characters, and back."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from streamlint.findings import Span
from streamlint.server.jobs import Range
from streamlint.support.lines import split_lines

_WIDTHS = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2), "utf-32": ("utf-32-le", 4)}


def width(text: str, encoding: str) -> int:
    """How many of the client's units a text takes."""
    codec, size = _WIDTHS[encoding]
    return len(text) if text.isascii() else len(text.encode(codec, "surrogatepass")) // size


class Lines:
    """A text's lines, measured in the client's units."""

    def __init__(self, text: str, encoding: str) -> None:
        self._lines, self._encoding = split_lines(text), encoding

    def range(self, span: Span) -> Range:
        """The place of a span."""
        return (*self._position(span.row, span.column), *self._position(span.end_row, span.end_column))

    def column(self, line: int, character: int) -> int:
        """The offset in code points in a line that a client's position means; the line's end for what lies behind it."""
        text = self._lines[line] if line < len(self._lines) else ""
        at = 0
        for offset, letter in enumerate(text):
            if at >= character:
                return offset
            at += width(letter, self._encoding)
        return len(text)

    def columns(self, line: int, start: int, end: int) -> Range:
        """A part of a line, by offsets in code points."""
        text = self.line(line)
        return line, width(text[:start], self._encoding), line, width(text[:end], self._encoding)

    def line(self, number: int) -> str:
        """A line's text; empty behind the end."""
        return self._lines[number] if number < len(self._lines) else ""

    def _position(self, row: int, column: int) -> tuple[int, int]:
        if row > len(self._lines):
            return len(self._lines) - 1, width(self._lines[-1], self._encoding)
        return row - 1, width(self._lines[row - 1][: column - 1], self._encoding)


_END = re.compile(r"\r\n|\n|\r")


def applied(text: str, edits: Iterable[tuple[Range | None, str]], encoding: str) -> str:
    """A text after edits, each of the text before it; one without a place is a whole new text.

    A place behind a line's end is the line's end, one behind the last line the end of the text, as the protocol has it.
    """
    for place, new in edits:
        if place is None:
            text = new
            continue
        start, end = sorted((_offset(text, *place[:2], encoding), _offset(text, *place[2:], encoding)))
        text = text[:start] + new + text[end:]
    return text


def _offset(text: str, line: int, character: int, encoding: str) -> int:
    """The offset in code points of a client's position."""
    start, ends = 0, _END.finditer(text)
    for _ in range(line):
        if (end := next(ends, None)) is None:
            return len(text)
        start = end.end()
    last = next(ends, None)
    body = text[start : last.start() if last else len(text)]
    if body.isascii():
        return start + min(max(character, 0), len(body))
    at = 0
    for offset, letter in enumerate(body):
        at += width(letter, encoding)
        if at > character:  # a place within a letter is before it
            return start + offset
    return start + len(body)


def changes(before: str, after: str, encoding: str) -> tuple[tuple[Range, str], ...]:
    """The edits between two texts, by whole lines."""
    old, new = _with_ends(before), _with_ends(after)
    edits = []
    for kind, first, last, start, end in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            edits.append(((*_line(old, first, encoding), *_line(old, last, encoding)), "".join(new[start:end])))
    return tuple(edits)


def _line(lines: list[str], number: int, encoding: str) -> tuple[int, int]:
    """Where a line begins; behind the last one without an end, the end of the text."""
    if number < len(lines) or not lines or lines[-1].endswith(("\n", "\r")):
        return number, 0
    return number - 1, width(lines[-1], encoding)


def _with_ends(text: str) -> list[str]:
    lines, at = [], 0
    for body in split_lines(text):
        end = at + len(body)
        stop = end + (2 if text.startswith("\r\n", end) else 1)
        lines.append(text[at:stop])
        at = stop
    return [line for line in lines if line]
