"""The nodes below a node."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamlint.program.definitions import Class, Field, Function, Module, Param
from streamlint.program.expressions import Arg, Call, Clause, Const, Expression, Name, Node
from streamlint.program.statements import Handler
from streamlint.record import names_of

_NODES = (Node, Arg, Clause, Handler, Param, Field)
Push = Callable[[Any, list[Any]], None]
_PUSH: dict[type, Push] = {}
_MANY = re.compile(r"(?:list|tuple)\[(\w+)(?:, \.\.\.)?\]")


def children(node: object) -> list[object]:
    """The nodes directly below ``node``, in source order where the fields stand so."""
    found: list[object] = []
    cls = node.__class__
    (_PUSH.get(cls) or _push(cls))(node, found)
    found.reverse()
    return found


def _push(cls: type) -> Push:
    """What puts the nodes below one of a class on a stack, the first one last. Half of all lookups before a path is run are made of this,
    so the annotations of the fields are read once, and it is written out for each class. What exceptions are caught is no part of a node.
    """
    around: dict[str, Any] = {"_within": _within}
    lines = [line for name in reversed(names_of(cls)) if name != "type" for line in _of_field(name, _annotation(cls, name))]
    exec("def push(node, stack):\n " + "\n ".join(lines or ["pass"]), around)
    made: Push = around["push"]
    return _PUSH.setdefault(cls, made)


def _annotation(cls: type, name: str) -> str:
    return next(str(base.__annotations__[name]) for base in cls.__mro__ if name in vars(base).get("__annotations__", ()))


def _of_field(name: str, annotation: str) -> Iterator[str]:
    """The line for one field; none where it holds no nodes. What a dictionary holds is no part of its node."""
    kind = annotation.removesuffix(" | None")
    many = _MANY.fullmatch(kind)
    if kind in _names():
        yield f"if (held := node.{name}) is not None: stack.append(held)" if kind != annotation else f"stack.append(node.{name})"
    elif kind == "Body" or (many is not None and many[1] in _names()):
        yield f"if held := node.{name}: stack += held[::-1]"
    elif not kind.startswith("dict[") and not _names().isdisjoint(re.findall(r"\w+", kind.replace("Body", "Statement"))):
        yield f"stack += _within(node.{name})[::-1]"


@functools.cache
def _names() -> frozenset[str]:
    """The names of all classes of nodes."""
    found, waiting = set[type](), list[type](_NODES)
    while waiting:
        found.add(waiting[-1])
        waiting += waiting.pop().__subclasses__()
    return frozenset(cls.__name__ for cls in found)


def _within(values: Iterable[Any]) -> list[object]:
    """The nodes in lists of lists."""
    found: list[object] = []
    for value in values:
        if isinstance(value, list | tuple):
            found += _within(value)
        elif isinstance(value, _NODES):
            found.append(value)
    return found


def argument(call: Call, position: int | None, name: str) -> Expression | None:
    """What a call gives to a parameter, as far as its text says; without a position, to one that is given by name alone."""
    named = next((arg.value for arg in call.args if arg.keyword == name), None)
    if named is not None or position is None:
        return named
    plain = [arg for arg in call.args if arg.keyword is None]
    return plain[position].value if 0 <= position < len(plain) and not any(arg.stars for arg in plain[: position + 1]) else None


def functions_of(module: Module) -> Iterator[tuple[Function, Class | None]]:
    """The methods of a module's classes, each with its class, then its functions; overloads and declarations included."""
    for definition in dict.fromkeys(module.classes.values()):
        for overloads in definition.methods.values():
            for function in overloads:
                yield function, definition
    for overloads in module.functions.values():
        for function in overloads:
            yield function, None


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
        (_PUSH.get(kind) or _push(kind))(current, stack)
