"""C++: a loop by iterators over a sequence goes through its elements, as a range-based one does."""

from __future__ import annotations

from streamlint import program as p
from streamlint.record import record

_BEGINS = {"begin": "end", "cbegin": "cend", "rbegin": "rend", "crbegin": "crend"}


@record(frozen=True, slots=True)
class Walk:
    """``for (auto it = holder.begin(); it != holder.end(); ++it)``; ``backward`` with reverse iterators."""

    name: str
    holder: p.Expression
    backward: bool


def walk_of(node: p.Loop) -> Walk | None:
    """How a loop goes through a sequence, if it does so by an iterator, from one end to the other."""
    declared = node.init[0] if len(node.init) == 1 else None
    update, test = node.update, node.test
    if not isinstance(declared, p.Declare) or not isinstance(update, p.AssignExpr) or not isinstance(test, p.Compare):
        return None
    holder, begin = _end_of(declared.value)
    last, end = _end_of(test.right)
    counts = update.op == "+" and isinstance(update.value, p.Const) and update.value.value == 1
    if holder is None or last is None or not counts or test.op != "!=" or _BEGINS.get(begin) != end:
        return None
    if not (_is_named(update.target, declared.name) and _is_named(test.left, declared.name) and _path(holder) == _path(last) != ""):
        return None
    return Walk(declared.name, holder, begin in ("rbegin", "crbegin"))


def _end_of(value: p.Expression | None) -> tuple[p.Expression | None, str]:
    """The sequence at one of whose ends an iterator is made, and which it is."""
    if not isinstance(value, p.Call):
        return None, ""
    if isinstance(value.function, p.Attr) and not value.args:
        return value.function.value, value.function.name
    if isinstance(value.function, p.Name) and len(value.args) == 1 and value.function.id.startswith("std::"):
        return value.args[0].value, value.function.id.removeprefix("std::")
    return None, ""


def _is_named(target: p.Expression, name: str) -> bool:
    return isinstance(target, p.Name) and target.id == name


def _path(value: p.Expression) -> str:
    """A variable or a member as it is written; empty for what else gives a sequence."""
    if isinstance(value, p.Name):
        return value.id
    inner = _path(value.value) if isinstance(value, p.Attr) else ""
    return f"{inner}.{value.name}" if isinstance(value, p.Attr) and inner else ""
