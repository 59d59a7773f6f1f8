"""What stands behind an early way out (``if (count <= capacity) return;``) stands under its condition, as in an arm."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.interpreter.endings import arms_leave
from streamlint.interpreter.guards import are_new, compares_size, lvalue, places_in
from streamlint.interpreter.run import Run
from streamlint.operations import Guard


def guard_behind(run: Run, body: list[p.Statement], index: int) -> Guard | None:
    """The guard of the statements behind an ``if`` that was passed by: they keep what it asked for, so that it leaves the next time."""
    node = body[index]
    assert isinstance(node, p.If)
    if index + 1 == len(body) or not arms_leave(node, run.file)[0]:
        return None
    kind, places = _kept_behind(node, tuple(body[:index]), tuple(body[index + 1 :]))
    if not kind or (kind == "first" and all(run.frame.environment.find(place) is not None for place in places)):
        return None  # a variable of the function is new in each call: a status that is asked for after each step
    if are_new(run, places):
        return None
    return Guard(kind, run.span((*node.at[:2], *body[-1].at[2:])))


@functools.lru_cache(maxsize=8192)
def _kept_behind(node: p.If, before: tuple[p.Statement, ...], rest: tuple[p.Statement, ...]) -> tuple[str, frozenset[str]]:
    """``growth`` or ``first`` with the places that are asked for and kept; empty where it is neither."""
    asked = _satisfied(node.test)
    if not asked:
        return "", frozenset()
    kept = frozenset(asked & _given(rest) - _given(before))
    if not kept:
        return "", kept
    return ("growth" if compares_size(node.test) else "first"), kept


def _satisfied(test: p.Expression) -> set[str]:
    """The places of which a condition says that they will do as they are: set, equal to what is wanted, or no less."""
    if isinstance(test, p.Bool):
        return set().union(*map(_satisfied, test.values))
    if isinstance(test, p.Compare):
        if test.op in ("<", "<=", ">", ">="):
            return _texts(test.left, test.right)
        if isinstance(test.right, p.Const):
            return _texts(test.left) if test.op in ("!=", "is not") and not test.right.value else set()
        return _texts(test.left, test.right) if test.op == "==" else set()
    return _texts(test)


def _texts(*nodes: p.Expression) -> set[str]:
    """The places that these are, or that they ask for their size."""
    holders = (node.function.value if isinstance(node, p.Call) and isinstance(node.function, p.Attr) else node for node in nodes)
    return {text for holder in holders if (text := lvalue(holder))}


def _given(body: tuple[p.Statement, ...]) -> set[str]:
    """The places that statements give a new value, which is not the old one counted on."""
    found: set[str] = set()
    for statement in body:
        for node in p.walk(statement):
            targets: tuple[object, ...] = ()
            if isinstance(node, p.Declare):
                found.add(node.name)
            elif isinstance(node, p.Assign | p.AssignExpr) and node.op is None:
                given = node.targets if isinstance(node, p.Assign) else (node.target,)
                old = places_in(node.value) if node.value is not None else set()  # an annotation alone
                targets = tuple(target for target in given if lvalue(target) not in old)
            elif isinstance(node, p.AddressOf):
                targets = (node.value,)
            elif isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name in _RESIZES:
                targets = (node.function.value,)
            found.update(text for target in targets if (text := lvalue(target)))
    return found


_RESIZES = frozenset({"resize", "reserve", "reset", "assign"})
