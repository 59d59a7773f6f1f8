"""Numbers that a module's ``forward`` fetches though the tensor would do: as a divisor, a factor, in a log, or one of each row at a time.

Stricter than ``uses``, for a forward works with sizes: only what cannot be a size (a fraction) may go where nobody is seen to use it.
"""

from __future__ import annotations

from collections.abc import Sequence

from streamlint import program as p
from streamlint.interpreter.guards import called_name, lvalue, places_assigned
from streamlint.interpreter.index import dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.standing import Stand, divides, only_value, unnegated, values_given
from streamlint.interpreter.uses import mentions, steers

_DEEPEST = 8
_KEEPS = frozenset({"append", "extend", "add", "appendleft", "update", "setdefault", "print", "info", "debug", "log", "add_scalar"})
_SAME = frozenset({"abs", "sum", "tuple", "list"})
_TEXT = frozenset({"str", "repr", "format"})
_UPLOADS = frozenset({"full", "tensor", "as_tensor", "new_full", "new_tensor", "full_like"})
# Methods and functions that give fractions, and those that give what they are given.
_FRACTIONS = frozenset(
    "float double half bfloat16 mean norm std var sqrt rsqrt exp log log2 log10 softmax log_softmax sigmoid tanh cross_entropy mse_loss "
    "l1_loss nll_loss kl_div smooth_l1_loss binary_cross_entropy binary_cross_entropy_with_logits cosine_similarity logsumexp div".split()
)
_KEEP_KIND = frozenset(
    "sum max min amax amin clamp clamp_ detach abs squeeze unsqueeze view reshape flatten cpu clone item contiguous cumsum new_tensor "
    "new_full mul add sub neg data square pow".split()
)
_FLOATS = frozenset({"torch.float", "torch.float32", "torch.float16", "torch.float64", "torch.half", "torch.double", "torch.bfloat16"})


@remembered(4096)
def is_spared(stands: tuple[Stand, ...]) -> bool:
    """Whether a forward could do without the number that the last of ``stands`` fetches on the host."""
    last = stands[-1]
    operand = _operand(last.node)
    if operand is None:
        return False
    if _only_limits(last) or _one_of_each(last, operand):
        return True
    real = called_name(last.node.function) == "float" if isinstance(last.node, p.Call) else False
    return _later(stands, len(stands) - 1, last.way, real or _is_fraction(last, operand, _DEEPEST), _DEEPEST, frozenset())


def _operand(node: object) -> p.Expression | None:
    """The tensor of ``x.item()``, ``float(x)``; copies of whole tensors are no numbers."""
    if not isinstance(node, p.Call):
        return None
    if isinstance(node.function, p.Attr):
        return node.function.value if node.function.name == "item" else None
    name = node.function.id if isinstance(node.function, p.Name) else ""
    return node.args[0].value if name in ("float", "int") and len(node.args) == 1 else None


# --- what kind of number -------------------------------------------------------------------------------------------------------------


def _is_fraction(stand: Stand, node: p.Expression, depth: int) -> bool:
    """Whether an expression's value cannot be a size: a mean, a loss, a quotient."""
    if depth <= 0:
        return False
    if isinstance(node, p.Const):
        return isinstance(node.value, float)
    if isinstance(node, p.Name):
        before = [v for v in values_given(stand, node.id) if v is not None and v.at[2:] <= node.at[:2]]
        return bool(before) and _is_fraction(stand, max(before, key=_place), depth - 1)
    if isinstance(node, p.Binary):
        return node.op == "/" or any(_is_fraction(stand, side, depth - 1) for side in (node.left, node.right))
    if isinstance(node, p.Unary | p.Attr):
        inner = node.operand if isinstance(node, p.Unary) else node.value
        return not (isinstance(node, p.Attr) and node.name not in _KEEP_KIND) and _is_fraction(stand, inner, depth)
    return isinstance(node, p.Call) and _gives_fraction(stand, node, depth)


def _place(node: p.Expression) -> p.Position:
    return node.at


