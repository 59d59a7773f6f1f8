"""Where the nodes of a libcst tree stand.

libcst nodes carry no positions; they come from regenerating the code. `PositionProvider` needs 1.2 s a megabyte for that. Here the
generator's state writes tokens and marks into one list, with as few Python calls as libcst allows, and one loop reads it: a third.

The generator calls itself for each level of the tree, through C, which Python 3.12 allows 750 times and no setting changes. Of a tree
that is deeper the code is generated in pieces (`_in_pieces`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from functools import cache
from itertools import zip_longest
from typing import Any

import libcst as cst
from libcst._nodes.internal import CodegenState

from streamlint.program import Position
from streamlint.support.lines import line_starts, split_lines

Positions = dict[cst.CSTNode, Position]

_PIECE = 100  # levels of a tree that are generated in one go, where it has too many
_PLAIN: frozenset[type[cst.CSTNode]] = frozenset({cst.Arg, cst.Element, cst.AssignTarget, cst.Param, cst.DictElement})


def positions(module: cst.Module, text: str, silent: frozenset[type[cst.CSTNode]] = _PLAIN) -> Positions:
    """The position of each expression, statement and pattern of ``module``, without surrounding parentheses.

    ``silent`` are the types of nodes whose positions nobody asks for.
    """
    try:
        marks = _Marks(module, silent)
        module._codegen(marks)
        tokens: list[Any] = marks.tokens
    except RecursionError:
        tokens = _in_pieces(module, silent)
    found, length = _read(tokens, text)
    if length != len(text):
        return _repair(tokens, text)
    return found


class _Silent:
    """The mark of a node whose position nobody asks for."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _End:
    """Marks the end of the node that was opened last."""

    __slots__ = ("append",)

    def __init__(self, append: Callable[[Any], None]) -> None:
        self.append = append

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self.append(None)


class _Marks(CodegenState):
    """Collects text, nodes that begin (the node, or the node and where its end is taken from) and ends (None), in order."""

    def __init__(self, module: cst.Module, silent: frozenset[type[cst.CSTNode]]) -> None:
        super().__init__(module.default_indent, module.default_newline)
        self._unmarked = silent
        # Builtins: the two hooks and the token sink are called for every node, whitespace included.
        self.add_token: Any = self.tokens.append
        self.before_codegen: Any = id
        self.after_codegen: Any = id
        self._end = _End(self.add_token)
        self._silent = _Silent()

    def record_syntactic_position(  # type: ignore[override]
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> _End | _Silent:
        if type(node) in self._unmarked:
            return self._silent
        self.add_token(node if end_node is None else (node, end_node))
        return self._end

    def pop_trailing_newline(self) -> None:
        last = next((index for index in range(len(self.tokens) - 1, -1, -1) if type(self.tokens[index]) is str), None)
        if last is not None:
            del self.tokens[last]


class _Later:
    """The place of a node whose code is generated later, and how its parent asked for it."""

    __slots__ = ("indents", "node", "words")

    def __init__(self, node: cst.CSTNode, indents: list[str], words: dict[str, Any]) -> None:
        self.node = node
        self.indents = indents
        self.words = words


class _Above(_Marks):
    """The marks of a piece: the newline to drop may lie in another one, so it is dropped when all are joined."""

    def pop_trailing_newline(self) -> None:
        self.add_token(_Marks.pop_trailing_newline)


def _in_pieces(module: cst.Module, silent: frozenset[type[cst.CSTNode]]) -> list[Any]:
    """The marks of a tree of any depth: each node that is a hundred levels below another one is generated apart from what is above it."""
    parents = list(_deep(module))
    joined = _Marks(module, silent)
    try:
        for parent, name, node in parents:
            object.__setattr__(parent, name, _stand_in(node))
        open_pieces = [_piece(module, _Later(module, [], {}), silent)]
        while open_pieces:
            mark = next(open_pieces[-1], open_pieces)
            if mark is open_pieces:
                open_pieces.pop()
            elif mark is _Marks.pop_trailing_newline:
                joined.pop_trailing_newline()
            elif type(mark) is _Later:
                open_pieces.append(_piece(module, mark, silent))
            elif type(mark) is tuple:
                joined.add_token((mark[0], getattr(mark[1], "stands_for", mark[1])))
            else:
                joined.add_token(mark)
    finally:
        for parent, name, node in parents:
            object.__setattr__(parent, name, node)
    return joined.tokens


def _piece(module: cst.Module, later: _Later, silent: frozenset[type[cst.CSTNode]]) -> Iterator[Any]:
    marks = _Above(module, silent)
    marks.indent_tokens = later.indents
    later.node._codegen(marks, **later.words)
    return iter(marks.tokens)


def _deep(module: cst.Module) -> Iterator[tuple[cst.CSTNode, str, cst.CSTNode]]:
    """Nodes a hundred levels below the last such one, with the parent and its attribute that hold them."""
    waiting: list[tuple[cst.CSTNode, int]] = [(module, 0)]
    while waiting:
        parent, level = waiting.pop()
        for name in fields(type(parent)):
            held = getattr(parent, name)
            if isinstance(held, list | tuple):
                waiting.extend((node, level + 1) for node in held if isinstance(node, cst.CSTNode))
            elif isinstance(held, cst.CSTNode):
                if level >= _PIECE:
                    yield parent, name, held
                waiting.append((held, 0 if level >= _PIECE else level + 1))


def _stand_in(node: cst.CSTNode) -> cst.CSTNode:
    """A node like this one, which parents may ask what they like; only its code is left for later."""
    kind = _stand_in_type(type(node))
    made: Any = object.__new__(kind)
    for name in fields(type(node)):
        object.__setattr__(made, name, getattr(node, name))
    object.__setattr__(made, "stands_for", node)
    return made  # type: ignore[no-any-return]


@cache
def fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(kind))


