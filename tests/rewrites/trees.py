"""Small questions about libcst trees that several rewrites ask."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import libcst as cst
from rewrites.labels import Label, labels_of


@functools.lru_cache(maxsize=64)
def parsed(text: str) -> cst.Module:
    """A module's tree; trees are never changed in place."""
    return cst.parse_module(text)


@functools.cache
def made(text: str) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
    """A statement's tree, which stands in any module, and once in each."""
    return cst.parse_statement(text)


@functools.cache
def _is_node(kind: type) -> bool:
    """``isinstance`` asks an abstract class each time anew."""
    return issubclass(kind, cst.CSTNode)


@functools.cache
def _fields(kind: type[cst.CSTNode]) -> tuple[str, ...]:
    return tuple(kind.__dataclass_fields__)


def below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What ``children`` gives, which is dear: a visitor makes each node anew."""
    for field in _fields(type(node)):
        value = getattr(node, field)
        for child in value if isinstance(value, list | tuple) else (value,):
            if _is_node(type(child)):
                yield child


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it."""
    waiting = [node]
    while waiting:
        yield (node := waiting.pop())
        waiting += [*below(node)][::-1]


def label_of(statement: cst.CSTNode) -> list[Label]:
    """The labels of a statement: in its comments, in order."""
    return [label for node in walk(statement) if isinstance(node, cst.Comment) for label in labels_of(node.value)]


def loaded(node: cst.CSTNode) -> list[str]:
    """The names that a piece of code mentions, in order; not those of attributes and keywords."""
    return list(dict.fromkeys(_names(node)))


def _names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, cst.Attribute | cst.Arg):
        yield from _names(node.value)
    elif isinstance(node, cst.ImportFrom | cst.Import):
        return
    else:
        for child in below(node):
            yield from _names(child)


def stored(node: cst.CSTNode) -> list[str]:
    """The names that a piece of code binds by assignment, in order; not those of comprehensions and inner functions."""
    found: list[str] = []
    for inner in walk(node):
        if isinstance(inner, cst.AssignTarget | cst.AugAssign | cst.AnnAssign | cst.For):
            found += bound(inner.target)
        elif isinstance(inner, cst.AsName | cst.NamedExpr):
            found += bound(inner.name if isinstance(inner, cst.AsName) else inner.target)
    return list(dict.fromkeys(found))


def bound(target: cst.CSTNode) -> list[str]:
    """The names in the target of an assignment."""
    if isinstance(target, cst.Name):
        return [target.value]
    if isinstance(target, cst.Tuple | cst.List):
        return [name for element in target.elements for name in bound(element.value)]
    return []


def parameters(function: cst.FunctionDef | cst.Lambda) -> list[str]:
    return [node.name.value for node in walk(function.params) if isinstance(node, cst.Param)]


def imported(module: cst.Module) -> set[str]:
    """The names that a module's imports bind."""
    return {name for node in walk(module) if isinstance(node, cst.Import | cst.ImportFrom) for name in names_of_import(node)}


def names_of_import(node: cst.Import | cst.ImportFrom) -> Iterator[str]:
    if isinstance(node.names, cst.ImportStar):
        return
    for alias in node.names:
        if alias.asname is not None:
            yield from bound(alias.asname.name)
        else:
            yield alias.evaluated_name.partition(".")[0]


def is_import(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and all(isinstance(s, cst.Import | cst.ImportFrom) for s in statement.body)


def is_docstring(statement: cst.CSTNode) -> bool:
    return (
        isinstance(statement, cst.SimpleStatementLine)
        and isinstance(statement.body[0], cst.Expr)
        and isinstance(statement.body[0].value, cst.SimpleString | cst.ConcatenatedString)
    )


def first_free(body: Sequence[cst.CSTNode]) -> int:
    """The place behind a docstring and the imports at the head of a body."""
    place = 0
    while place < len(body) and (is_docstring(body[place]) or is_import(body[place])):
        place += 1
    return place