def _gives_fraction(stand: Stand, call: p.Call, depth: int) -> bool:
    name = called_name(call.function)
    if any(arg.keyword == "dtype" for arg in call.args):
        return any(arg.keyword == "dtype" and dotted_name(stand.file, arg.value) in _FLOATS for arg in call.args)
    if name in _FRACTIONS or (name.startswith("clamp") and any(_is_fraction(stand, arg.value, 1) for arg in call.args)):
        return True
    if isinstance(call.function, p.Attr) and not dotted_name(stand.file, call.function):
        if name in _KEEP_KIND:
            return _is_fraction(stand, call.function.value, depth - 1)
        place = lvalue(call.function) or ""
        return place.startswith("self.") and (stand.owner is None or name not in stand.owner.methods) and place.count(".") == 1
    return bool(call.args) and _is_fraction(stand, call.args[0].value, depth - 1)


# --- where it goes -------------------------------------------------------------------------------------------------------------------


def _later(stands: Sequence[Stand], level: int, way: tuple[object, ...], real: bool, depth: int, seen: frozenset[str]) -> bool:
    if depth <= 0 or not way:
        return False
    for index in range(len(way) - 1, 0, -1):
        node, parent = way[index], way[index - 1]
        if isinstance(parent, p.Call) and node is not parent.function and called_name(parent.function) == "float":
            real = True
        verdict = _passes(stands, level, way, index, real, depth, seen)
        if verdict is not None:
            return verdict
    return False


def _passes(
    stands: Sequence[Stand], level: int, way: tuple[object, ...], index: int, real: bool, depth: int, seen: frozenset[str]
) -> bool | None:
    """What the parent of ``way[index]`` makes of the number: an answer, or None where it hands it on."""
    node, parent = way[index], way[index - 1]
    if isinstance(node, p.Statement):
        return False
    if isinstance(parent, p.Format | p.ExprStatement | p.Mapping):
        return True
    if isinstance(parent, p.Binary):
        if parent.op == "/" and node is parent.right:
            return True  # a tensor divides as well
        return None if parent.op in ("+", "-", "*", "/", "**") else False
    if isinstance(parent, p.Unary):
        return False if parent.op == "not" else None
    if isinstance(parent, p.Call):
        return _given(node, parent, real)
    if isinstance(parent, p.Conditional):
        return False if node is parent.test else None
    if isinstance(parent, p.Assign):
        return all(_held_by(stands, level, way[:index], target, real, depth, seen) for target in parent.targets)
    if isinstance(parent, p.Return):
        return real if level == 0 else _later(stands, level - 1, stands[level - 1].way, real, depth - 1, frozenset())
    return None if isinstance(parent, p.Arg | p.Collection | p.Starred) else False


def _given(node: object, call: p.Call, real: bool) -> bool | None:
    if node is call.function:
        return False
    name = called_name(call.function)
    if name in _KEEPS or name in _TEXT:
        return True
    if name in _UPLOADS:
        return any(arg.keyword == "device" for arg in call.args) or name.startswith("new_") or name.endswith("_like")
    if name in _SAME or name == "float":
        return None
    if name in ("max", "min"):
        others = [arg.value for arg in call.args if arg is not node]
        return None if all(isinstance(other, p.Const) for other in others) else False
    if name in ("int", "round", "ceil", "floor", "range", "bool", "isnan", "isfinite", "isinf", "any", "all"):
        return False
    return real and not steers(call.function)


def _held_by(
    stands: Sequence[Stand], level: int, way: tuple[object, ...], target: p.Expression, real: bool, depth: int, seen: frozenset[str]
) -> bool:
    if isinstance(target, p.Collection):
        return all(_held_by(stands, level, way, item, real, depth, seen) for item in target.items)
    if isinstance(target, p.Index):
        return True
    if isinstance(target, p.Attr):
        return real and not steers(target)
    if not isinstance(target, p.Name):
        return False
    if target.id in seen:
        return True
    loops = [node for node in way if isinstance(node, p.Loop)]
    ways = [other for other in mentions(stands[level].body, target.id) if _follows(other, target) or any(loop in other for loop in loops)]
    return all(_later(stands, level, other, real, depth - 1, seen | {target.id}) for other in ways)


