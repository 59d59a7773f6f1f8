"""What the number that the host fetched is used for: logs, sums, text and containers could do with it later, decisions could not."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from streamlint import program as p
from streamlint.interpreter.standing import Stand, changing

# Names may silence a finding, never cause one: what a value that is fed back is called.
_STEERS = re.compile(
    r"(?i)sched|stop|adapt|control|ctl|lr\b|_lr|(?<![a-z])rate|coef|beta|scale|temper|thresh|weight|patience|plateau|step$|best|alpha|prior"
)
_SHOWS = re.compile(r"(?i)loss|norm|metric|log|hist|stat|acc|sum|total|count|mean")
_OF_GROUPS = frozenset({"lr", "momentum", "weight_decay", "eps", "betas", "initial_lr", "max_lr"})  # of an optimizer's param_groups
_WRAPPERS = frozenset({"float", "int", "round", "str", "abs", "repr", "sum", "dict", "list", "tuple", "format"})
_DECIDES = frozenset({"isnan", "isfinite", "isinf", "range", "bool", "max", "min", "any", "all", "enumerate", "zip"})
_KEEPS = frozenset({"append", "extend", "add", "appendleft", "setdefault", "insert"})
_DEEPEST = 6


def is_avoidable(stands: Sequence[Stand], or_stops: bool = False) -> bool:
    """Whether nothing in the round needs the value that the last of ``stands`` fetches. The first of them holds the loop.

    ``or_stops`` takes a test as well: one that ends the loop could be made less often.
    """
    way = stands[-1].way
    if or_stops and any(isinstance(node, p.If) and below is node.test for node, below in itertools.pairwise(way)):
        return True
    return _later(stands, len(stands) - 1, stands[-1].way, _DEEPEST, frozenset())


def _later(stands: Sequence[Stand], level: int, way: tuple[object, ...], depth: int, seen: frozenset[str]) -> bool:
    if depth <= 0 or not way:
        return False
    for index in range(len(way) - 1, 0, -1):
        verdict = _passes(stands, level, way, index, depth, seen)
        if verdict is not None:
            return verdict
    return False


def _passes(stands: Sequence[Stand], level: int, way: tuple[object, ...], index: int, depth: int, seen: frozenset[str]) -> bool | None:
    """What the parent of ``way[index]`` makes of the value: an answer, or None where it hands it on."""
    node, parent = way[index], way[index - 1]
    if isinstance(node, p.Statement):
        return False
    if isinstance(parent, p.Format | p.ExprStatement):
        return True
    if isinstance(parent, p.Compare | p.Assert | p.Slice | p.Lambda | p.Yield | p.Raise | p.Loop | p.Switch | p.With | p.Clause):
        return False
    if isinstance(parent, p.If | p.Conditional):
        return False if node is parent.test else None
    if isinstance(parent, p.Bool):
        # `f(a > 0 and b > 0)`: of tensors `&` does the same on the device.
        return index >= 2 and isinstance(way[index - 2], p.Arg) and isinstance(node, p.Compare)
    if isinstance(parent, p.Index):
        return None if node is parent.value else False
    if isinstance(parent, p.Call):
        return _given(node, parent)
    if isinstance(parent, p.Arg):
        return None
    if isinstance(parent, p.Assign):
        return _assigned(stands, level, parent.targets, parent.op, depth, seen)
    if isinstance(parent, p.AssignExpr):
        return False if not _assigned(stands, level, (parent.target,), parent.op, depth, seen) else None
    if isinstance(parent, p.Return):
        return _returned(stands, level, depth, seen)
    if isinstance(parent, p.Handler | p.Delete):
        return False
    return None


def _given(node: object, call: p.Call) -> bool | None:
    """The value is an argument of a call, or the call is a method of it."""
    if node is call.function:
        return None
    name = _called(call)
    if name in _DECIDES:
        return False
    if name in _WRAPPERS:
        return None
    if name in _KEEPS:
        return True
    if _STEERS.search(_full(call)):
        return False
    return None


def _called(call: p.Call) -> str:
    function = call.function
    return function.name if isinstance(function, p.Attr) else function.id if isinstance(function, p.Name) else ""


def _full(call: p.Call) -> str:
    return _spelled(call.function)


def _spelled(node: object) -> str:
    if isinstance(node, p.Attr):
        return f"{_spelled(node.value)}.{node.name}"
    if isinstance(node, p.Name):
        return node.id
    if isinstance(node, p.Index):
        return f"{_spelled(node.value)}[{' '.join(_spelled(i) for i in node.indices)}]"
    return str(node.value) if isinstance(node, p.Const) else ""


def _assigned(
    stands: Sequence[Stand], level: int, targets: tuple[p.Expression, ...], op: str | None, depth: int, seen: frozenset[str]
) -> bool:
    return all(_held_by(stands, level, target, op, depth, seen) for target in targets)


def _held_by(stands: Sequence[Stand], level: int, target: p.Expression, op: str | None, depth: int, seen: frozenset[str]) -> bool:
    if isinstance(target, p.Collection):
        return all(_held_by(stands, level, item, op, depth, seen) for item in target.items)
    if isinstance(target, p.Starred):
        return _held_by(stands, level, target.value, op, depth, seen)
    if isinstance(target, p.Index):
        return not any(isinstance(index, p.Const) and index.value in _OF_GROUPS for index in target.indices)
    if isinstance(target, p.Attr):
        return bool(_SHOWS.search(target.name)) or not _STEERS.search(target.name)
    if not isinstance(target, p.Name):
        return False
    if target.id in seen:
        return True
    stand = stands[level]
    region = stand.loop.body if stand.loop is not None else stand.body
    return all(_later(stands, level, way, depth - 1, seen | {target.id}) for way in _mentions(region, target.id))


def _mentions(body: Sequence[object], name: str) -> list[tuple[object, ...]]:
    """The ways to each place of a body where a name is read."""
    found: list[tuple[object, ...]] = []
    stack: list[tuple[object, ...]] = [(statement,) for statement in body]
    while stack:
        way = stack.pop()
        node = way[-1]
        if isinstance(node, p.Name):
            if node.id == name and not _is_target(way):
                found.append(way)
            continue
        stack.extend((*way, child) for child in p.children(node))
    return found


def _is_target(way: tuple[object, ...]) -> bool:
    """Whether a name is given a value here, or deleted."""
    for outer, inner in zip(way[-3:-1], way[-2:], strict=False):
        if isinstance(outer, p.Assign) and any(inner is target for target in outer.targets):
            return True
        if (isinstance(outer, p.Loop | p.Clause) and inner is outer.target) or isinstance(outer, p.Delete):
            return True
    return False


def _returned(stands: Sequence[Stand], level: int, depth: int, seen: frozenset[str]) -> bool:
    """The value goes to the caller, whose use of the call decides; out of the loop's own function it leaves the loop."""
    if level == 0:
        return False
    return _later(stands, level - 1, stands[level - 1].way, depth - 1, frozenset())


def is_constant(stand: Stand, node: p.Expression) -> bool:
    """Whether an expression is made of literals alone, or of names that the loop gives no value."""
    given = changing(stand)
    names = [n for n in p.walk(node) if isinstance(n, p.Name)]
    return not any(isinstance(n, p.Call) for n in p.walk(node)) and not any(n.id in given for n in names)
