"""Comments that declare something (``# streamlint: pinned``), brought to the assignment, parameter, field or function that they stand at.

What a comment says of a value becomes metadata of its type, as if ``Annotated[…, "streamlint: pinned"]`` had been written there, so that
nothing behind the front ends distinguishes the two.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.frontends import MISPLACED
from streamlint.program import (
    Assign,
    AssignExpr,
    Class,
    Const,
    Declare,
    Expression,
    Field,
    Function,
    Index,
    Module,
    Name,
    Param,
    functions_of,
    walk,
)
from streamlint.support.declared_words import ANYTHING, METADATA, PREFIX, VOCABULARY, WAITS, words_in
from streamlint.support.lines import line_starts, place_at, split_lines

Target = Assign | AssignExpr | Declare | Field
_NO_CODE = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|#.*|//.*|/\*.*?\*/")
_STEPS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}
_MOST_ROWS = 200  # of the head of a function


class _Comment(NamedTuple):
    """A comment: its place, what stands before and behind it in its line, and the words that it declares."""

    row: int
    column: int
    end_column: int
    before: str
    behind: str
    words: tuple[str, ...]


def attach(module: Module, comments: Iterable[tuple[int, str]], functions: Iterable[Function] = (), compiled: str = "") -> None:
    """Bring the comments of a text, each with its offset, to what they declare; ``functions`` are those that the module does not hold.

    A comment with a known word that stands at nothing is a problem of the module, but in C++ where the ``compiled`` text is blank.
    """
    places = _Places(module, functions)
    rows = split_lines(compiled)
    for comment in places.read(comments):
        is_left_out = bool(compiled) and not "".join(rows[comment.row - 1 : places.row_of(comment)]).strip()
        if not is_left_out and not places.give(comment):
            at = comment.row, comment.column, comment.row, comment.end_column
            said = ", ".join(comment.words)
            what = "a function" if WAITS in comment.words else "an assignment, a parameter, a field or a function"
            module.problems.append(
                (at, f"{MISPLACED} comment 'streamlint: {said}': it stands at no single one of what it is about, {what}")
            )


class _Places:
    """What comments may stand at."""

    def __init__(self, module: Module, functions: Iterable[Function]) -> None:
        self.lines = split_lines(module.text)
        self.starts = line_starts(module.text)
        self.is_cpp = module.language != "python"
        self.functions: dict[Function, tuple[int, int]] = {}
        self.targets: list[Target] = []
        kinds = (Assign, AssignExpr, Declare, Field) if self.is_cpp else (Assign, Field)
        for one in _nodes(module, functions):
            if isinstance(one, Function) and not one.is_lambda:
                self.functions[one] = self._head(one)
            elif isinstance(one, kinds) and getattr(one, "op", None) is None:
                self.targets.append(one)

    def read(self, comments: Iterable[tuple[int, str]]) -> Iterator[_Comment]:
        """The comments that say a known word."""
        for offset, text in comments:
            words = tuple(word for word in words_in(text) if word in VOCABULARY)
            if words:
                row, column = place_at(self.starts, offset)
                line = self.lines[row - 1]
                end = column + len(text.split("\n", 1)[0])
                yield _Comment(row, column, end, line[: column - 1], line[end - 1 :].strip(), words)

    def give(self, comment: _Comment) -> bool:
        """Give the words of a comment to what it stands at; false where nothing takes all of them."""
        values = tuple(word for word in comment.words if word != WAITS)
        function = self._function(comment)
        if WAITS in comment.words:
            if function is None:
                return False
            function.waits = True
            if not values:
                return True
        parameters = self._parameters(comment)
        if len(parameters) > 1:
            return False
        taker: Param | Target | Function | None = next(iter(parameters), None) or self._target(comment) or function
        if taker is None:
            return False
        taker.annotation = _annotated(taker.annotation, values)
        if isinstance(taker, Assign):
            taker.commented = True
        return True

    # --- what a comment stands at

    def row_of(self, comment: _Comment) -> int:
        """The row of what a comment is about: its own, or the next one with code if it stands alone."""
        row = comment.row
        if comment.before.strip() or comment.behind:
            return row
        while row < len(self.lines) and not _NO_CODE.sub("", self.lines[row]).strip():
            row += 1
        return row + 1

    def _parameters(self, comment: _Comment) -> list[Param]:
        """The parameters that a comment may be about: those of its row, in a head of several rows, and the one before it."""
        row = self.row_of(comment)
        for function, (first, last) in self.functions.items():
            text = _NO_CODE.sub("", self.lines[row - 1] if row != comment.row else comment.before)
            if not first <= row <= last or (not comment.behind and _holds_all(function, text)):
                continue
            held = [(found.start(), param) for param in function.params if (found := _place_of(param, text)) is not None]
            if held:
                ordered = [param for _, param in sorted(held, key=lambda one: one[0])]
                return ordered[-1:] if comment.behind else ordered
        return []

    def _target(self, comment: _Comment) -> Target | None:
        row = self.row_of(comment)
        if row == comment.row:
            around = [one for one in self.targets if one.at[0] <= row <= self._end(one) and one.at[:2] < (row, comment.column)]
        else:
            around = [one for one in self.targets if one.at[0] == row]
        return min(around, key=lambda one: (one.at[2] - one.at[0], -one.at[1]), default=None)

    def _end(self, one: Target) -> int:
        """The last row of a target: of a member of C++, that of its declaration."""
        row = one.at[2]
        while self.is_cpp and row < len(self.lines) and ";" not in self.lines[row - 1] and row < one.at[2] + 3:
            row += 1
        return row

    def _function(self, comment: _Comment) -> Function | None:
        row = self.row_of(comment)
        heads = {one: rows for one, rows in self.functions.items() if rows[0] <= row <= rows[1]}
        if row != comment.row:
            heads = {one: rows for one, rows in heads.items() if rows[0] == row}
        return max(heads, key=lambda one: heads[one][0], default=None)

    def _head(self, function: Function) -> tuple[int, int]:
        """The first and the last row of a function's head, decorators included."""
        first = min([function.at[0], *(one.at[0] for one in function.decorators if one.at[0])])
        if self.is_cpp and first > 1 and self.lines[first - 2].lstrip().startswith("template"):
            first -= 1
        depth, ends = 0, "{;" if self.is_cpp else ":"
        for row in range(function.at[0], min(len(self.lines), function.at[0] + _MOST_ROWS) + 1):
            for sign in _NO_CODE.sub("", self.lines[row - 1]):
                if depth == 0 and sign in ends:
                    return first, row
                depth += _STEPS.get(sign, 0)
        return first, function.at[0]


