"""Statements and comments of a source, by scanning alone: what suppressions and fingerprints need, also where nothing parses."""

from __future__ import annotations

import bisect
import re

from streamlint.support.lines import line_starts, split_lines
from streamlint.support.records import field, record

_BLOCK_STRINGS = r'"""[^"\\]*(?:(?:\\.|"(?!""))[^"\\]*)*"""|' + r"'''[^'\\]*(?:(?:\\.|'(?!''))[^'\\]*)*'''"
_PYTHON = re.compile(
    rf"(?P<block>{_BLOCK_STRINGS})"
    r"|(?P<string>\"(?:\\.|[^\"\\\r\n])*\"?|'(?:\\.|[^'\\\r\n])*'?)"
    r"|(?P<comment>\#[^\r\n]*)|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<join>\\(?:\r\n|\r|\n))|(?P<end>\r\n|\r|\n)",
    re.DOTALL,
)
_CPP = re.compile(
    r"(?P<comment>//(?:\\(?:\r\n|\r|\n)|[^\r\n])*|/\*.*?(?:\*/|\Z))"
    r"|(?P<string>R\"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)\"|\Z)|\"(?:\\.|[^\"\\\r\n])*\"?|(?<![0-9a-fA-F])'(?:\\.|[^'\\\r\n])*'?)"
    r"|(?P<directive>(?<![^\r\n])[ \t]*\#(?:\\(?:\r\n|\r|\n)|/(?!/)|[^\r\n/\\]|\\)*)"
    r"|(?P<open>[(\[])|(?P<close>[)\]])|(?P<enter>\{)|(?P<leave>\})|(?P<end>;)",
    re.DOTALL,
)


@record(frozen=True, slots=True)
class Comment:
    """A comment: its place, its text with the marker, and whether its line holds nothing else."""

    row: int
    column: int
    text: str
    alone: bool


@record(slots=True)
class Layout:
    """The rows of each statement (of a compound statement: its head), the comments, and the lines without comments."""

    statements: list[tuple[int, int]] = field(default_factory=list)
    comments: list[Comment] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    _smallest: dict[int, tuple[int, int]] = field(default_factory=dict, init=False)  # by row, once asked

    def statement_at(self, row: int) -> tuple[int, int]:
        """The rows of the smallest statement that covers a row, else the row itself."""
        if not self._smallest:
            for rows in sorted(self.statements, key=lambda rows: (rows[0] - rows[1], rows[0])):
                self._smallest.update(dict.fromkeys(range(rows[0], rows[1] + 1), rows))  # the smallest comes last, and stays
        return self._smallest.get(row, (row, row))

    def statement_text(self, row: int) -> str:
        """The statement at a row without comments and indentation."""
        first, last = self.statement_at(row)
        return "\n".join(line for line in (line.strip() for line in self.code[first - 1 : last]) if line)

    def comment_rows(self) -> set[int]:
        """The rows that hold nothing but comments."""
        alone = [comment for comment in self.comments if comment.alone]
        return {row for comment in alone for row in range(comment.row, comment.row + len(split_lines(comment.text)))}


def layout(text: str, language: str) -> Layout:
    """The layout of a whole file."""
    return _Scan(text).cpp() if language == "cuda" else _Scan(text).python()


class _Scan:
    def __init__(self, text: str, first_row: int = 1) -> None:
        self._text = text
        self._starts = line_starts(text)
        self._first_row = first_row
        self._out = Layout()
        self._cuts: list[tuple[int, int]] = []

    def python(self) -> Layout:
        """Logical lines; C++ that a block string holds is scanned as C++."""
        depth, begin = 0, 0
        for match in _PYTHON.finditer(self._text):
            kind = match.lastgroup
            if kind == "comment":
                self._comment(match.start(), match.end())
            elif kind == "block":
                self._inner(match)
            elif kind in ("open", "close"):
                depth = max(0, depth + (1 if kind == "open" else -1))
            elif kind == "end" and depth == 0:
                self._statement(begin, match.start())
                begin = match.end()
        self._statement(begin, len(self._text))
        return self._finish()

    def cpp(self) -> Layout:
        """Statements end at semicolons and braces outside of brackets; a lambda in brackets has statements of its own."""
        frames: list[tuple[int, int]] = []  # of the enclosing blocks: bracket depth, and where their statement began
        depth, begin = 0, 0
        for match in _CPP.finditer(self._text):
            kind = match.lastgroup
            if kind == "comment":
                self._comment(match.start(), match.end())
            elif kind == "directive":
                self._statement(match.start(), match.end())
                begin = match.end() if depth == 0 else begin
            elif kind in ("open", "close"):
                depth = max(0, depth + (1 if kind == "open" else -1))
            elif kind == "enter":
                if depth == 0:
                    self._statement(begin, match.end())
                frames.append((depth, begin))
                depth, begin = 0, match.end()
            elif kind == "leave":
                self._statement(begin, match.start())
                depth, begin = frames.pop() if frames else (0, 0)
                begin = begin if depth else match.end()
            elif kind == "end" and depth == 0:
                self._statement(begin, match.end())
                begin = match.end()
        self._statement(begin, len(self._text))
        return self._finish()

    def _row(self, offset: int) -> int:
        return bisect.bisect_right(self._starts, offset) - 1 + self._first_row

    def _statement(self, begin: int, end: int) -> None:
        code = self._without_comments(begin, end)
        stripped = code.strip()
        if stripped:
            first = begin + len(code) - len(code.lstrip())
            last = begin + len(code.rstrip()) - 1
            self._out.statements.append((self._row(first), self._row(last)))

    def _without_comments(self, begin: int, end: int) -> str:
        """The text between, comments blanked so that offsets stay."""
        text = self._text[begin:end]
        for start, stop in reversed(self._cuts):
            if stop <= begin:
                break
            start, stop = max(start, begin) - begin, min(stop, end) - begin
            text = text[:start] + " " * (stop - start) + text[stop:]
        return text

    def _comment(self, start: int, end: int) -> None:
        self._cuts.append((start, end))
        row = self._row(start)
        line = self._starts[row - self._first_row]
        following = re.compile(r"[^\r\n]*").match(self._text, end)
        alone = not self._text[line:start].strip() and not (following and following[0].strip())
        self._out.comments.append(Comment(row, start - line + 1, self._text[start:end], alone))

    def _inner(self, block: re.Match[str]) -> None:
        if "//" not in block[0]:
            return
        row = self._row(block.start())
        inside = _Scan("   " + block[0][3:-3], row).cpp()
        self._out.statements += inside.statements
        self._out.comments += inside.comments

    def _finish(self) -> Layout:
        pieces, last = [], 0
        for start, end in self._cuts:
            pieces += [self._text[last:start], re.sub(r"[^\r\n]", " ", self._text[start:end])]
            last = end
        pieces.append(self._text[last:])
        self._out.code = split_lines("".join(pieces))
        return self._out
