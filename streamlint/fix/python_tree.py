"""Python's own tree as a fix walks it: from a place to the nodes around it, and outwards. Only what holds a place is looked at."""

from __future__ import annotations

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

from streamlint.findings import Span
from streamlint.fix.base import Lines, NotThere
from streamlint.frontends.python import tree_of
from streamlint.frontends.python_positions import Places

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
LOOPS = (ast.For, ast.AsyncFor, ast.While)
WITHS = (ast.With, ast.AsyncWith)
_LITERAL = re.compile(r"#[^\n]*|([A-Za-z]{0,2})(\"\"\"|'''|\"|')(?:[^\\]|\\.)*?\2", re.DOTALL)


class Tree(Lines):
    """A module, its nodes by place."""

    def __init__(self, file: str, text: str) -> None:
        super().__init__(file, text)
        if (module := tree_of(text)) is None:
            raise NotThere
        self.module = module
        self._places = Places(text, self.lines)
        self._parents: dict[ast.AST, ast.AST] = {}
        self._blocks: dict[ast.AST, list[ast.stmt]] = {}
        self._inside: dict[ast.AST, list[ast.AST]] = {}
        self._firsts = [_begin(statement)[0] for statement in module.body]
        self._known: dict[Span, list[ast.AST]] = {}

    def at(self, node: ast.AST) -> tuple[int, int, int, int]:
        """Where a node stands, without the parentheses around it."""
        return self._places[node]

    def source(self, node: ast.AST) -> str:
        """A node's own text."""
        return self.between(*self.at(node))

    def between(self, row: int, column: int, end_row: int, end_column: int) -> str:
        """The text between two places."""
        if row == end_row:
            return self.lines[row - 1][column - 1 : end_column - 1]
        lines = self.lines[row - 1 : end_row]
        return self.newline.join([lines[0][column - 1 :], *lines[1:-1], lines[-1][: end_column - 1]])

    # What stands at a place ---------------------------------------------------------------------------------------------------

    def around(self, span: Span) -> list[ast.AST]:
        """The nodes around the start of a place, from the outside."""
        if span in self._known:
            return self._known[span]
        line = self.lines[span.row - 1] if span.row <= len(self.lines) else ""
        place = span.row, span.column - 1 if line.isascii() else len(line[: span.column - 1].encode("utf-8", "surrogatepass"))
        found: list[ast.AST] = []
        inner: Iterator[ast.AST] = self._entered(span.row)
        while (node := next((each for each in inner if _covers(each, place)), None)) is not None:
            found.append(node)
            inner = iter(self._children(node))
        self._known[span] = found
        return found

    def _entered(self, row: int) -> Iterator[ast.AST]:
        """Statements of the module that may be around a row: the last one that begins there or before, and those that share its line."""
        for number in range(bisect_right(self._firsts, row) - 1, -1, -1):
            statement = self.module.body[number]
            self._parents[statement], self._blocks[statement] = self.module, self.module.body
            yield statement
            if self._firsts[number] < row:
                return

    def _children(self, node: ast.AST) -> list[ast.AST]:
        """The nodes that stand in a node; they are known with what holds them from now on."""
        if node in self._inside:
            return self._inside[node]
        found = self._inside[node] = list[ast.AST]()
        waiting: list[ast.AST] = [node]
        while waiting:
            here = waiting.pop()
            for name in here._fields:
                held: Any = getattr(here, name, None)
                parts: list[Any] = held if isinstance(held, list) else [held]
                for part in parts:
                    if not isinstance(part, ast.AST):
                        continue
                    if not hasattr(part, "lineno"):  # arguments, items of a `with`: no place of their own
                        if part._fields:
                            waiting.append(part)
                        continue
                    found.append(part)
                    self._parents[part] = node
                    if isinstance(part, ast.stmt):
                        self._blocks[part] = parts
        return found

    def string_around(self, span: Span) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Where the content of the string of several lines around a place begins and ends, if there is one."""
        around = self.around(span)
        if not around or not isinstance(node := around[-1], ast.Constant) or not isinstance(node.value, str | bytes):
            return None
        if isinstance(self.parent(node), ast.JoinedStr):
            return None
        row, column, end_row, _ = self.at(node)
        if row == end_row:
            return None
        text = self.source(node)
        offset = self._offset(text, row, column, span.row, span.column)
        for literal in _LITERAL.finditer(text):
            if literal[2] and literal.start() <= offset < literal.end() and "\n" in literal[0]:
                first, last = literal.end(2), literal.end() - len(literal[2])
                return self._place(text, row, column, first), self._place(text, row, column, last)
        return None

    def _offset(self, text: str, row: int, column: int, to_row: int, to_column: int) -> int:
        """How far behind one place another one is, in the text that begins at the first."""
        lines = text.split(self.newline)
        passed = sum(len(line) + len(self.newline) for line in lines[: to_row - row])
        return passed + to_column - (column if to_row == row else 1)

    def _place(self, text: str, row: int, column: int, offset: int) -> tuple[int, int]:
        before = text[:offset].split(self.newline)
        return row + len(before) - 1, len(before[-1]) + (column if len(before) == 1 else 1)

    # What stands around a node ------------------------------------------------------------------------------------------------

    def parent(self, node: ast.AST) -> ast.AST | None:
        """What holds a node that was found by its place."""
        return self._parents.get(node)

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside."""
        up = self.parent(node)
        while up is not None:
            yield up
            up = self.parent(up)

    def block_of(self, statement: ast.AST) -> list[ast.stmt]:
        """The statements among which one stands."""
        return self._blocks[statement]

    def on_line(self, statement: ast.AST) -> list[ast.stmt]:
        """A statement with those that share its line."""
        block = self.block_of(statement)
        first = last = next(number for number, each in enumerate(block) if each is statement)
        while first and block[first - 1].end_lineno == block[first].lineno:
            first -= 1
        while last + 1 < len(block) and block[last].end_lineno == block[last + 1].lineno:
            last += 1
        return block[first : last + 1]

    def function_of(self, node: ast.AST) -> ast.AST:
        """The function around a node, else the module."""
        return next((up for up in self.above(node) if isinstance(up, FUNCTIONS)), self.module)

    def class_of(self, node: ast.AST) -> ast.AST | None:
        return next((up for up in self.above(node) if isinstance(up, ast.ClassDef)), None)


def arguments(call: ast.Call) -> list[ast.expr | ast.keyword]:
    """The arguments of a call, in their order."""
    given: list[ast.expr | ast.keyword] = [*call.args, *call.keywords]
    return sorted(given, key=lambda argument: (argument.lineno, argument.col_offset))


def keyword(call: ast.Call, name: str) -> ast.keyword | None:
    """One of the keyword arguments of a call."""
    return next((given for given in call.keywords if given.arg == name), None)


def words_in(node: ast.AST) -> set[str]:
    """The names, attributes and keywords below a node."""
    found: set[str] = set()
    for inner in ast.walk(node):
        for name in ("id", "attr", "arg", "name", "asname", "rest"):
            if isinstance(word := getattr(inner, name, None), str):
                found.update(word.split("."))
    return found


def _begin(node: Any) -> tuple[int, int]:
    """Where a node begins, with its decorators."""
    decorators = getattr(node, "decorator_list", None)
    return (decorators[0].lineno, 0) if decorators else (node.lineno, node.col_offset)


def _covers(node: Any, place: tuple[int, int]) -> bool:
    end: tuple[int, int] = node.end_lineno, node.end_col_offset
    return _begin(node) <= place < end
