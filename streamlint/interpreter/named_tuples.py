"""Named tuples: objects with fields that are taken apart, counted through and indexed as tuples are."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.values import Const, Instance, Series, Table, Value


def is_named_tuple(definition: p.Class) -> bool:
    """Whether a class at hand is one, by its own bases: ``class C(NamedTuple)``, and what ``C = namedtuple(…)`` is lowered to."""
    return any(
        (isinstance(base, p.Name) and base.id == "NamedTuple") or (isinstance(base, p.Attr) and base.name == "NamedTuple")
        for base in definition.bases
    )


def as_tuple(value: Value) -> Series | None:
    """The elements of a named tuple whose fields are all known, in order; None of anything else."""
    if not isinstance(value, Instance) or value.file.is_cuda or not is_named_tuple(value.definition):
        return None
    held = [value.attrs.get(declared.name) for declared in value.definition.fields if declared.annotation is not None]
    known = [element for element in held if element is not None]
    return Series(known, kind="tuple") if known and len(known) == len(held) else None


def as_table(value: Value) -> Table | None:
    """``x._asdict()``."""
    if as_tuple(value) is None or not isinstance(value, Instance):
        return None
    names = [declared.name for declared in value.definition.fields if declared.annotation is not None]
    keys: dict[str, Value] = {(key := Const(name)).term: key for name in names}
    return Table({key: value.attrs[name] for key, name in zip(keys, names, strict=True)}, keys)
