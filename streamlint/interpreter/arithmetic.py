"""What operators make of values: numbers are computed, tensors work, pointers move, the rest is a term."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable
from typing import Any

from streamlint import program as p
from streamlint.interpreter import items
from streamlint.interpreter.addresses import array_type, is_address, moved_address
from streamlint.interpreter.extension import TENSORS
from streamlint.interpreter.handed import computed_from, works_in_fork
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    Const,
    LibraryName,
    Opaque,
    Series,
    Table,
    Value,
    is_plain,
)
from streamlint.interpreter.weights import rebound

_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "**": operator.pow,
}
_LARGEST = 1 << 62
_LONGEST_RING = 4
_LONGEST_TERM = 8_000  # characters: a longer one is known by its hash


def combine(run: Run, node: p.Node, op: str, left: Value, right: Value) -> Value:
    """``left op right``: numbers are computed, tensors work, pointers move, the rest is a term."""
    if isinstance(left, Const) and isinstance(right, Const):
        return _fold(run, op, left, right)
    if run.file.is_cuda:
        return _cpp_arithmetic(run, node, op, left, right)
    left, right = rebound(left), rebound(right)
    if op == "%" and isinstance(left, Const) and isinstance(left.value, str):
        return printed(run, right, node)
    if is_address(left) or is_address(right):
        return moved_address(run, _term(op, left, right), op, left, right)
    if isinstance(left, Buffer) or isinstance(right, Buffer):
        return tensor_arithmetic(run, node, left, right)
    if op == "+" and isinstance(left, Series) and isinstance(right, Series) and left.items is not None and right.items is not None:
        return Series([*left.items, *right.items], kind=left.kind)
    if op == "*" and isinstance(left, Series) and left.items is not None:
        return items.repeated(left, right)
    if op == "|" and isinstance(left, Table) and isinstance(right, Table):
        return Table({**left.items, **right.items}, {**left.keys, **right.keys}, left.complete and right.complete)
    if op == "*" and (repeated := array_type(run, node, left, right)) is not None:
        return repeated
    result = run.opaque(_term(op, left, right), left, right)
    result.plain = is_plain(left) and is_plain(right)
    computed_from(run, result, (left, right), run.node_span(node), op)
    if op == "@":
        works_in_fork(run, (left, right), run.node_span(node), op)
    return result


def _fold(run: Run, op: str, left: Const, right: Const) -> Value:
    if _modulus(op, right) > _LONGEST_RING:
        return run.opaque(_term(op, left, right))  # a few rounds say nothing of an interval
    run.ring = max(run.ring, _ring(op, left, right))
    action = _ARITHMETIC.get(op)
    small = all(not isinstance(v.value, int) or abs(v.value) < _LARGEST for v in (left, right))
    if action is not None and small and not (op in ("**", "<<") and not _modest(right.value)) and not _is_long(op, left, right):
        try:
            if op == "/" and run.file.is_cuda and isinstance(left.value, int) and isinstance(right.value, int):
                return Const(left.value // right.value)
            return Const(action(left.value, right.value))
        except Exception:
            return run.opaque(_term(op, left, right))
    return run.opaque(_term(op, left, right))


def _ring(op: str, left: Const, right: Const) -> int:
    """How many places a counter goes round through: ``i % n``, ``i & 1``, ``turn ^ 1``, ``1 - turn``; 0 where it is none."""
    if 2 <= (modulus := _modulus(op, right)) <= _LONGEST_RING:
        return modulus
    flips = (op == "^" and right.value == 1) or (op == "-" and left.value == 1 and right.value in (0, 1))
    return 2 if flips else 0


def _modulus(op: str, right: Const) -> int:
    """``i % n`` and, for powers of two, ``i & (n - 1)``: how many remainders there are; 0 where it is neither."""
    if not isinstance(right.value, int):
        return 0
    if op == "&" and right.value > 0 and right.value & (right.value + 1) == 0:
        return right.value + 1
    return right.value if op == "%" else 0


def _is_long(op: str, left: Const, right: Const) -> bool:
    """Whether a product is a text: a system that promises more memory than it has ends the process for a long one."""
    return op == "*" and any(isinstance(one.value, str | bytes) for one in (left, right))


def _modest(value: object) -> bool:
    return isinstance(value, int | float) and 0 <= value <= 64


def _term(op: str, left: Value, right: Value) -> str:
    one, two = left.term, right.term
    if op == "*" and one == "1":
        return two
    if (op == "*" and two == "1") or (op in "+-" and two == "0"):
        return one
    if op == "*" and "0" in (one, two):
        return "0"
    if op == "+" and one == "0":
        return two
    text = f"({one} {op} {two})"
    return text if len(text) < _LONGEST_TERM else f"({op} {hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()})"


def _cpp_arithmetic(run: Run, node: p.Node, op: str, left: Value, right: Value) -> Value:
    if any(isinstance(v, Buffer) and v.type in TENSORS for v in (left, right)):
        return tensor_arithmetic(run, node, left, right)
    for base, offset in ((left, right), (right, left)):
        if isinstance(base, Buffer) and op in ("+", "-"):
            return Buffer(base.storage, (*base.part, ("s", offset.term, "?")), base.type, attrs=base.attrs, element=base.element)
        if isinstance(base, Opaque) and op in ("+", "-") and (memory := _pointed_to(run, base)) is not None:
            return Buffer(memory.storage, (*memory.part, ("s", offset.term, "?")), memory.type)
    if op == "<<" and isinstance(left, LibraryName | Opaque) and left.term.startswith(("std::cout", "std::cerr", "cout")):
        from streamlint.interpreter.effects.host import read_values

        read_values(run, (right,), run.node_span(node), "std::cout")
        return left
    return run.opaque(_term(op, left, right), left, right)


def _pointed_to(run: Run, value: Opaque) -> Buffer | None:
    """What an unknown value points to, where it is a plain pointer: arithmetic on it stays in that memory."""
    from streamlint.interpreter.effects import buffer_of

    kind = value.cpp_type
    return buffer_of(run, value) if value.buffer is not None or (kind is not None and kind.pointers == 1) else None


def tensor_arithmetic(run: Run, node: p.Node, *operands: Value, name: str = "") -> Value:
    """Tensors work where they are."""
    from streamlint.interpreter.effects.work import ARITHMETIC, compute

    return compute(run, operands, run.node_span(node), name or ARITHMETIC)


def printed(run: Run, value: Value, node: p.Node) -> Value:
    """``"%.3f" % loss``, ``"%s: %.3f" % (name, loss)``."""
    from streamlint.interpreter.effects.host import read_values

    values = value.items if isinstance(value, Series) and value.kind == "tuple" and value.items is not None else [value]
    read_values(run, values, run.node_span(node), "formatting")
    return run.opaque(f"text{run.visit_key(node)}")
