"""What the number that the host fetched is used for: logs, sums, text and containers could do with it later, decisions could not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from streamlint import program as p
from streamlint.interpreter.guards import called_name, lvalue
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.spelling import ends_in, says
from streamlint.interpreter.standing import Stand, changing, divides, only_value, unnegated, values_given

# Names may silence a finding, never cause one: what a value that is fed back is called.
_STEERS = frozenset(
    "sched schedule scheduler schedulers scheduled stop stopper stopping stopped adapt adapter adaptive adapted adaptation control "
    "controls controller ctl lr lrs rate rates coef coefs coeff coeffs coefficient coefficients beta betas scale scales scaler scaling "
    "temperature temp temper thresh threshold thresholds weight weights weighting patience plateau best alpha alphas prior priors "
    "priority priorities".split()
)
_STEPS = frozenset({("step",)})
# Such a value is shown as well as fed back: these take back what the words above would silence.
_SHOWS = frozenset(
    "loss losses norm norms gradnorm metric metrics log logs logger logging hist history histogram stat stats statistic statistics "
    "acc accs accuracy accumulator accumulated sum sums summary summaries total totals count counts counter mean means".split()
)
_OF_GROUPS = frozenset({"lr", "momentum", "weight_decay", "eps", "betas", "initial_lr", "max_lr"})  # of an optimizer's param_groups
_WRAPPERS = frozenset({"float", "int", "round", "str", "abs", "repr", "sum", "dict", "list", "tuple", "format"})
_DECIDES = frozenset({"isnan", "isfinite", "isinf", "range", "bool", "max", "min", "any", "all", "enumerate", "zip"})
_KEEPS = frozenset({"append", "extend", "add", "appendleft", "setdefault", "insert", "push_back", "emplace_back"})
_FACTORIES = frozenset({"full", "tensor", "as_tensor", "new_full", "new_tensor"})
# What changes a tensor's shape or place, and computes nothing.
_SHAPES = frozenset("expand view reshape flatten squeeze unsqueeze repeat detach cpu to long int float item clone".split())
_DEEPEST = 6


@remembered(4096)
def is_avoidable(stands: tuple[Stand, ...], trains: bool = True, or_stops: bool = False) -> bool:
    """Whether nothing in the round needs the value that the last of ``stands`` fetches. The first of them holds the loop.

    A round that does not train may read what is known before its loop. ``or_stops`` takes a test as well: one that ends the loop could
    be made less often.
    """
    way = stands[-1].way
    if _has_device_form(stands[-1]) or (not trains and len(stands) == 1 and is_known_before(stands[0])):
        return True
    if or_stops and any(isinstance(node, p.If) and below is node.test for node, below in itertools.pairwise(way)):
        return True
    return _later(stands, len(stands) - 1, stands[-1].way, _DEEPEST, frozenset())


def _has_device_form(stand: Stand) -> bool:
    """A test that only guards a division (``clamp(min=1)`` does), or that only limits the tensor that it asks (``clamp_``)."""
    for node, below in itertools.pairwise(stand.way):
        if not isinstance(node, p.If | p.Conditional) or below is not node.test:
            continue
        test, holds = unnegated(node.test)
        if not isinstance(test, p.Compare):
            continue
        arm, other = (node.then, node.otherwise) if holds else (node.otherwise, node.then)
        statements = arm if isinstance(arm, list) else [arm]
        if isinstance(test.right, p.Const) and divides(stand, statements, test.left):
            return True
        asked = _asked(test.left)
        return bool(asked) and isinstance(node, p.If) and _only_limits(statements, asked) and not _only_limits(other, asked)
    return False


def _only_limits(arm: Sequence[object] | p.Expression, asked: str) -> bool:
    """Whether an arm gives the tensor a value, and neither leaves nor calls anything else."""
    statements = list(arm) if isinstance(arm, list) else []
    rest = [s for s in statements if not (isinstance(s, p.Statement) and _gives(s, asked))]
    plain = all(isinstance(s, p.Assign) and not any(isinstance(n, p.Call) for n in p.walk(s)) for s in rest)
    return len(rest) < len(statements) and plain


def _asked(node: p.Expression) -> str:
    """The tensor whose number is compared: ``x`` of ``x.item()``, ``float(x)``."""
    if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name == "item":
        return lvalue(node.function.value) or ""
    if isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id == "float" and node.args:
        return lvalue(node.args[0].value) or ""
    return ""


def _gives(statement: p.Statement, asked: str) -> bool:
    """Whether a statement does nothing but give a tensor a value."""
    if isinstance(statement, p.Assign):
        return all((lvalue(target) or "") in (asked, f"{asked}.data") for target in statement.targets)
    if isinstance(statement, p.ExprStatement) and isinstance(statement.value, p.Call) and isinstance(statement.value.function, p.Attr):
        return statement.value.function.name.endswith("_") and (lvalue(statement.value.function.value) or "").removesuffix(".data") == asked
    return False


def is_known_before(stand: Stand) -> bool:
    """Whether the number that is fetched comes from what the loop goes through, and from nothing that it computes."""
    node, loop = stand.node, stand.loop
    if loop is None or loop.kind != "for" or loop.iterable is None or not isinstance(node, p.Call):
        return False
    given = changing(stand)
    if any(isinstance(part, p.Name) and part.id in given for part in p.walk(loop.iterable)):
        return False
    operand = node.function.value if isinstance(node.function, p.Attr) else node.args[0].value if node.args else node
    targets = {part.id for part in p.walk(loop.target) if isinstance(part, p.Name)} if loop.target is not None else set()
    return _comes_from(stand, operand, targets, given, _DEEPEST)


def _comes_from(stand: Stand, node: p.Expression, targets: set[str], given: frozenset[str], depth: int) -> bool:
    left = [(node, targets, depth)]  # all of them must; a loop, for chains are longer than calls may nest
    while left:
        node, targets, depth = left.pop()
        if depth <= 0:
            return False
        if isinstance(node, p.Name):
            if node.id in targets or node.id not in given:
                continue
            value = only_value(stand, node.id)
            values = values_given(stand, node.id) if value is None else [value]
            if not values:
                return False
            for each in values:
                if each is None:
                    return False
                left.append((each, targets | {node.id}, depth - 1))
        elif isinstance(node, p.Attr):
            if node.name in ("shape", "device", "dtype"):
                continue
            if lvalue(node) in given:
                return False
            left.append((node.value, targets, depth))
        elif isinstance(node, p.Call):
            if not isinstance(node.function, p.Attr) or node.function.name not in _SHAPES:
                return False
            left += [(part, targets, depth) for part in (node.function.value, *(arg.value for arg in node.args))]
        elif isinstance(node, p.Slice | p.Lambda | p.Comprehension | p.Conditional):
            return False
        else:
            left += [(part, targets, depth) for part in p.children(node) if isinstance(part, p.Expression)]
    return True


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
    if isinstance(parent, p.Return | p.Function | p.Lambda) and _is_mapped(way[:index]):
        return None
    if isinstance(node, p.Statement):
        return False
    if isinstance(parent, p.Declare):
        return not parent.names and _held_by(stands, level, p.Name(parent.name), None, depth, seen)
    if isinstance(parent, p.Format | p.ExprStatement):
        return True
    if isinstance(parent, p.Loop | p.Clause) and node is parent.iterable and parent.target is not None:
        return _held_by(stands, level, parent.target, None, depth, seen)
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
        running = _running(way, index)
        return _given(node, parent) if running is None else _held_by(stands, level, running, None, depth, seen)
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


def _is_mapped(way: tuple[object, ...]) -> bool:
    """Whether a way ends in ``map(lambda x: x / count, parts)``: the function runs here, on each part."""
    at = next((i for i in range(len(way) - 1, max(len(way) - 4, 1), -1) if isinstance(way[i], p.Lambda)), 0)
    call = way[at - 2] if at > 1 else None
    named = isinstance(call, p.Call) and isinstance(call.function, p.Name) and call.function.id == "map"
    return named and isinstance(call, p.Call) and bool(call.args) and call.args[0] is way[at - 1]


def _running(way: tuple[object, ...], index: int) -> p.Name | None:
    """``worst = max(worst, x)``: the name that keeps the largest so far, as a sum is kept."""
    call, holder = way[index - 1], way[index - 2] if index > 1 else None
    if not isinstance(call, p.Call) or called_name(call.function) not in ("max", "min") or not isinstance(call.function, p.Name):
        return None
    if not isinstance(holder, p.Assign) or holder.value is not call or len(holder.targets) != 1:
        return None
    target = holder.targets[0]
    named = isinstance(target, p.Name) and any(isinstance(a.value, p.Name) and a.value.id == target.id for a in call.args)
    return target if named and isinstance(target, p.Name) and not steers(target) else None


def steers(node: p.Expression) -> bool:
    """Whether what is given a number is named like what decides by it."""
    spelled = _spelled(node)
    return _says_steering(spelled) and not says(spelled, _SHOWS)


def _says_steering(spelled: str) -> bool:
    return says(spelled, _STEERS) or ends_in(spelled, _STEPS)


def _given(node: object, call: p.Call) -> bool | None:
    """The value is an argument of a call, or the call is a method of it."""
    if node is call.function:
        return None
    name = called_name(call.function).rpartition("::")[2]
    if name in _FACTORIES and isinstance(node, p.Arg) and (name.startswith("new_") or any(arg.keyword == "device" for arg in call.args)):
        return True  # it goes straight back to the device
    if name in _DECIDES:
        return False
    if name in _WRAPPERS:
        return None
    if name in _KEEPS:
        return True
    if isinstance(call.function, p.Attr) and name.endswith("_") and not name.endswith("__"):
        return None  # `weight.add_(change, alpha=x)`: work on a tensor, which takes a tensor as well
    if _says_steering(_full(call)):
        return False
    return None


def _full(call: p.Call) -> str:
    return _spelled(call.function)


def _spelled(node: object) -> str:
    ends: list[str] = []
    while isinstance(node, p.Attr | p.Index):
        ends.append(f".{node.name}" if isinstance(node, p.Attr) else f"[{' '.join(map(_spelled, node.indices))}]")
        node = node.value
    head = node.id if isinstance(node, p.Name) else str(node.value) if isinstance(node, p.Const) else ""
    return "".join((head, *reversed(ends)))


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
        return says(target.name, _SHOWS) or not _says_steering(target.name)
    if not isinstance(target, p.Name):
        return False
    if target.id in seen:
        return True
    stand = stands[level]
    region = stand.loop.body if stand.loop is not None else stand.body
    older = _older(region, target)
    ways = (way for way in mentions(region, target.id) if not older(way[-1]))
    return all(_later(stands, level, way, depth - 1, seen | {target.id}) for way in ways)


def _older(region: Sequence[object], target: p.Name) -> Callable[[object], bool]:
    """Tells where a name is read before it is given the value of ``target``, and behind another one that each round gives it first."""
    block, given, holder = region, None, None
    while (position := next((i for i, s in enumerate(block) if _contains(s, target)), None)) is not None:
        holder = block[position]
        for statement in block[:position]:
            if isinstance(statement, p.Assign) and statement.op is None and _names(statement, target.id):
                given = statement
        if isinstance(holder, p.Loop):
            given = None
        lists = (getattr(holder, name, None) for name in ("body", "then", "otherwise"))
        block = next((one for one in lists if isinstance(one, list) and any(_contains(s, target) for s in one)), [])
    if given is None or not isinstance(holder, p.Statement):
        return lambda _: False
    begin, end = given.at[2:], holder.at[2:]
    return lambda node: isinstance(node, p.Node) and begin <= node.at[:2] < end


def _contains(node: object, part: p.Node) -> bool:
    return any(one is part for one in p.walk(node))


def _names(statement: p.Assign, name: str) -> bool:
    return any(isinstance(target, p.Name) and target.id == name for target in statement.targets)


def mentions(body: Sequence[object], name: str) -> list[tuple[object, ...]]:
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
    """Whether an expression is made of literals alone, or of places that the loop gives no value."""
    given = changing(stand)
    places = [lvalue(n) for n in p.walk(node) if isinstance(n, p.Name | p.Attr)]
    return not any(isinstance(n, p.Call) for n in p.walk(node)) and not any(place in given for place in places)


def is_size(node: p.Expression) -> bool:
    """Whether an expression is a number that a tensor's shape or a container's length gives."""
    if isinstance(node, p.Call):
        if isinstance(node.function, p.Attr):
            return node.function.name in ("numel", "nelement", "dim") or (node.function.name == "size" and bool(node.args))
        return isinstance(node.function, p.Name) and node.function.id == "len"
    return isinstance(node, p.Index) and isinstance(node.value, p.Attr) and node.value.name == "shape"


# Makes a tensor of nothing but sizes and numbers, and takes a device to make it on.
_MAKERS = frozenset(f"torch.{name}" for name in "rand randn randint randperm zeros ones full eye arange linspace empty normal".split())
_OF_SIZES = frozenset(f"torch.{name}" for name in "Tensor FloatTensor DoubleTensor HalfTensor LongTensor IntTensor".split())
_FILLS = frozenset("uniform_ normal_ fill_ zero_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_".split())
_ELSEWHERE = frozenset({"device", "generator", "pin_memory", "out"})


def is_made_on_host(node: p.Expression, file: File) -> bool:
    """``torch.randn(n, m)``, ``torch.FloatTensor(n).uniform_() * 2``: drawn or filled on the host, of nothing that is there already."""
    if isinstance(node, p.Binary):
        return any(
            is_made_on_host(side, file) and isinstance(other, p.Const) for side, other in ((node.left, node.right), (node.right, node.left))
        )
    if not isinstance(node, p.Call) or not isinstance(node.function, p.Attr):
        return False
    made = dotted_name(file, node.function)
    if made in _MAKERS or made in _OF_SIZES:
        open_or_elsewhere = any(arg.stars == 2 or arg.keyword in _ELSEWHERE for arg in node.args)
        return not open_or_elsewhere and (made in _MAKERS or len(node.args) > 1)
    name, inner = node.function.name, node.function.value
    if name in _FILLS and isinstance(inner, p.Call) and dotted_name(file, inner.function) in _OF_SIZES:
        return not any(arg.keyword == "generator" for arg in node.args)
    return (name in _FILLS or name in _SHAPES) and not any(arg.keyword == "generator" for arg in node.args) and is_made_on_host(inner, file)
