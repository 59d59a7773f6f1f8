"""Decisions inside expressions (``a if c else b``, ``x or y``, a filter): which of them are worth a path of their own.

What is chosen counts, not that it is chosen: streams, memory, what names or calls the device. A chosen constant counts once it is tested
where arms matter, or given to the device's libraries. The rest is looked at when an ``if`` that matters asks the same.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamlint import program as p
from streamlint.interpreter.conditions import holds
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Instance, LibraryName, Opaque, Series, Table, Value

_PLAIN = (Const, Opaque, Series, Table, LibraryName)
_MOST = 20  # values that are looked at in what an arm gives


def choice(run: Run, test: p.Expression, *arms: p.Expression) -> bool:
    """Whether a condition inside an expression holds. The arms are what it chooses from."""
    before = len(run.decisions)
    answer = holds(run, test, default=not _is_of_nothing(test, arms))
    if len(run.decisions) > before:
        matters = run.file.is_cuda or any(_matters(run, arm) for arm in arms)
        made = run.file.is_cuda or any(_is_held(run, arm) for arm in arms)
        for decision in list(run.decisions.values())[before:]:
            others = None if made or decision.arms is None else (*decision.arms, (run.file, arms))  # what was made is met later
            run.weigh(decision, decision.worth if matters else decision.orders, decision.loose or not matters, others)
    return answer


def _is_of_nothing(test: p.Expression, arms: tuple[p.Expression, ...]) -> bool:
    """``rows == 0 ? 0 : rows - 1``: the number that is left where there is nothing; as a rule there is something."""
    if not isinstance(test, p.Compare) or test.op not in ("==", "<=") or len(arms) != 2:
        return False
    return isinstance(arms[0], p.Const) and not isinstance(arms[1], p.Const) and _is_zero(test.right)


def _is_zero(node: p.Expression) -> bool:
    return isinstance(node, p.Const) and node.value == 0 and not isinstance(node.value, bool)


def _matters(run: Run, arm: p.Expression) -> bool:
    return run.file.relevance.expression_matters(arm) or _is_held(run, arm)


def _is_held(run: Run, arm: p.Expression) -> bool:
    """Whether an arm names what is no plain value: it was made elsewhere."""
    held = found(run, arm)
    return held is not None and not _is_plain(held)


def _is_plain(value: Value) -> bool:
    return all(isinstance(v, _PLAIN) and not (isinstance(v, Opaque) and v.buffer is not None) for v in reachable([value], _MOST))


def found(run: Run, node: p.Expression) -> Value | None:
    """What a name, or an attribute of an object at hand, holds: looked up, not evaluated."""
    names: list[str] = []
    while isinstance(node, p.Attr):
        names.append(node.name)
        node = node.value
    scope = run.frame.environment.find(node.id) if isinstance(node, p.Name) else None
    held = scope.names.get(node.id) if scope is not None and isinstance(node, p.Name) else None
    for name in reversed(names):
        held = held.attrs.get(name) if isinstance(held, Instance) else None
    return held


def chosen(run: Run, value: Value, decisions: int) -> Value:
    """A value that was chosen by the decisions from this number on: a constant remembers them."""
    if isinstance(value, Const) and len(run.decisions) > decisions:
        loose = [decision.atom for decision in list(run.decisions.values())[decisions:] if decision.loose]
        if loose:
            run.chosen[id(value)] = (value, loose[-1])
    return value


def told_by(run: Run, test: p.Expression) -> Iterable[str]:
    """The decisions that chose the constants which a condition asks for."""
    for node in p.walk(test):
        if isinstance(node, p.Name | p.Attr):
            held = run.chosen.get(id(found(run, node)))
            if held is not None:
                yield held[1]


def used(run: Run, values: Iterable[Value]) -> None:
    """The device's libraries are given these: what chose one of them counts."""
    for value in values:
        held = run.chosen.get(id(value))
        if held is not None and held[1] in run.decisions:
            run.leave_open(held[1])
