"""Cython's text as logical lines, without comments and strings, and what stands outside of brackets in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from streamlint.support.lines import line_starts
from streamlint.support.records import record

_OPAQUE = re.compile(
    r"#[^\n]*"
    r"|\"\"\"(?:[^\\]|\\.)*?(?:\"\"\"|\Z)|'''(?:[^\\]|\\.)*?(?:'''|\Z)"
    r"|\"(?:[^\"\\\n]|\\.)*\"?|'(?:[^'\\\n]|\\.)*'?",
    re.DOTALL,
)
_VISIBLE = re.compile(r"[^\n]")
_OPEN, _CLOSE = "([{", ")]}"


@record(slots=True)
class Line:
    """A logical line: its offsets, its indentation, its text without comments and strings."""

    start: int
    end: int
    indent: int
    mask: str


def masked(text: str) -> str:
    """The text with comments blanked and the inside of strings overwritten, as long as it was."""

    def cover(match: re.Match[str]) -> str:
        held = match.group()
        if held[0] == "#":
            return " " * len(held)
        return held[0] + _VISIBLE.sub("_", held[1:-1]).replace("\n", "_") + held[-1] if len(held) > 1 else held

    return _OPAQUE.sub(cover, text)


def logical_lines(mask: str) -> Iterator[Line]:
    depth, start = 0, 0
    for match in re.finditer(r"[\[({})\]]|\\\r?\n|\r?\n|\Z", mask):
        held = match.group()
        if held and held in _OPEN:
            depth += 1
        elif held and held in _CLOSE:
            depth = max(depth - 1, 0)
        elif held.startswith("\\"):
            continue
        elif not depth or not held:
            whole = mask[start : match.start()]
            body = whole.lstrip(" \t")
            if body.strip():
                indent = len(whole) - len(body)
                yield Line(start + indent, match.start(), indent, body)
            start = match.end()


def without_line(text: str, row: int) -> str:
    """The text with nothing but its beginning left of the logical line that ``row`` is in."""
    mask, starts = masked(text), line_starts(text)
    if not 0 < row <= len(starts):
        return text
    for line in logical_lines(mask):
        if starts[row - 1] < line.end:
            kept = "if 1:" if line.mask.rstrip().endswith(":") else "0"
            return text[: line.start] + kept + _VISIBLE.sub(" ", text[line.start + len(kept) : line.end]) + text[line.end :]
    return text


def _depths(mask: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """The places of a text, each with how many brackets are open behind it."""
    depth = 0
    for at in range(low, high):
        depth += (mask[at] in _OPEN) - (mask[at] in _CLOSE)
        yield at, depth


def closing(mask: str, opening: int) -> int:
    """The bracket that closes the one at ``opening``."""
    found = (at for at, depth in _depths(mask, opening, len(mask)) if not depth and mask[at] in _CLOSE)
    return next(found, len(mask) - 1)


def top_level(mask: str, wanted: str, low: int, high: int | None = None) -> int | None:
    """The first such character outside of brackets; ``=`` is no part of a comparison."""
    for at, depth in _depths(mask, low, len(mask) if high is None else high):
        if mask[at] == wanted and depth <= 0 and not (wanted == "=" and (mask[at - 1] in "=!<>" or mask[at + 1 : at + 2] == "=")):
            return at
    return None


def commas(mask: str, low: int) -> Iterator[int]:
    """The commas outside of brackets."""
    return (at for at, depth in _depths(mask, low, len(mask)) if mask[at] == "," and not depth)


def pieces(mask: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """What stands between commas, outside of brackets."""
    begin = low
    for comma in commas(mask[:high], low):
        yield begin, comma
        begin = comma + 1
    if mask[begin:high].strip():
        yield begin, high
