"""What kind of branch and what kind of loop an operation stands in, judged from structure, never from names of the user's."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.unknowns import truth
from streamlint.operations import Guard

# Library names that count or select devices, and that measure time.
_DEVICE_CALLS = frozenset(
    {
        "device_count",
        "cudaGetDeviceCount",
        "cudaSetDevice",
        "set_device",
        "cuDeviceGetCount",
        "getDeviceCount",
        "cuCtxSetCurrent",
        "cuDeviceGet",
    }
)
_TIME_CALLS = frozenset(
    {
        "perf_counter",
        "monotonic",
        "perf_counter_ns",
        "elapsed_time",
        "cudaEventElapsedTime",
        "get_elapsed_time",
        "high_resolution_clock::now",
        "steady_clock::now",
    }
)


def called_name(function: p.Expression) -> str:
    """The last name of what is called, as it is spelled: ``f`` of ``f(x)`` and of ``a.b.f(x)``; empty where it has none."""
    if isinstance(function, p.Attr):
        return function.name
    return function.id if isinstance(function, p.Name) else ""


def lvalue(node: object) -> str | None:
    """The text of a name or a chain of attributes, which is how places are compared."""
    names: list[str] = []
    while isinstance(node, p.Attr | p.Index | p.Deref):
        names += [node.name] if isinstance(node, p.Attr) else []
        node = node.value
    if not isinstance(node, p.Name):
        return None
    names += [] if node.id == "this" and names else [node.id]
    return ".".join(reversed(names))


def places_in(node: object) -> set[str]:
    """Every place that an expression mentions; of ``a.b.c`` also ``a.b``, but not the method of a call."""
    found: set[str] = set()
    for item in p.walk(node):
        if isinstance(item, p.Call) and isinstance(item.function, p.Attr):
            inner = lvalue(item.function.value)
            if inner:
                found.add(inner)
        text = lvalue(item)
        if text:
            found.add(text)
    return found


def places_assigned(body: Iterable[object]) -> set[str]:
    """Every place that statements give a value, through out-parameters too."""
    found: set[str] = set()
    for statement in body:
        for node in p.walk(statement):
            for target in _targets(node):
                text = lvalue(target)
                if text:
                    found.add(text)
    return found


def _targets(node: object) -> Iterator[object]:
    if isinstance(node, p.AssignExpr) and isinstance(node.target, p.Call) and isinstance(node.target.function, p.Attr):
        yield node.target.function.value  # C++: ``sizes.at(i) = n``
    elif isinstance(node, p.Assign):
        for target in node.targets:
            yield from target.items if isinstance(target, p.Collection) else (target,)
    elif isinstance(node, p.AssignExpr):
        yield node.target
    elif isinstance(node, p.AddressOf):
        yield node.value
    elif isinstance(node, p.Call) and isinstance(node.function, p.Attr) and node.function.name in _GROWS:
        yield node.function.value


# Methods that change what they are called on: containers that grow.
_GROWS = frozenset({"append", "emplace", "emplace_back", "insert", "push_back", "resize", "reset", "setdefault", "add", "update"})
_NEUTRAL = frozenset({"self", "this", "torch", "cuda", "np", "cp", "cupy", "std"})


_OTHERS = frozenset({"xpu", "npu", "mps", "hpu", "xla", "mlu", "musa", "tpu", "ipu"})


def asks_for_another(test: p.Expression) -> bool:
    """Whether a condition asks for an accelerator that is not CUDA's (``is_torch_xpu_available()``, ``XLA_AVAILABLE``): likely not."""
    called = test.function if isinstance(test, p.Call) else test
    name = called.name if isinstance(called, p.Attr) else called.id if isinstance(called, p.Name) else ""
    return not _OTHERS.isdisjoint(name.lower().split("_"))


def guard_of(run: Run, node: p.If, holds: bool) -> Guard | None:
    """The guard that the taken arm of an ``if`` stands under."""
    kind = _arm_kind(node, holds)
    if kind in ("growth", "first") and are_new(run, _asked_and_given(node, holds)):
        return None
    return Guard("switch" if kind == "plain" and _is_switch(run, node.test, holds) else kind, run.node_span(node))


