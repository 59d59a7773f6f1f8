"""Which loops are hot: their bodies, through calls in view, reach a backward pass or step an optimizer in each round.

A static question on the program: no path needs to get there. The innermost such loop is hot, and one around it that steps the
optimizer itself (accumulation); the loop over epochs around them is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint import program as p
from streamlint.interpreter.at_hand import body_of, class_at_hand, enclosing
from streamlint.interpreter.guards import called_name, is_search, lvalue
from streamlint.interpreter.index import File, dotted_name, walk_module
from streamlint.interpreter.notes import remembered

# PyTorch, and Lightning's, where a step is not automatic.
BACKWARD = frozenset({"backward", "manual_backward"})
_DEEPEST = 4


def is_hot(node: p.Loop, file: File) -> bool:
    """Whether each round of a loop trains: its own body, or one that it calls outside of inner loops, does."""
    return not has_few_rounds(node, file) and file.names_torch and _is_hot(node, file)


def has_few_rounds(node: p.Loop, file: File) -> bool:
    """Whether a loop comes round so few times that it is no loop of steps, whatever its rounds do."""
    return is_over_cases(node) or is_one_round(node, file) or is_search(node)


def is_over_cases(node: p.Loop) -> bool:
    """Whether a loop goes over the few cases that stand in the source: each is looked at once."""
    return isinstance(node.iterable, p.Collection)


@remembered(4096)
def is_one_round(node: p.Loop, file: File) -> bool:
    """``for _ in range(pieces)`` where that is a parameter, and 1 unless somebody out of view says otherwise: the round is around it."""
    call = node.iterable
    if not isinstance(call, p.Call) or not isinstance(call.function, p.Name) or call.function.id != "range" or len(call.args) != 1:
        return False
    holder, owner = enclosing(file, node)
    name = call.args[0].value
    if holder is None or not isinstance(name, p.Name):
        return False
    params = holder.params[1:] if owner is not None else holder.params
    found = next((index for index, param in enumerate(params) if param.name == name.id), None)
    if found is None:
        return False
    if params[found].default is not None:
        return _is_one(params[found].default)
    calls = [c for c in walk_module(file.module) if isinstance(c, p.Call) and called_name(c.function) == holder.name]
    return bool(calls) and all(_is_one(_handed_on(p.argument(c, found, name.id), c, file)) for c in calls)


def _handed_on(value: p.Expression | None, call: p.Call, file: File) -> p.Expression | None:
    """The default of the parameter that is handed on."""
    holder, _ = enclosing(file, call)
    if not isinstance(value, p.Name) or holder is None:
        return value
    return next((param.default for param in holder.params if param.name == value.id), None)


def _is_one(value: p.Expression | None) -> bool:
    return isinstance(value, p.Const) and value.value == 1 and value.value is not True


@remembered(1024)
def is_trial(holder: p.Function | p.Loop, file: File) -> bool:
    """Whether a body makes the leaves whose gradients it reads, of no data, and steps nothing: it tries a function out."""
    if "requires_grad" not in file.module.text:
        return False
    made: set[str] = set()
    read: set[str] = set()
    for node in (inner for part in holder.body for inner in p.walk(part)):
        if isinstance(node, p.Assign) and _makes_leaf(node.value, file):
            made.update(target.id for target in node.targets if isinstance(target, p.Name))
        elif isinstance(node, p.Attr) and node.name == "grad" and isinstance(node.value, p.Name):
            read.add(node.value.id)
        elif isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name in ("step", "zero_grad"):
            return False
    return bool(made & read)


_FACTORIES = frozenset({"torch.rand", "torch.randn", "torch.zeros", "torch.ones", "torch.empty", "torch.full", "torch.randint"})


def _makes_leaf(node: p.Expression | None, file: File) -> bool:
    """``torch.randn(n, requires_grad=True)``, ``torch.randn(n).requires_grad_()``, ``made_here(n).requires_grad_()``."""
    if not isinstance(node, p.Call):
        return False
    if isinstance(node.function, p.Attr) and node.function.name == "requires_grad_":
        inner = node.function.value
        return isinstance(inner, p.Call) and (_is_factory(inner, file) or isinstance(inner.function, p.Name))
    asked = (arg.value for arg in node.args if arg.keyword == "requires_grad")
    return _is_factory(node, file) and any(isinstance(value, p.Const) and value.value is True for value in asked)


def _is_factory(call: p.Call, file: File) -> bool:
    return dotted_name(file, call.function) in _FACTORIES


@remembered(4096)
def _is_hot(node: p.Loop, file: File) -> bool:
    holder, owner = enclosing(file, node)
    if (trains(node.body, file, owner) and not is_trial(node, file)) or _accumulates(node, file) or _goes_both_ways(node, file, owner):
        return True
    return holder is not None and _steps_parameters(node, holder, owner, file)


def _accumulates(node: p.Loop, file: File) -> bool:
    """A loop over slices whose inner loop cuts each slice into pieces, which it accumulates: one step of the optimizer for a slice."""
    stride = _range_argument(node, 2)
    for inner in node.body:
        if stride is not None and isinstance(inner, p.Loop) and is_hot(inner, file):
            extent = lvalue(_range_argument(inner, 1))
            scopes = (part for statement in inner.body for part in p.walk(statement) if isinstance(part, p.Call))
            if extent is not None and extent == lvalue(stride):
                return any(isinstance(call.function, p.Attr) and call.function.name == "accumulate" for call in scopes)
    return False


def _goes_both_ways(node: p.Loop, file: File, owner: p.Class | None) -> bool:
    """A loop whose rounds take gradients for one model and, in a loop of their own, train another: natural gradients beside a critic."""
    two = any(isinstance(inner, p.Loop) and is_hot(inner, file) for inner in node.body)
    return two and any(_takes_gradients(call, file, owner, frozenset()) for call in own_calls(node.body, file))


def _takes_gradients(call: p.Call, file: File, owner: p.Class | None, seen: frozenset[int]) -> bool:
    """Whether a call reaches ``torch.autograd.grad`` without going through a loop."""
    if dotted_name(file, call.function) == "torch.autograd.grad":
        return True
    found = body_of(call, file, owner)
    if found is None or id(found[0]) in seen or len(seen) >= _DEEPEST:
        return False
    function, home, cls = found
    return any(_takes_gradients(inner, home, cls, seen | {id(function)}) for inner in own_calls(function.body, home))


def _range_argument(node: p.Loop, position: int) -> p.Expression | None:
    """An argument of ``for i in range(start, stop, step)``."""
    call = node.iterable
    if not isinstance(call, p.Call) or not isinstance(call.function, p.Name) or call.function.id != "range" or len(call.args) != 3:
        return None
    return call.args[position].value


def trains(body: Iterable[object], file: File, owner: p.Class | None, seen: frozenset[int] = frozenset()) -> bool:
    """Whether statements reach a backward pass or a step of an optimizer without going through a loop of their own."""
    return any(_trains(call, file, owner, seen) for call in own_calls(body, file))


def own_calls(body: Iterable[object], file: File | None = None) -> Iterator[p.Call]:
    """The calls of statements, but not those in inner loops; a loop over optimizers, one that tries again, or one of one round is none."""
    stack = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, p.ClassDef):
            continue
        if isinstance(node, p.Loop) and not (_steps_each(node) or _tries_again(node) or (file is not None and is_one_round(node, file))):
            stack.extend([node.iterable] if node.iterable is not None else [])  # it is asked for once
            continue
        if isinstance(node, p.Call):
            yield node
        stack.extend(p.children(node))


def _steps_each(node: p.Loop) -> bool:
    """``for optimizer in self.optimizers: optimizer.step()``."""
    if node.kind != "for" or not isinstance(node.target, p.Name):
        return False
    stack: list[object] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, p.Loop):
            return False
        if isinstance(inner, p.Call) and isinstance(inner.function, p.Attr) and inner.function.name == "step":
            places = (inner.function.value, *(arg.value for arg in inner.args))
            if any(isinstance(place, p.Name) and place.id == node.target.id for place in places):
                return True
        stack.extend(p.children(inner))
    return False


def _tries_again(node: p.Loop) -> bool:
    """``while True:`` around a ``try`` whose success leaves: one round, unless something went wrong."""
    if node.kind != "while" or not (isinstance(node.test, p.Const) and node.test.value) or not node.body:
        return False
    if not any(isinstance(statement, p.Try) and statement.handlers for statement in node.body):
        return False
    tried = [inner for part in node.body if isinstance(part, p.Try) for inner in (part.otherwise or part.body)]
    return any(isinstance(part, p.Break | p.Return) for part in (*node.body, *tried))


def _trains(call: p.Call, file: File, owner: p.Class | None, seen: frozenset[int]) -> bool:
    found = body_of(call, file, owner)
    if found is not None:
        function, home, cls = found
        if id(function) in seen or len(seen) >= _DEEPEST or is_trial(function, home):
            return False
        return trains(function.body, home, cls, seen | {id(function)})
    if isinstance(call.function, p.Attr) and call.function.name in BACKWARD:
        return True
    return dotted_name(file, call.function) == "torch.autograd.backward" or steps_optimizer(call, file)


def steps_optimizer(call: p.Call, file: File) -> bool:
    """``optimizer.step()``, ``scaler.step(optimizer)``: of something whose gradients are zeroed in view, or that PyTorch made."""
    if not isinstance(call.function, p.Attr) or call.function.name != "step":
        return False
    known = _optimizers(file)
    given = [lvalue(call.function.value), *(lvalue(arg.value) for arg in call.args)]
    return any(place in known for place in given if place)


@remembered(512)
def _optimizers(file: File) -> frozenset[str]:
    """The places whose ``zero_grad`` is called and whose ``step`` too, and those that an optimizer of PyTorch's is assigned to."""
    zeroed: set[str] = set()
    made: set[str] = set()
    if "zero_grad" not in file.module.text and "optim" not in file.module.text:
        return frozenset()
    for node in walk_module(file.module):
        if isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name == "zero_grad":
            zeroed.add(lvalue(node.function.value) or "")
        elif isinstance(node, p.Assign) and isinstance(node.value, p.Call):
            dotted = dotted_name(file, node.value.function)
            if dotted.startswith("torch.optim.") and ".lr_scheduler" not in dotted:
                made.update(place for target in node.targets if (place := lvalue(target)))
    return frozenset((zeroed | made) - {""})


