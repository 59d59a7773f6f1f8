"""Whether a body that reads certain attributes of objects at hand finds the same in two, whatever else is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from streamlint.interpreter.values import Instance, Opaque, Value
from streamlint.operations import Operation
from streamlint.record import is_record, names_of

_PLAIN = (str, int, float, complex, bool, bytes, type(None), type(...))
_LISTS = (list, tuple)
_SETS = (set, frozenset)
# Which value of a path it is, and how the path came to an operation.
_APART = frozenset({"serial", "index", "guesses", "trail"})
Pair = tuple[Any, Any]


class _Differs(Exception):
    """They hold something else at one place."""


def alike(one: object, other: object, read: frozenset[str]) -> bool:
    """Whether all that can be reached from the one is as it is in the other; of objects at hand only what was read."""
    waiting: list[Pair] = [(one, other)]
    seen: set[tuple[int, int]] = set()
    try:
        while waiting:
            first, second = waiting.pop()
            if first is second or (id(first), id(second)) in seen:
                continue
            seen.add((id(first), id(second)))
            waiting.extend(_parts(first, second, read))
    except _Differs:
        return False
    return True


def _parts(first: Any, second: Any, read: frozenset[str]) -> Iterator[Pair]:
    """What the two hold at the same places."""
    kind = first.__class__
    if kind is not second.__class__:
        raise _Differs
    if kind in _PLAIN or kind in _SETS:
        if first != second:
            raise _Differs
    elif kind in _LISTS:
        if len(first) != len(second):
            raise _Differs
        yield from zip(first, second, strict=True)
    elif kind is dict:
        if first.keys() != second.keys():
            raise _Differs
        yield from ((held, second[key]) for key, held in first.items())
    elif is_record(first):
        apart = _APART if isinstance(first, Value | Operation) else ()
        names = (name for name in names_of(kind) if name not in apart and (name != "attrs" or not isinstance(first, Instance | Opaque)))
        yield from ((getattr(first, name), getattr(second, name)) for name in names)
        if isinstance(first, Instance):
            yield from _attributes(first.attrs, second.attrs, read)
        elif isinstance(first, Opaque):
            yield from _met(first, second)
    else:
        raise _Differs


def _attributes(first: dict[str, Value], second: dict[str, Value], read: frozenset[str]) -> Iterator[Pair]:
    for name in read:
        if (name in first) != (name in second):
            raise _Differs
        if name in first:
            yield first[name], second[name]


def _met(first: Opaque, second: Opaque) -> Iterator[Pair]:
    """The attributes of an unknown value; what was only asked for there is as unknown as what was not."""
    for name in first.attrs.keys() | second.attrs.keys():
        one, other = first.attrs.get(name), second.attrs.get(name)
        if one is not None and other is not None:
            yield one, other
        elif not _is_only_asked_for(one or other, first.name, name):
            raise _Differs


def _is_only_asked_for(value: Value | None, owner: str, name: str) -> bool:
    return (
        isinstance(value, Opaque)
        and value.name in (f"{owner}.{name}", f"{owner}{name}")
        and value.buffer is None
        and all(_is_only_asked_for(held, value.name, inner) for inner, held in value.attrs.items())
    )
