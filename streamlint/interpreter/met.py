"""Conditions that steps looked at on request come through: more is asked for here than ``standing`` does for loops that train in view."""

from __future__ import annotations

import functools

from streamlint import program as p
from streamlint.interpreter.at_hand import function_at_hand
from streamlint.interpreter.guards import lvalue
from streamlint.interpreter.index import dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.spelling import says
from streamlint.interpreter.standing import Stand, Test, conditions, evaluates, is_of_nothing, lets_pass, unnegated
from streamlint.record import replace

_EXPORTS = frozenset("onnx tracing scripting export exports exporting exported exportable".split())  # names may silence
_KINDS = frozenset({"isinstance", "hasattr", "callable"})
_OF_KIND = frozenset({"type", "device", "dtype", "ndim", "is_cuda", "is_sparse", "is_quantized", "requires_grad", "layout"})


@remembered(4096)
def met_each_step(stand: Stand, loop: p.Loop) -> bool:
    """Whether only what is the same in each step stands between a body and the node: settings, kinds, and that there is data."""
    return all(_passes(stand, condition, loop) for condition in conditions(stand))


def _passes(stand: Stand, condition: Test, loop: p.Loop) -> bool:
    if condition.test is None or evaluates(stand, condition.test, condition.holds):
        return False
    test, straight = unnegated(condition.test)
    holds = condition.holds == straight
    if stand.is_forward and ((holds and _exports(test)) or _is_option(stand, test, holds)):
        return False
    if lets_pass(stand, condition, loop) or _asks_kind(stand, test, 3) or _fills(stand, test):
        return True
    if isinstance(test, p.Bool) and (test.op == "and") == holds:
        return all(_passes(stand, replace(condition, test=value, holds=holds), loop) for value in test.values)
    return is_of_nothing(stand, condition) or _is_first_of_some(stand, condition)


def _exports(test: p.Expression) -> bool:
    return any(isinstance(node, p.Name | p.Attr) and says(lvalue(node) or "", _EXPORTS) for node in p.walk(test))


def _is_option(stand: Stand, test: p.Expression, holds: bool) -> bool:
    """``if self.file is not None`` where the constructor gives None unless somebody asks for more."""
    if not isinstance(test, p.Compare) or test.op not in ("is", "is not") or holds != (test.op == "is not") or stand.owner is None:
        return False
    place = lvalue(test.left) or ""
    made = [
        node.value
        for function in stand.owner.methods.get("__init__", ())
        for statement in function.body
        for node in p.walk(statement)
        if isinstance(node, p.Assign) and any(lvalue(target) == place for target in node.targets)
    ]
    return place.startswith("self.") and any(isinstance(value, p.Const) and value.value is None for value in made)


def _asks_kind(stand: Stand, test: p.Expression, depth: int) -> bool:
    """Whether a condition asks what a value is, or where: ``torch.is_tensor(x)``, ``x.device.type == "xla"``."""
    if depth <= 0:
        return False
    if isinstance(test, p.Bool):
        return all(_asks_kind(stand, value, depth) for value in test.values)
    if isinstance(test, p.Unary):
        return test.op == "not" and _asks_kind(stand, test.operand, depth)
    if isinstance(test, p.Compare):
        return isinstance(test.left, p.Attr) and test.left.name in _OF_KIND
    if isinstance(test, p.Call):
        if isinstance(test.function, p.Name) and test.function.id in _KINDS:
            return True
        return dotted_name(stand.file, test.function) == "torch.is_tensor" or _gives_kind(stand, test.function, depth)
    if isinstance(test, p.Attr) and test.name in _OF_KIND:
        return True
    values = _values(stand.body, lvalue(test) or "") if isinstance(test, p.Name | p.Attr) else ()
    return bool(values) and all(_asks_kind(stand, value, depth - 1) for value in values)


def _gives_kind(stand: Stand, function: p.Expression, depth: int) -> bool:
    """Whether all that a function at hand answers are such questions."""
    held = function_at_hand(function, stand.file)
    if held is None:
        return False
    given = [node.value for statement in held[0].body for node in p.walk(statement) if isinstance(node, p.Return)]
    there = replace(stand, file=held[1], function=held[0], owner=None, body=tuple(held[0].body))
    return bool(given) and all(value is not None and _asks_kind(there, value, depth - 1) for value in given)


@functools.lru_cache(maxsize=4096)
def _values(body: tuple[p.Statement, ...], place: str) -> tuple[p.Expression, ...]:
    """What a body gives to a name or an attribute."""
    made = (node for statement in body for node in p.walk(statement) if isinstance(node, p.Assign) and node.value is not None)
    return tuple(node.value for node in made if node.value is not None and place in map(lvalue, node.targets))


def _fills(stand: Stand, test: p.Expression) -> bool:
    """``if len(losses) > 1`` of a list or dict that the body begins with nothing in it: as many in each step."""
    counted = _counted(test.left) if isinstance(test, p.Compare) and isinstance(test.right, p.Const) else None
    values = _values(stand.body, counted.id) if isinstance(counted, p.Name) else ()
    return bool(values) and all(isinstance(value, p.Collection | p.Mapping) and not value.items for value in values)


def _is_first_of_some(stand: Stand, condition: Test) -> bool:
    """``x[0].item() if len(x) > 0 else end``: what is read is there most of the time."""
    test = condition.test
    if not isinstance(test, p.Compare) or test.op != ">" or not condition.holds or condition.skips:
        return False
    counted = _counted(test.left)
    if not isinstance(counted, p.Name) or not isinstance(test.right, p.Const) or test.right.value != 0:
        return False
    return any(isinstance(node, p.Name) and node.id == counted.id for node in p.walk(stand.node))


def _counted(node: p.Expression) -> p.Expression | None:
    """``x`` of ``len(x)``."""
    asks = isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id == "len"
    return node.args[0].value if isinstance(node, p.Call) and asks and node.args else None
