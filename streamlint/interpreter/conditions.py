"""Conditions: what is known is computed, what is not is an atom that gets one answer a path, and refines the values it speaks of."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.unknowns import truth
from streamlint.interpreter.values import Buffer, Const, Device, Opaque, Value
from streamlint.operations import Evidence, Memory

_ORDERED: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_NEGATED = {"!=": "==", ">=": "<", ">": "<=", "is not": "is", "not in": "in"}


def test(run: Run, node: p.Expression, default: bool = True) -> bool:
    """Whether a condition holds on this path."""
    run.step()
    if isinstance(node, p.Bool):
        # `and`: all must hold; a default of true is wanted of each part.
        for part in node.values:
            if test(run, part, default) != (node.op == "and"):
                return node.op == "or"
        return node.op == "and"
    if isinstance(node, p.Unary) and node.op == "not":
        return not test(run, node.operand, not default)
    if isinstance(node, p.Compare):
        return _test_comparison(run, node, default)
    if isinstance(node, p.AssignExpr | p.Cast) or not isinstance(node, p.Attr):
        return _decide_value(run, node, run.evaluate(node), default)
    return _test_attribute(run, node, default)


def _decide_value(run: Run, node: p.Expression, value: Value, default: bool) -> bool:
    known = truth(value)
    if known is not None:
        return known
    if isinstance(value, Buffer) and not run.file.is_cuda:
        from streamlint.interpreter.effects.host import read_values

        read_values(run, (value,), run.node_span(node), "bool()")
    if isinstance(value, Buffer) and run.file.is_cuda:
        return True  # a pointer that was allocated
    return run.decide(_canonical(value.term), default, run.node_span(node))


def _canonical(term: str) -> str:
    while term.startswith("not not "):
        term = term[8:]
    return term


def _test_attribute(run: Run, node: p.Attr, default: bool) -> bool:
    from streamlint.interpreter.attributes import get_attribute

    holder = run.evaluate(node.value)
    value = get_attribute(run, holder, node.name, node)
    if node.name == "is_cuda" and isinstance(holder, Buffer | Opaque) and truth(value) is None:
        answer = run.decide(value.term, True, run.node_span(node))
        if isinstance(holder, Buffer) and answer:
            holder.storage.memory = Memory.DEVICE
            holder.storage.evidence = Evidence.LITERAL
        return answer
    return _decide_value(run, node, value, default)


def _test_comparison(run: Run, node: p.Compare, default: bool) -> bool:
    left, right = run.evaluate(node.left), run.evaluate(node.right)
    known = compare(node.op, left, right)
    if known is not None:
        return known
    tensors = [v for v in (left, right) if isinstance(v, Buffer)]
    if tensors and node.op not in ("is", "is not") and not run.file.is_cuda:
        from streamlint.interpreter.effects.host import read_values

        read_values(run, tensors, run.node_span(node), "comparison")
    op, negated = (_NEGATED[node.op], True) if node.op in _NEGATED else (node.op, False)
    atom = f"{left.term} {op} {right.term}"
    if node.op in ("is", "is not", "==", "!=") and isinstance(right, Const) and right.value is None:
        # An unknown is not None unless shown: its None arm is the less likely one.
        answer = run.decide(atom, False, run.node_span(node))
    else:
        answer = run.decide(atom, default != negated, run.node_span(node))
    _refine(node, left, right, answer != negated)
    return answer != negated


def _refine(node: p.Compare, left: Value, right: Value, holds: bool) -> None:
    """`x.device.type == "cuda"` on the arm where it holds: the device is CUDA."""
    equal = holds == (node.op in ("==", "is"))
    for device, other in ((left, right), (right, left)):
        if isinstance(device, Opaque) and device.reach and isinstance(device.reach[0], Device) and isinstance(other, Const):
            owner = device.reach[0]
            if equal and str(other.value).startswith("cuda"):
                owner.space, owner.evidence = "device", Evidence.LITERAL
            elif equal and other.value == "cpu":
                owner.space = "host"


def compare(op: str, left: Value, right: Value) -> bool | None:
    """The result of a comparison where it is known."""
    if op in ("is", "is not"):
        same = _same(left, right)
        return None if same is None else same == (op == "is")
    if isinstance(left, Const) and isinstance(right, Const):
        return _compare_constants(op, left.value, right.value)
    if op in ("==", "!="):
        if left is right and not isinstance(left, Buffer):
            return op == "=="
        same = _same(left, right) if not isinstance(left, Buffer) and not isinstance(right, Buffer) else None
        if isinstance(left, Opaque) and left.term == right.term:
            same = True
        return None if same is None else same == (op == "==")
    if op in ("in", "not in"):
        return _contains(op, left, right)
    return None


def _contains(op: str, left: Value, right: Value) -> bool | None:
    from streamlint.interpreter.values import Series, Table

    if isinstance(right, Table) and (right.complete or left.term in right.items) and isinstance(left, Const | Opaque):
        if left.term in right.items:
            return op == "in"
        if not right.items or all(k.startswith(("'", '"')) or k.isdigit() for k in right.items) and isinstance(left, Const):
            return op == "not in"
        return None
    if isinstance(right, Series) and isinstance(left, Const) and right.items is not None and all(isinstance(i, Const) for i in right.items):
        return any(left.value == i.value for i in right.items if isinstance(i, Const)) == (op == "in")
    return None


def _compare_constants(op: str, left: Any, right: Any) -> bool | None:
    try:
        if op in _ORDERED:
            return bool(_ORDERED[op](left, right))
        if op == "in":
            return bool(left in right)
        if op == "not in":
            return bool(left not in right)
    except Exception:
        return None
    return None


def _same(left: Value, right: Value) -> bool | None:
    for one, two in ((left, right), (right, left)):
        if isinstance(two, Const) and two.value is None:
            if isinstance(one, Const):
                return one.value is None
            return None if isinstance(one, Opaque) else False
    if isinstance(left, Const) and isinstance(right, Const):
        return bool(left.value == right.value)
    if left is right:
        return True
    return None
