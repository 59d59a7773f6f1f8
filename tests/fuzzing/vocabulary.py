"""Calls of the linter's own models, with arguments where its rows say that they stand."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from streamlint import models
from streamlint.models.vocabulary import Row, Selector

# Which kind of value a field of a row is about; what is not listed takes any.
FIELDS = {
    "stream": "stream",
    "event": "event",
    "on": "event",
    "dst": "buffer",
    "src": "buffer",
    "of": "buffer",
    "reads": "buffer",
    "writes": "buffer",
    "out": "buffer",
    "data": "buffer",
    "bytes": "number",
    "shape": "number",
    "device": "device",
    "to_device": "number",
    "from_device": "number",
    "function": "function",
    "arguments": "any",
    "asynchronous": "flag",
    "pin": "flag",
    "timing": "flag",
    "blocking": "flag",
    "timeout": "number",
    "workers": "number",
    "into": "new",
    "handle": "any",
}
KINDS = {"buffer": "buffer", "stream": "stream", "event": "event", "pointer": "buffer"}
FIRST = {
    "copy",
    "alloc",
    "free",
    "factory",
    "transfer",
    "launch",
    "record",
    "wait",
    "synchronize",
    "stream",
    "event",
    "callback",
    "memset",
    "pin",
}


@dataclass(frozen=True)
class Spot:
    """One argument of a call: its kind, and the keyword that it may be given by."""

    kind: str
    keyword: str | None = None
    pointee: bool = False


@dataclass(frozen=True)
class Call:
    """A call of a model: a function, or a method of a type."""

    name: str
    type: str  # of the receiver; empty for functions
    kind: str  # of the receiver
    positions: tuple[Spot, ...]
    keywords: tuple[Spot, ...]


@functools.cache
def calls(language: str) -> tuple[list[Call], list[Call]]:
    """Calls that move, order or allocate, and all others, in the order of their names."""
    table = models.builtin(language)
    first: list[Call] = []
    others: list[Call] = []
    for name, row in sorted(table.calls.items()):
        (first if row.effect in FIRST else others).append(_call(name, row, table, "::" if language == "cuda" else "."))
    return first, others


def _call(name: str, row: Row, table: models.Models, separator: str) -> Call:
    owner, _, method = name.rpartition(separator)
    held = table.types.get(owner)
    positions: dict[int, Spot] = {}
    keywords: list[Spot] = []
    for field, value in row.values.items():
        for selector in value if isinstance(value, tuple) else (value,):
            if isinstance(selector, Selector) and selector.kind in ("argument", "pointee"):
                spot = Spot(FIELDS.get(field, "any"), selector.keyword, selector.kind == "pointee")
                if selector.position is None:
                    keywords.append(spot)
                else:
                    positions[selector.position] = spot
    spots = tuple(positions.get(index, Spot("any")) for index in range(max(positions, default=-1) + 1))
    if held is None:
        return Call(name, "", "", spots, tuple(keywords))
    return Call(method, owner, KINDS.get(held.kind, "any"), spots, tuple(keywords))
