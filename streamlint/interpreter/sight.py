"""How two objects that were made on different ways differ for a body, which reads certain attributes of objects at hand."""

from __future__ import annotations

from collections import deque
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
_MOST = 20_000  # pairs that are looked at
Names = frozenset[str]
Pair = tuple[Any, Any]


class _Differs(Exception):
    """They hold something else at one place."""


def differences(one: object, other: object) -> tuple[Names, ...]:
    """Each difference by the attributes of objects at hand that lead to it: who reads all of these may find it, and nobody else.

    A difference that no attribute leads to (or that more pairs would have to be looked at for) is found by all: it has no names.
    """
    waiting: deque[tuple[Pair, Names]] = deque([((one, other), frozenset())])
    seen: dict[tuple[int, int], list[Names]] = {}
    found: list[Names] = []
    count = 0
    while waiting:
        (first, second), names = waiting.popleft()
        before = seen.setdefault((id(first), id(second)), [])
        if first is second or any(held <= names for held in (*before, *found)):
            continue
        before.append(names)
        count += 1
        if count > _MOST:
            return (frozenset(),)
        if isinstance(first, Instance) and isinstance(second, Instance):
            for name in sorted(first.attrs.keys() | second.attrs.keys()):
                if name in first.attrs and name in second.attrs:
                    waiting.append(((first.attrs[name], second.attrs[name]), names | {name}))
                else:
                    found.append(names | {name})
        try:
            waiting.extend((pair, names) for pair in list(_parts(first, second)))
        except _Differs:
            found.append(names)
    return tuple(set(found))


def _parts(first: Any, second: Any) -> Iterator[Pair]:
    """What the two hold at the same places, but for the attributes of objects at hand."""
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
        if isinstance(first, Opaque):
            yield from _met(first, second)
    else:
        raise _Differs


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