def are_new(run: Run, places: Iterable[str]) -> bool:
    """C++: whether these are members of an object whose constructor is still running: nothing was kept in them before."""
    made = run.frame.this
    if made is None or made.foreign:
        return False
    constructors = made.definition.methods.get("__init__", ())
    if not any(frame.this is made and any(frame.function is each for each in constructors) for frame in run.frames):
        return False
    members = {declared.name for declared in made.definition.fields}
    return all(place.partition(".")[0] in members for place in places)


@functools.lru_cache(maxsize=8192)
def _asked_and_given(node: p.If, holds: bool) -> frozenset[str]:
    return frozenset((places_in(node.test) - _NEUTRAL) & places_assigned(node.then if holds else node.otherwise))


def _is_switch(run: Run, test: p.Expression, holds: bool) -> bool:
    """Whether the caller decides: a parameter, whose value is not known, is asked for its truth."""
    if isinstance(test, p.Unary) and test.op == "not":
        return _is_switch(run, test.operand, not holds)
    if isinstance(test, p.Bool) and (test.op == "and") == holds:
        return any(_is_switch(run, value, holds) for value in test.values)
    function = run.frames[-1].function
    if not isinstance(test, p.Name) or function is None or all(param.name != test.id for param in function.params):
        return False
    return truth(run.evaluate(test)) is None


@functools.lru_cache(maxsize=8192)
def _arm_kind(node: p.If, holds: bool) -> str:
    return classify(node.test, node.then if holds else node.otherwise, holds)


def classify(test: p.Expression, arm: Iterable[object], holds: bool = True) -> str:
    """What kind of condition guards statements: growth, first, rare, device, error, plain."""
    tested = places_in(test) - _NEUTRAL
    assigned = places_assigned(arm)
    if tested & assigned and not _asks_for_place(test):
        if not tested & assigned - _found_large(test, holds):
            return "rare"  # what has become large is emptied
        return "growth" if compares_size(test) else "first"
    if _is_interval(test):
        return "rare"
    if _counts(test, holds):
        return "first"
    if _names_called(test) & _DEVICE_CALLS:
        return "device"
    return "error" if _ends_by_leaving(arm) else "plain"


def _asks_for_place(test: p.Expression) -> bool:
    """Whether it is asked where memory is: what is then moved is another block in each call."""
    return any(isinstance(node, p.Attr) and node.name in _PLACES for node in p.walk(test))


_PLACES = frozenset({"is_cuda", "is_cpu", "device", "is_pinned"})


def compares_size(test: p.Expression) -> bool:
    """Whether a condition asks for more or less."""
    return any(isinstance(node, p.Compare) and node.op in ("<", "<=", ">", ">=") for node in p.walk(test))


def _found_large(test: p.Expression, holds: bool) -> set[str]:
    """The places of which a condition says, where it holds (or does not), that they are the larger ones, and of nothing else."""
    if isinstance(test, p.Unary) and test.op == "not":
        return _found_large(test.operand, not holds)
    if isinstance(test, p.Bool):
        large = [_found_large(value, holds) for value in test.values]
        others = [places_in(value) - one for value, one in zip(test.values, large, strict=True)]
        return set().union(*large) - set().union(*others)
    if not isinstance(test, p.Compare) or test.op not in ("<", "<=", ">", ">="):
        return set()
    sides = (test.left, test.right) if (test.op in ("<", "<=")) == holds else (test.right, test.left)
    return places_in(sides[1]) - places_in(sides[0])


def _is_interval(test: p.Expression) -> bool:
    return any(isinstance(node, p.Binary) and node.op == "%" for node in p.walk(test))


def _counts(test: p.Expression, holds: bool) -> bool:
    """One round among many: what is asked anew each time (``steps() == 0``) is a given number."""
    if isinstance(test, p.Unary) and test.op == "not":
        return _counts(test.operand, not holds)
    if isinstance(test, p.Bool) and (test.op == "and") == holds:
        return any(_counts(value, holds) for value in test.values)
    if not isinstance(test, p.Compare) or test.op != ("==" if holds else "!=") or not isinstance(test.left, p.Call):
        return False
    return isinstance(test.right, p.Const) and isinstance(test.right.value, int) and not isinstance(test.right.value, bool)


def _ends_by_leaving(arm: Iterable[object]) -> bool:
    statements = list(arm)
    return bool(statements) and isinstance(statements[-1], p.Raise | p.Return)


def _names_called(node: object) -> set[str]:
    found = set()
    for item in p.walk(node):
        if isinstance(item, p.Call):
            if isinstance(item.function, p.Attr):
                found.add(item.function.name)
            elif isinstance(item.function, p.Name):
                found.add(item.function.id.rpartition("::")[2])
                found.add(item.function.id)
    return found


