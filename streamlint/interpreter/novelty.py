"""What a path shows: two paths of a root that show the same differ in nothing that a check can see."""

from __future__ import annotations

import enum
from typing import Any

from streamlint.findings import Span
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Event, Stream
from streamlint.operations import Evidence, Opaque, Operation
from streamlint.record import names_of

Shown = tuple[frozenset[tuple[Any, ...]], frozenset[tuple[Any, ...]]]

_FIELDS: dict[type, tuple[str, ...]] = {}
# Where an operation stands on its path, and what is told of it.
_PLACE = frozenset({"index", "context", "guesses", "trail", "gil", "refused"})
_PLAIN = (bool, int, str, enum.Enum, Span)
_EXACT = frozenset({bool, int, str, Span})  # most fields hold these, or nothing


def shown(run: Run) -> Shown:
    """The operations and conflicts of a path, without their order; calls out of view count where they work on the device."""
    operations = frozenset(_shape(operation) for operation in run.machine.operations if _counts(operation))
    conflicts = frozenset((c.first.span, c.second.span, c.missing, c.first_writes) for c in run.machine.conflicts)
    return operations, conflicts


def _counts(operation: Operation) -> bool:
    return not isinstance(operation, Opaque) or operation.on_device or operation.works is not Evidence.NONE


def _shape(operation: Operation) -> tuple[Any, ...]:
    kind = type(operation)
    names = _FIELDS.get(kind)
    if names is None:
        names = _FIELDS[kind] = tuple(name for name in names_of(kind) if name not in _PLACE)
    around = operation.context
    loops = tuple(loop.key for loop in around.loops)
    own = tuple(_facts(getattr(operation, name)) for name in names)
    return (kind, around.calls, loops, around.callback, operation.refused is not None, own)


def _facts(value: object) -> object:
    """What a check may ask of a field's value, apart from which value of the path it is."""
    if value is None or value.__class__ in _EXACT:
        return value
    if isinstance(value, Stream):
        return value.kind, value.key, value.blocking, value.how
    if isinstance(value, Buffer):
        storage = value.storage
        return value.type, value.part, storage.memory, storage.evidence, storage.host, storage.raw, storage.small, storage.owner
    if isinstance(value, Event):
        return value.unknown, value.timing, value.timed
    if isinstance(value, tuple):
        return tuple(_facts(item) for item in value)
    return value if isinstance(value, _PLAIN) else None