def is_step(function: p.Function, owner: p.Class | None, file: File) -> bool:
    """Whether a method is the step of an optimizer's class: it runs once in each round of whatever loop trains."""
    return function.name == "step" and owner is not None and is_optimizer(owner, file)


def _steps_parameters(node: p.Loop, holder: p.Function, owner: p.Class | None, file: File) -> bool:
    """A loop over parameters in the methods of an optimizer's class: the innermost one that looks at gradients."""
    if owner is None or holder.name in ("__init__", "add_param_group", "state_dict", "load_state_dict") or not is_optimizer(owner, file):
        return False
    stack: list[object] = list(node.body)
    while stack:
        inner = stack.pop()
        if isinstance(inner, p.Loop):
            continue
        if isinstance(inner, p.Attr) and inner.name == "grad":
            return True
        stack.extend(p.children(inner))
    return False


def is_optimizer(owner: p.Class, file: File, depth: int = 3) -> bool:
    """Whether a class derives from ``torch.optim.Optimizer``, in view or by what its step goes through."""
    if _steps_its_groups(owner, file):
        return True
    for base in owner.bases:
        dotted = dotted_name(file, base)
        if dotted.startswith("torch.optim") and "scheduler" not in dotted:
            return True
        held = class_at_hand(base, file)
        if depth and held is not None and held[0] is not owner and is_optimizer(held[0], held[1], depth - 1):
            return True
    return False


def _steps_its_groups(owner: p.Class, file: File) -> bool:
    """``step`` goes through ``self.param_groups``, which a base that is out of view has made: an optimizer's contract."""
    if all(class_at_hand(base, file) is not None or dotted_name(file, base).startswith("torch.") for base in owner.bases):
        return False
    return any(
        isinstance(part, p.Attr) and lvalue(part) == "self.param_groups"
        for step in owner.methods.get("step", ())
        for node in p.walk(step)
        if isinstance(node, p.Loop) and node.iterable is not None
        for part in p.walk(node.iterable)
    )