_LAYER_CALLS = frozenset({"modules", "named_modules", "children", "named_children"})
"""Walks over the layers of a model: set-up work, done once a layer (torch.nn.Module)."""


@functools.lru_cache(maxsize=8192)
def loop_kind(node: p.Loop) -> str:
    """``devices``, ``layers``, ``retry``, ``tuning``, ``teardown`` or ``data``: what a loop is for, as far as its structure says."""
    called = _names_called(node)
    if called & _DEVICE_CALLS:
        return "devices"
    if isinstance(node.iterable, p.Call) and isinstance(node.iterable.function, p.Attr) and node.iterable.function.name in _LAYER_CALLS:
        return "layers"
    if called & _TIME_CALLS:
        return "tuning"
    if _is_retry(node):
        return "retry"
    return "levels" if is_search(node) else "data"


@functools.lru_cache(maxsize=8192)
def is_search(node: p.Loop) -> bool:
    """As many rounds as a number has binary digits: ``1 << level < n``, ``width *= 2``, ``middle = (low + high) // 2``."""
    if node.kind == "c-for":
        tested = node.test
        doubles = isinstance(node.update, p.AssignExpr) and node.update.op in _SCALES
        return doubles or (isinstance(tested, p.Compare) and any(isinstance(n, p.Binary) and n.op == "<<" for n in p.walk(tested)))
    if node.kind not in ("while", "do") or not isinstance(node.test, p.Compare):
        return False
    asked = {name.id for name in p.walk(node.test) if isinstance(name, p.Name)}
    statements = (item for statement in node.body for item in _own_statements(statement))
    return any(_scales(change, asked) for item in statements for change in _changes(item))


_SCALES = ("*", "/", "//", "<<", ">>")
_HALVES = ("/", "//", ">>")


def _changes(statement: object) -> Iterator[tuple[str, str | None, p.Expression]]:
    """The names that a statement gives a new value: the name, the operator where it is changed in place, the operand or value."""
    node = statement.value if isinstance(statement, p.ExprStatement) else statement
    if isinstance(node, p.AssignExpr) and isinstance(node.target, p.Name):
        yield node.target.id, node.op, node.value
    elif isinstance(node, p.Assign) and node.value is not None:
        yield from ((target.id, node.op, node.value) for target in node.targets if isinstance(target, p.Name))
    elif isinstance(node, p.Declare) and node.value is not None:
        yield node.name, None, node.value


def _scales(change: tuple[str, str | None, p.Expression], asked: set[str]) -> bool:
    """Whether a name that a loop's condition asks for is doubled or halved, or what lies between two of them is."""
    name, op, value = change
    if op is not None:
        return op in _SCALES and name in asked and isinstance(value, p.Const)
    for part in p.walk(value):
        if isinstance(part, p.Binary) and part.op in _SCALES and isinstance(part.right, p.Const):
            within = {one.id for one in p.walk(part.left) if isinstance(one, p.Name)}
            if within <= asked and (within == {name} or (len(within) == 2 and part.op in _HALVES)):
                return True
    return False


def _is_retry(node: p.Loop) -> bool:
    """A loop that ends with the first success: it may leave in the middle, and its rounds do not walk over data."""
    if not any(isinstance(item, p.Break | p.Return) for statement in node.body for item in _own_statements(statement)):
        return False
    if node.kind in ("while", "do"):
        return any(isinstance(item, p.Try) for statement in node.body for item in p.walk(statement)) or _is_constant(node.test)
    if node.kind == "c-for":
        update = node.update
        return not (isinstance(update, p.AssignExpr) and update.op in ("+", "-"))
    mentioned = {name.id for statement in node.body for name in p.walk(statement) if isinstance(name, p.Name)}
    targets = {name.id for name in p.walk(node.target) if isinstance(name, p.Name)} if node.target is not None else set()
    return not targets & mentioned


def _own_statements(statement: object) -> Iterator[object]:
    """The statements below one, but not those of inner loops and functions."""
    yield statement
    if isinstance(statement, p.Loop | p.FunctionDef | p.ClassDef):
        return
    for child in p.children(statement):
        if isinstance(child, p.Statement | p.Handler):
            yield from _own_statements(child)


def _is_constant(test: p.Expression | None) -> bool:
    return test is None or isinstance(test, p.Const)
