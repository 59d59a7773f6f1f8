"""Where the parts of f-strings stand, for Pythons before 3.12, whose parser gives the code in an f-string places that are not the file's.

The fields of each f-string are found by the grammar of those versions: in a field stand no backslash, no comment and no quote of the
string's own kind. The code of a field is parsed by itself; its nodes are those of the tree in the same order, and their places,
moved to the field's, are written into the tree.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Any

from streamlint.frontends.python_positions import Places
from streamlint.support.lines import split_lines

_STRING = re.compile(
    r"(\w*)(\"\"\"(?:[^\\]|\\.)*?\"\"\"|'''(?:[^\\]|\\.)*?'''|\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*')|\s+|\\\r?\n|#[^\r\n]*", re.DOTALL
)
_QUOTES = re.compile(r"\"\"\"|'''|\"|'")
_LEADING = re.compile(r"\s*")
_OPENS, _CLOSES = frozenset("([{"), frozenset(")]}")


class Unplaced(Exception):
    """An f-string is written in a way that is not understood here."""


def place(tree: ast.AST, text: str) -> None:
    """Give the code in all f-strings of a tree its places in the text, or the place of the f-string where that fails."""
    _Placing(text).place(tree)


class _Placing:
    """A file's text, and the places in it."""

    def __init__(self, text: str) -> None:
        self._text, self._lines = text, split_lines(text)
        self._places = Places(text, self._lines)

    def place(self, tree: ast.AST) -> None:
        waiting: list[ast.AST] = [tree]
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.JoinedStr):
                try:
                    waiting += self._fields(node)
                except (Unplaced, SyntaxError, ValueError):
                    for inner in ast.walk(node):
                        ast.copy_location(inner, node)
            else:
                waiting += ast.iter_child_nodes(node)

    def _fields(self, node: ast.JoinedStr) -> list[ast.expr]:
        """The code in the fields of an f-string, with its places."""
        codes, places = list(_codes(node)), list(self._written(self._places.start(node), self._places.end(node)))
        if len(codes) != len(places):
            raise Unplaced
        for code, (first, last) in zip(codes, places, strict=True):
            self._move(code, first, last)
        return codes

    def _move(self, code: ast.expr, first: int, last: int) -> None:
        row, at = self._places.place(first)
        column = len(self._lines[row - 1][: at - 1].encode())  # in bytes, as Python counts
        reparsed: Any = compile(f"({self._text[first:last]})", "<field>", "eval", flags=ast.PyCF_ONLY_AST, dont_inherit=True)
        found = reparsed.body
        if found.col_offset == 0:  # the parentheses around it were counted to it
            if not isinstance(found, ast.Tuple) or not found.elts:
                raise Unplaced
            written = self._text[first:last]
            found.col_offset += 1 + len(_LEADING.match(written)[0])  # type: ignore[index]
            found.end_col_offset -= 1 + len(written) - len(written.rstrip())  # type: ignore[operator]
        for old, new in zip(_nodes(code), _nodes(found), strict=True):
            if type(old) is not type(new):
                raise Unplaced
            if hasattr(new, "lineno"):
                old.lineno, old.col_offset = new.lineno + row - 1, new.col_offset + (column - 1 if new.lineno == 1 else 0)
                old.end_lineno = new.end_lineno + row - 1
                old.end_col_offset = new.end_col_offset + (column - 1 if new.end_lineno == 1 else 0)

    def _written(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Where the code of the fields stands in strings that are written one after the other."""
        while start < end:
            found = _STRING.match(self._text, start, end)
            if found is None:
                raise Unplaced
            if found[2] is not None and "f" in found[1].lower():
                quotes = len(_QUOTES.match(found[2])[0])  # type: ignore[index]
                at = _Fields(self._text, found.start(2) + quotes, found.end(2) - quotes, "r" in found[1].lower())
                yield from at.literal(0)
            start = found.end()


class _Fields:
    """Reads the body of one f-string."""

    def __init__(self, text: str, start: int, end: int, is_raw: bool) -> None:
        self._text, self._at, self._end, self._is_raw = text, start, end, is_raw

    def literal(self, depth: int) -> Iterator[tuple[int, int]]:
        """The fields in text, up to the end of the string or of a format specification."""
        text = self._text
        while self._at < self._end:
            sign = text[self._at]
            self._at += 1
            if sign == "\\" and not self._is_raw:
                if text.startswith("N{", self._at):
                    self._at = text.index("}", self._at) + 1
                elif text[self._at] not in "{}":
                    self._at += 1
            elif sign in "{}" and depth == 0 and text.startswith(sign, self._at, self._end):
                self._at += 1
            elif sign == "{":
                yield from self._field(depth)
            elif sign == "}":
                if depth == 0:
                    raise Unplaced
                self._at -= 1
                return

    def _field(self, depth: int) -> Iterator[tuple[int, int]]:
        first = self._at
        self._code()
        yield first, self._at
        if self._next() == "=":
            self._at += 1
            while self._next().isspace():
                self._at += 1
        if self._next() == "!":
            self._at += 2
        if self._next() == ":":
            self._at += 1
            yield from self.literal(depth + 1)
        if self._next() != "}":
            raise Unplaced
        self._at += 1

    def _next(self) -> str:
        if self._at >= self._end:
            raise Unplaced
        return self._text[self._at]

    def _code(self) -> None:
        """Go to the end of a field's code."""
        text, nested = self._text, 0
        while True:
            sign = self._next()
            if sign in "\"'":
                found = _STRING.match(text, self._at, self._end)
                if found is None or found[2] is None:
                    raise Unplaced
                self._at = found.end()
                continue
            if sign in _OPENS:
                nested += 1
            elif nested and sign in _CLOSES:
                nested -= 1
            elif not nested:
                if sign in "!=<>" and text.startswith("=", self._at + 1):
                    self._at += 1
                elif sign in "!:}=":
                    return
            self._at += 1


def _codes(node: ast.JoinedStr) -> Iterator[ast.expr]:
    """The code in the fields of an f-string and of their format specifications, as it is written."""
    for part in node.values:
        if isinstance(part, ast.FormattedValue):
            yield part.value
            if isinstance(part.format_spec, ast.JoinedStr):
                yield from _codes(part.format_spec)


def _nodes(tree: Any) -> Iterator[Any]:
    """All nodes, but for those in the fields of f-strings: these follow once the f-string has its place."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.JoinedStr):
            waiting += ast.iter_child_nodes(node)
