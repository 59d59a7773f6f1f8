"""Addresses as Python holds them (``t.data_ptr()``, ctypes, cuda-python), and the arrays of C that are seen at them."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, LibraryName, Value


def is_address(value: Value) -> bool:
    """A pointer: what it points to is not touched by computing with it."""
    return isinstance(value, Buffer) and value.type == "pointer"


def moved_address(run: Run, term: str, op: str, left: Value, right: Value) -> Value:
    """``address + offset`` points to a range of the same memory."""
    for base, offset in ((left, right), (right, left)):
        if isinstance(base, Buffer) and op in ("+", "-") and not isinstance(offset, Buffer):
            return Buffer(base.storage, (*base.part, ("s", offset.term, "?")), base.type)
    return run.opaque(term, left, right)


def array_type(run: Run, node: p.Node, left: Value, right: Value) -> Value | None:
    """``ctypes.c_float * n``: the type of an array."""
    from streamlint.interpreter.effects import apply

    kind, count = (left, right) if isinstance(left, LibraryName) else (right, left)
    row = run.file.models.call(f"{kind.name}.__mul__") if isinstance(kind, LibraryName) else None
    if row is None or row.effect != "namespace":
        return None
    return apply(run, row, kind.term, kind, Arguments([count]), CallSite(node, run.node_span(node), "__mul__"))