def _follows(way: tuple[object, ...], target: p.Name) -> bool:
    """Whether a name is read behind the place where it is given a value."""
    return isinstance(way[-1], p.Name) and way[-1].at[:2] > target.at[:2]


def _only_limits(stand: Stand) -> bool:
    """``if x.item() > 1: x = one``: ``clamp`` needs no test; ``a / n.item() if n.item() > 0 else 0`` neither."""
    for index in range(len(stand.way) - 1):
        node, below = stand.way[index], stand.way[index + 1]
        if isinstance(node, p.If | p.Conditional) and below is node.test:
            test, holds = unnegated(node.test)
            if not isinstance(test, p.Compare) or not isinstance(test.right, p.Const):
                return False
            arm, other = (node.then, node.otherwise) if holds else (node.otherwise, node.then)
            if divides(stand, arm if isinstance(arm, list) else [arm], test.left):
                return True
            operand = _operand(test.left)
            asked = lvalue(operand) if operand is not None else None
            return asked is not None and isinstance(node, p.If) and not other and _only_sets(arm, asked)
    return False


def _only_sets(arm: object, asked: str) -> bool:
    """Whether all that an arm does is to give a tensor a value, and to say so."""
    statements = list(arm) if isinstance(arm, list) else []
    sets = [s for s in statements if isinstance(s, p.Assign) and all(lvalue(target) == asked for target in s.targets)]
    says = [s for s in statements if isinstance(s, p.ExprStatement) and isinstance(s.value, p.Call) and _says(s.value)]
    return bool(sets) and len(sets) + len(says) == len(statements)


def _says(call: p.Call) -> bool:
    return called_name(call.function) in ("print", "warn", "warning", "info", "debug", "error")


# --- one of each row -----------------------------------------------------------------------------------------------------------------


def _one_of_each(stand: Stand, operand: p.Expression) -> bool:
    """Whether each pass of a loop in the forward fetches a number that no pass before it makes: one list would do for all."""
    loops = [node for node, below in zip(stand.way, stand.way[1:], strict=False) if isinstance(node, p.Loop) and below in node.body]
    loop = loops[-1] if loops else None
    if loop is None or loop.kind != "for" or loop.target is None:
        return False
    targets = frozenset(node.id for node in p.walk(loop.target) if isinstance(node, p.Name))
    given = frozenset(places_assigned(loop.body))
    inside = Stand(stand.file, stand.function, stand.owner, tuple(loop.body), loop, stand.way)
    return _rests_on(inside, operand, targets) and _is_independent(inside, operand, targets, given, _DEEPEST)


def _rests_on(stand: Stand, node: p.Expression, targets: frozenset[str], depth: int = 4) -> bool:
    """Whether an expression differs from pass to pass."""
    names = {part.id for part in p.walk(node) if isinstance(part, p.Name)}
    if names & targets:
        return True
    values = [value for name in names if (value := only_value(stand, name)) is not None]
    return depth > 0 and any(_rests_on(stand, value, targets, depth - 1) for value in values)


def _is_independent(stand: Stand, node: object, targets: frozenset[str], given: frozenset[str], depth: int) -> bool:
    """Whether an expression is made of what the loop goes through and of what it leaves alone, by functions and methods of tensors."""
    if depth <= 0:
        return False
    if isinstance(node, p.Name) and node.id in given and node.id not in targets:
        value = only_value(stand, node.id)
        return value is not None and _is_independent(stand, value, targets, given, depth - 1)
    if isinstance(node, p.Attr) and (lvalue(node) or "") in given:
        return False
    if isinstance(node, p.Call):
        place = lvalue(node.function) or ""
        if place.startswith("self.") or (isinstance(node.function, p.Name) and node.function.id in given | targets):
            return False
    return all(_is_independent(stand, part, targets, given, depth) for part in p.children(node))
