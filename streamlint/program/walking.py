"""The nodes below a node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from streamlint.program.definitions import Class, Field, Function, Module, Param
from streamlint.program.expressions import Arg, Call, Clause, Const, Expression, Lambda, Launch, Name, Node
from streamlint.program.positions import NOWHERE, Position
from streamlint.program.statements import Handler
from streamlint.support.records import names_of

_NODES = (Node, Arg, Clause, Handler, Param, Field)
# By class: what reads the fields that may hold nodes.
_FIELDS: dict[type, Callable[[Any], tuple[Any, ...]]] = {}
# By class of a field's value.
_NODE, _MANY, _OTHER = 1, 2, 3
_KINDS: dict[type, int] = {}
# Fields that never hold nodes; walking them would be lost time.
_PLAIN = frozenset(
    {
        "at",
        "name_at",
        "id",
        "name",
        "op",
        "kind",
        "keyword",
        "stars",
        "qualname",
        "template",
        "type",
        "arrow",
        "names",
        "keywords",
    }
)


def children(node: object) -> list[object]:
    """The nodes directly below ``node``, in source order where the fields stand so."""
    cls = node.__class__
    held = _FIELDS.get(cls)
    if held is None:
        held = _FIELDS[cls] = _reader(tuple(name for name in names_of(cls) if name not in _PLAIN))
    found: list[object] = []
    for value in held(node):
        kind = _KINDS.get(value.__class__) or _kind(value.__class__)
        if kind == _NODE:
            found.append(value)
        elif kind == _MANY:
            _add_inside(value, found)
    return found


def _reader(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    if len(names) > 1:
        return attrgetter(*names)
    return (lambda node: (getattr(node, names[0]),)) if names else lambda node: ()


def _kind(cls: type) -> int:
    kind = _KINDS[cls] = _NODE if issubclass(cls, _NODES) else _MANY if issubclass(cls, (list, tuple)) else _OTHER
    return kind


def _add_inside(values: list[Any] | tuple[Any, ...], found: list[object]) -> None:
    for value in values:
        kind = _KINDS.get(value.__class__) or _kind(value.__class__)
        if kind == _NODE:
            found.append(value)
        elif kind == _MANY:
            _add_inside(value, found)


def argument(call: Call, position: int | None, name: str) -> Expression | None:
    """What a call gives to a parameter, as far as its text says; without a position, to one that is given by name alone."""
    named = next((arg.value for arg in call.args if arg.keyword == name), None)
    if named is not None or position is None:
        return named
    plain = [arg for arg in call.args if arg.keyword is None]
    return plain[position].value if 0 <= position < len(plain) and not any(arg.stars for arg in plain[: position + 1]) else None


def called_at(call: Call | Launch) -> Position:
    """Where findings about a call point: at the name of what it calls, or at all of it where that has none."""
    at = call.name_at
    return at if at != NOWHERE else call.at


def functions_of(module: Module) -> Iterator[tuple[Function, Class | None]]:
    """The methods of a module's classes, each with its class, then its functions; overloads, declarations and C++ lambdas included."""
    for definition in dict.fromkeys(module.classes.values()):
        for overloads in definition.methods.values():
            for function in overloads:
                yield function, definition
    for overloads in module.functions.values():
        for function in overloads:
            yield function, None
    for declared in module.globals:  # what its name calls is its function
        if isinstance(declared.value, Lambda):
            yield declared.value.function, None


def walk(node: object) -> Iterator[object]:
    """``node`` and everything below it, nested functions and classes included. A function's nodes are kept: much is asked of each."""
    return iter(_nodes_in(node)) if node.__class__ is Function else _walk(node)


@functools.lru_cache(maxsize=4096)
def _nodes_in(function: object) -> tuple[object, ...]:
    return tuple(_walk(function))


def _walk(node: object) -> Iterator[object]:
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        kind = current.__class__
        if kind is Name or kind is Const:  # half of all nodes, with nothing below
            continue
        if kind is Class:
            stack.extend(method for overloads in current.methods.values() for method in overloads)  # type: ignore[attr-defined]
            stack.extend(current.classes.values())  # type: ignore[attr-defined]
        if below := children(current):
            below.reverse()
            stack += below