@cache
def _stand_in_type(kind: type[cst.CSTNode]) -> type[cst.CSTNode]:
    def later(self: Any, state: Any, **words: Any) -> None:
        state.add_token(_Later(self.stands_for, list(state.indent_tokens), words))

    make: Any = type(kind)
    made: type[cst.CSTNode] = make(kind.__name__, (kind,), {"__slots__": ("stands_for",), "_codegen": later})
    return made


def _read(marks: list[Any], text: str) -> tuple[Positions, int]:
    """Positions in ``text``, which must be what the marks generate, and how long that is."""
    found: Positions = {}
    ends = iter(line_starts(text)[1:])
    row, before, offset = 1, -1, 0
    following = next(ends, len(text) + 1)
    stack: list[tuple[Any, int, int]] = []
    for mark in marks:
        if type(mark) is str:
            offset += len(mark)
            continue
        while offset >= following:
            row, before = row + 1, following - 1
            following = next(ends, 1 << 62)
        if mark is not None:
            stack.append((mark, row, offset - before))
            continue
        node, start_row, start_column = stack.pop()
        end = row, offset - before
        if type(node) is tuple:
            node, last = node
            end = found[last][2:] if last in found else end
        found[node] = (start_row, start_column, *end)
    return found, offset


def _repair(marks: list[Any], text: str) -> Positions:
    """libcst drops byte order marks, form feeds that begin a line, the space in ``except E :``: shift what stands behind them."""
    generated = "".join(mark for mark in marks if type(mark) is str)
    found, _ = _read(marks, generated)
    pairs = zip_longest(split_lines(text), split_lines(generated), fillvalue="")
    shifts = {row: _shift(ours, theirs) for row, (ours, theirs) in enumerate(pairs, 1) if ours != theirs}
    if not shifts:
        return found
    return {node: _shifted(at, shifts) for node, at in found.items()}


def _shift(ours: str, theirs: str) -> tuple[int, int]:
    """How many characters two lines share at their beginning, and how many are missing after that."""
    pairs = enumerate(zip(ours, theirs, strict=False))
    same = next((index for index, (one, other) in pairs if one != other), min(len(ours), len(theirs)))
    return same, len(ours) - len(theirs)


def _shifted(at: Position, shifts: dict[int, tuple[int, int]]) -> Position:
    row, column, end_row, end_column = at
    if row in shifts and column > shifts[row][0]:
        column += shifts[row][1]
    if end_row in shifts and end_column > shifts[end_row][0] + 1:
        end_column += shifts[end_row][1]
    return row, column, end_row, end_column
