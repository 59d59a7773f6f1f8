"""What can be reached from a value: what it holds, what those hold."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from streamlint.interpreter.captures import CaptureScope
from streamlint.interpreter.index import names_in
from streamlint.interpreter.values import (
    Buffer,
    FunctionValue,
    GeneratorCall,
    Handle,
    Instance,
    Method,
    Opaque,
    Prepared,
    ScopeValue,
    Series,
    Table,
    Value,
)


def _of_series(value: Series) -> Iterable[Value]:
    if not value.made:
        return value.items or ()
    return [*(value.items or ()), *value.made.values()]


def _of_opaque(value: Opaque) -> Iterable[Value]:
    if not value.attrs and value.buffer is None:
        return value.reach
    found = [*value.reach, *value.attrs.values()]
    if value.buffer is not None:
        found.append(value.buffer)
    return found


def _of_function(value: FunctionValue) -> Iterable[Value]:
    found = [*value.bound, *value.keywords.values()]
    if value.receiver is not None:
        found.append(value.receiver)
    if value.closure is not None:
        found.extend(_closure(value))
    return found


def _of_buffer(value: Buffer) -> Iterable[Value]:
    if not value.leaves:
        return value.attrs.values()
    return [*value.leaves.values(), *value.attrs.values()]


def _of_handle(value: Handle) -> Iterable[Value]:
    found = [*value.args.values(), *value.attrs.values()]
    if value.stream is not None:
        found.append(value.stream)
    return found


def _of_scope(value: ScopeValue) -> Iterable[Value]:
    return [inner for inner in (value.stream, value.buffer, value.value) if inner is not None]


def _of_generator(value: GeneratorCall) -> Iterable[Value]:
    return [*value.environment.names.values(), value.function]


def _closure(value: FunctionValue) -> Iterator[Value]:
    # Only what the body names can be reached through a closure.
    for name in names_in(value.function):
        scope = value.closure.find(name) if value.closure else None
        if scope is not None:
            yield scope.names[name]


# By exact type: everything that is not listed holds nothing.
_INSIDE: dict[type, Callable[[Any], Iterable[Value]]] = {
    Series: _of_series,
    Table: lambda value: value.items.values(),
    Instance: lambda value: value.attrs.values(),
    Opaque: _of_opaque,
    FunctionValue: _of_function,
    Buffer: _of_buffer,
    Handle: _of_handle,
    Method: lambda value: (value.receiver,),
    Prepared: lambda value: (value.callee, *value.bound, *value.keywords.values()),
    ScopeValue: _of_scope,
    CaptureScope: _of_scope,
    GeneratorCall: _of_generator,
}


def contents(value: Value) -> Iterable[Value]:
    """The values directly inside ``value``, whatever holds them."""
    inside = _INSIDE.get(type(value))
    return inside(value) if inside is not None else ()


def reachable(values: Iterable[Value], limit: int = 400) -> Iterator[Value]:
    """Everything that can be reached from ``values``, themselves included, at most ``limit`` values."""
    seen: set[int] = set()
    stack = list(values)
    while stack and len(seen) < limit:
        value = stack.pop()
        key = id(value)
        if key in seen:
            continue
        seen.add(key)
        yield value
        inside = _INSIDE.get(type(value))
        if inside is not None:
            stack.extend(inside(value))