def _nodes(module: Module, functions: Iterable[Function]) -> Iterator[object]:
    """All nodes of a module, each once."""
    seen: set[int] = set()
    roots = [*module.body, *module.classes.values(), *(function for function, _ in functions_of(module)), *functions]
    for root in roots:
        for one in walk(root):
            if isinstance(one, (Function, Class, Assign, AssignExpr, Declare, Field)) and id(one) not in seen:
                seen.add(id(one))
                yield one


def _holds_all(function: Function, text: str) -> bool:
    """Whether a line holds all parameters of a function: what is said behind them is said of the function."""
    name = function.qualname.rpartition(".")[2].rpartition("::")[2]
    begin = re.search(rf"(?<!\w){re.escape(name)}\s*(?=\()", text)
    return begin is not None and text.count("(", begin.end()) <= text.count(")", begin.end())


def _place_of(param: Param, text: str) -> re.Match[str] | None:
    """Where a line names a parameter, if it does."""
    return re.search(rf"(?<![\w.]){re.escape(param.name)}\s*(?:\[\w*\]\s*)?(?:[:=,){{]|$)", text) if param.name else None


def _annotated(annotation: Expression | None, words: tuple[str, ...]) -> Expression:
    """A type with words as its metadata."""
    metadata = tuple(Const(f"{PREFIX} {word}") for word in words)
    return Index(Name(METADATA), (annotation or Name(ANYTHING), *metadata))
