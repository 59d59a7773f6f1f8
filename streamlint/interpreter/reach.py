"""What can be reached from a value: what it holds, what those hold."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.interpreter.index import names_in
from streamlint.interpreter.values import (
    Buffer,
    FunctionValue,
    GeneratorCall,
    Handle,
    Instance,
    Method,
    Opaque,
    ScopeValue,
    Series,
    Table,
    Value,
)


def contents(value: Value) -> Iterator[Value]:
    """The values directly inside ``value``, whatever holds them."""
    if isinstance(value, Series):
        yield from value.all()
    elif isinstance(value, Table):
        yield from value.items.values()
    elif isinstance(value, Instance):
        yield from value.attrs.values()
    elif isinstance(value, Opaque):
        yield from value.reach
        yield from value.attrs.values()
        if value.buffer is not None:
            yield value.buffer
    elif isinstance(value, FunctionValue):
        yield from value.bound
        yield from value.keywords.values()
        if value.receiver is not None:
            yield value.receiver
        if value.closure is not None:
            yield from _closure(value)
    elif isinstance(value, Buffer):
        yield from (value.leaves or {}).values()
        yield from value.attrs.values()
    elif isinstance(value, Handle):
        yield from value.args.values()
        yield from value.attrs.values()
        if value.stream is not None:
            yield value.stream
    elif isinstance(value, Method):
        yield value.receiver
    elif isinstance(value, ScopeValue):
        for inner in (value.stream, value.buffer, value.value):
            if inner is not None:
                yield inner
    elif isinstance(value, GeneratorCall):
        yield from value.environment.names.values()
        yield value.function


def _closure(value: FunctionValue) -> Iterator[Value]:
    # Only what the body names can be reached through a closure.
    for name in names_in(value.function):
        scope = value.closure.find(name) if value.closure else None
        if scope is not None:
            yield scope.names[name]


def reachable(values: Iterator[Value] | tuple[Value, ...] | list[Value], limit: int = 400) -> Iterator[Value]:
    """Everything that can be reached from ``values``, themselves included, at most ``limit`` values."""
    seen: set[int] = set()
    stack = list(values)
    while stack and len(seen) < limit:
        value = stack.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        yield value
        stack.extend(contents(value))
