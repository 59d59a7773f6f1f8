"""Where a piece of code stands in a body: the way down to it, and whether each round of a loop comes by.

Static, for a path shows one round only: what holds it back must be read from the conditions around and before it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.at_hand import contains
from streamlint.interpreter.guards import lvalue, places_assigned
from streamlint.interpreter.hot import own_calls, steps_optimizer
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.spelling import says
from streamlint.record import record, replace

# Names may silence a finding, never cause one: words of what is not done in each round, or not for real.
_RARE = frozenset(
    "verbose verbosity debug debugging log logs logging logger print prints printing report reports reporting profile profiler profiling "
    "eval evaluate evaluates evaluation evaluating valid validate validation validating test tests testing first warm warmup warming "
    "sanity should due every interval intervals time times timing timed timer nan nans isnan inf isinf".split()
)
_LEVELS = _RARE - frozenset(
    "every interval intervals time times timed first due should".split()
)  # `interval > 0` asks whether there is one
# Questions about a value whose answer is the same in each round.
_KINDS = frozenset({"isinstance", "hasattr", "callable", "issubclass"})


@record(frozen=True, slots=True)
class Stand:
    """One body on the way from a loop to an operation: the loop's own, or that of a function called from it."""

    file: File
    function: p.Function | None
    owner: p.Class | None
    body: tuple[p.Statement, ...]
    loop: p.Loop | None
    way: tuple[object, ...]  # from a statement of the body down to the node

    @property
    def node(self) -> object:
        return self.way[-1]


@functools.lru_cache(maxsize=4096)
def way_to(body: tuple[object, ...], span: Span) -> tuple[object, ...]:
    """The nodes from a statement down to the one that stands at ``span``: the call of that name, or the innermost that holds it."""
    wanted = span.at
    way: list[object] = []
    level: Sequence[object] = body
    while True:
        below = next((node for node in level if _holds(node, wanted)), None)
        if below is None:
            break
        way.append(below)
        level = p.children(below)
    for index in range(len(way) - 1, -1, -1):
        node = way[index]
        if isinstance(node, p.Call) and node.name_at == wanted:
            return tuple(way[: index + 1])
    return tuple(way)


def _holds(node: object, wanted: p.Position) -> bool:
    at: p.Position = getattr(node, "at", p.NOWHERE)
    if at != p.NOWHERE:
        return contains(at, wanted)
    return any(_holds(child, wanted) for child in p.children(node))


@record(frozen=True, slots=True)
class Test:
    """A condition that an operation stands under. ``arm`` is what runs where it holds back or lets through."""

    test: p.Expression | None  # None: the handler of an exception
    arm: tuple[object, ...]
    holds: bool = True  # how the test comes out where the node is met
    skips: bool = False  # whether it leaves the round, before the node


def conditions(stand: Stand) -> Iterator[Test]:
    """The conditions between a body and the node: around it, and before it those that skip the rest of a round."""
    level: Iterable[object] = stand.body
    for node in stand.way:
        statements = list(level)
        if node in statements:
            yield from _skips(statements, statements.index(node))
        level = _below(stand.way, node)
        yield from _around(stand.way, node)


def _below(way: tuple[object, ...], node: object) -> list[object]:
    """The statement list of ``node`` that the way goes through."""
    index = way.index(node)
    if index + 1 == len(way):
        return []
    following = way[index + 1]
    for name in ("body", "then", "otherwise", "final"):
        listed = getattr(node, name, None)
        if isinstance(listed, list) and following in listed:
            return listed
    return p.children(node)


def _skips(statements: list[object], position: int) -> Iterator[Test]:
    rest = tuple(statements[position:])
    for index, earlier in enumerate(statements[:position]):
        if isinstance(earlier, p.If):
            for arm in (earlier.then, earlier.otherwise):
                if any(isinstance(statement, p.Continue | p.Return) for statement in arm):
                    yield Test(earlier.test, (*statements[index + 1 : position], *rest), arm is earlier.otherwise, skips=True)


def _around(way: tuple[object, ...], node: object) -> Iterator[Test]:
    index = way.index(node)
    following = way[index + 1] if index + 1 < len(way) else None
    if following is None:
        return
    if isinstance(node, p.If):
        if following in node.then:
            yield Test(node.test, tuple(node.then))
        elif following in node.otherwise:
            yield Test(node.test, tuple(node.otherwise), holds=False)
    elif isinstance(node, p.Conditional) and following in (node.then, node.otherwise):
        yield Test(node.test, (following,), following is node.then)
    elif isinstance(node, p.Bool) and following in node.values[1:]:
        yield from (Test(value, ()) for value in node.values[: node.values.index(following)])
    elif isinstance(node, p.Handler):
        yield Test(None, ())
    elif isinstance(node, p.Try):
        if isinstance(following, p.Handler):
            yield Test(None, ())
    elif isinstance(node, p.Loop) and node.kind == "while" and following is not node.test:
        yield Test(node.test, ())
    elif isinstance(node, p.Switch):
        yield Test(node.subject, ())
    elif isinstance(node, p.Clause) and node.tests:
        yield from (Test(test, ()) for test in node.tests)
    elif isinstance(node, p.Comprehension) and following is node.element:
        yield from (Test(test, ()) for clause in node.clauses for test in clause.tests)


@remembered(4096)
def each_round(stand: Stand, loop: p.Loop) -> bool:
    """Whether only constants, questions of kind, or the accumulation test stand between a body and the node."""
    return all(condition.test is not None and lets_pass(stand, condition, loop) for condition in conditions(stand))


def lets_pass(stand: Stand, condition: Test, loop: p.Loop) -> bool:
    """Whether a condition comes out the same in each round, guards the step itself, or that there is data."""
    test = condition.test
    assert test is not None
    if evaluates(stand, test, condition.holds) or _makes_up_for(stand, condition):
        return False
    if any(steps_optimizer(call, stand.file) for call in own_calls(condition.arm)):
        return True  # the accumulation test: what stands here runs once a step
    if stand.loop is not None and _guards_a_step(stand, test):
        return True
    return _is_steady(stand, test) or is_of_nothing(stand, condition)


def evaluates(stand: Stand, test: p.Expression, holds: bool) -> bool:
    """Whether a condition that comes out so means that a module does not train."""
    if isinstance(test, p.Unary) and test.op == "not":
        return evaluates(stand, test.operand, not holds)
    if isinstance(test, p.Bool):
        return (test.op == "and") == holds and any(evaluates(stand, value, holds) for value in test.values)
    if isinstance(test, p.Attr) and test.name == "training":
        return not holds
    if isinstance(test, p.Name):
        made = only_value(stand, test.id)
        return made is not None and not isinstance(made, p.Name) and evaluates(stand, made, holds)
    if isinstance(test, p.Compare) and test.op in ("==", "!=") and isinstance(test.left, p.Name) and isinstance(test.right, p.Const):
        made = only_value(stand, test.left.id)  # mode = "train" if self.training else "eval"
        if isinstance(made, p.Conditional) and isinstance(made.then, p.Const) and isinstance(made.otherwise, p.Const):
            equal = holds == (test.op == "==")
            if test.right.value in (made.then.value, made.otherwise.value):
                return evaluates(stand, made.test, (test.right.value == made.then.value) == equal)
    return False


def values_given(stand: Stand, name: str) -> list[p.Expression | None]:
    """What a body assigns to a name; None where a loop, an unpacking or an operator does."""
    return _given_in(stand.body, name)


@functools.lru_cache(maxsize=4096)
def _given_in(body: tuple[p.Statement, ...], name: str) -> list[p.Expression | None]:
    found: list[p.Expression | None] = []
    for statement in body:
        for node in p.walk(statement):
            if isinstance(node, p.Assign) and node.value is not None:
                for target in node.targets:
                    if isinstance(target, p.Name) and target.id == name:
                        found.append(node.value if node.op is None else None)
                    elif not isinstance(target, p.Name) and isinstance(target, p.Collection) and _names(target, name):
                        found.append(None)
            elif (isinstance(node, p.Loop | p.Clause) and node.target is not None and _names(node.target, name)) or (
                isinstance(node, p.AssignExpr) and _names(node.target, name)
            ):
                found.append(None)
    return found


def _names(target: p.Expression, name: str) -> bool:
    return any(isinstance(node, p.Name) and node.id == name for node in p.walk(target))


def only_value(stand: Stand, name: str) -> p.Expression | None:
    """The one expression that a body gives to a name."""
    values = values_given(stand, name)
    return values[0] if len(values) == 1 else None


def _makes_up_for(stand: Stand, condition: Test) -> bool:
    """The first time only: ``if key not in kept: kept[key] = …``, ``if self.one is None: self.one = …``, ``if not hasattr(…): …``."""
    assert condition.test is not None
    test, straight = unnegated(condition.test)
    holds = condition.holds == straight
    if isinstance(test, p.Compare) and test.op in ("in", "not in"):
        absent, place = holds == (test.op == "not in"), f"{_text(stand.file, test.right)}[{_text(stand.file, test.left)}]"
    elif isinstance(test, p.Compare) and test.op in ("is", "is not") and isinstance(test.left, p.Attr | p.Index):
        none = isinstance(test.right, p.Const) and test.right.value is None
        absent, place = none and holds == (test.op == "is"), _text(stand.file, test.left)
    elif isinstance(test, p.Call) and isinstance(test.function, p.Name) and test.function.id == "hasattr" and len(test.args) == 2:
        held, name = (arg.value for arg in test.args)
        absent, place = not holds, f"{_text(stand.file, held)}.{name.value if isinstance(name, p.Const) else ''}"
    else:
        return False
    made = (node for part in condition.arm for node in p.walk(part) if isinstance(node, p.Assign) and node.value is not None)
    return absent and any(_text(stand.file, target) == place for node in made for target in node.targets)


def is_of_nothing(stand: Stand, condition: Test) -> bool:
    """A guard for a round without data: ``if count == 0: continue``, ``a / count if count > 0 else 0.0``."""
    assert condition.test is not None
    test, straight = unnegated(condition.test)
    if not isinstance(test, p.Compare) or not isinstance(test.right, p.Const) or test.right.value not in (0, 1):
        return False
    holds = condition.holds == straight
    empty = test.op in ("==", "<", "<=") and (test.op, test.right.value) not in (("==", 1), ("<", 0), ("<=", 1))
    filled = test.op in ("!=", ">", ">=") and (test.op, test.right.value) not in (("!=", 1), (">=", 0), (">", 1))
    if holds if empty else not (filled and holds):
        return False
    return condition.skips or divides(stand, condition.arm, test.left) or (filled and _counts_gradients(stand, test.left))


def _counts_gradients(stand: Stand, counted: p.Expression) -> bool:
    """``len(grads)`` of a list that this body fills with gradients: there are some in each step."""
    if not isinstance(counted, p.Call) or not isinstance(counted.function, p.Name) or counted.function.id != "len" or not counted.args:
        return False
    held = counted.args[0].value
    return isinstance(held, p.Name) and any(_adds_gradient(node, held.id) for statement in stand.body for node in p.walk(statement))


def _adds_gradient(node: object, name: str) -> bool:
    if not isinstance(node, p.Call) or not isinstance(node.function, p.Attr) or node.function.name != "append":
        return False
    held = node.function.value
    added = [part for arg in node.args for part in p.walk(arg.value)]
    return isinstance(held, p.Name) and held.id == name and any(isinstance(part, p.Attr) and part.name == "grad" for part in added)


def unnegated(test: p.Expression) -> tuple[p.Expression, bool]:
    """A condition without its ``not``, and whether it holds where the whole does."""
    holds = True
    while isinstance(test, p.Unary) and test.op == "not":
        test, holds = test.operand, not holds
    return test, holds


def divides(stand: Stand, arm: Iterable[object], divisor: p.Expression) -> bool:
    """Whether something is divided in an arm by what was tested."""
    text = _text(stand.file, divisor)
    return any(
        isinstance(node, p.Binary) and node.op == "/" and text in _text(stand.file, node.right) for part in arm for node in p.walk(part)
    )


def _guards_a_step(stand: Stand, test: p.Expression) -> bool:
    """Whether the same condition, written again, guards a step of the optimizer in the loop."""
    assert stand.loop is not None
    text = _text(stand.file, test)
    others = [n for s in stand.loop.body for n in p.walk(s) if isinstance(n, p.If) and n.test is not test]
    return any(
        _text(stand.file, other.test) == text and any(steps_optimizer(call, stand.file) for call in own_calls(other.then))
        for other in others
    )


def _text(file: File, node: p.Node) -> str:
    """What it says, however it is broken into lines."""
    lines = file.code[node.at[0] - 1 : node.at[2]]
    if not lines:
        return ""
    lines[-1] = lines[-1][: node.at[3] - 1]
    lines[0] = lines[0][node.at[1] - 1 :]
    return "".join(word for line in lines for word in line.split())


def _is_steady(stand: Stand, test: p.Expression) -> bool:
    """Whether a condition comes out the same in each round, as far as the code at hand says."""
    if isinstance(test, p.Bool):
        return all(_is_steady(stand, value) for value in test.values)
    if isinstance(test, p.Unary) and test.op == "not":
        return _is_steady(stand, test.operand)
    if isinstance(test, p.Compare) and test.op in ("is", "is not", "in", "not in"):
        side = test.left if test.op in ("in", "not in") else test.right  # `"mask" in batch`, `x is None`
        return isinstance(side, p.Const) or _constant(stand, test)
    if isinstance(test, p.Call) and isinstance(test.function, p.Name) and test.function.id in _KINDS:
        return True
    return not _is_rare(test) and _constant(stand, test)


def _is_rare(test: p.Expression) -> bool:
    """Whether a condition is named like what is not met in each round: ``verbose > 1``, ``cfg["debug"]``."""
    if isinstance(test, p.Compare):
        return any(says(name, _LEVELS) for name in _said_by(test))
    return isinstance(test, p.Name | p.Attr | p.Call | p.Index) and any(says(name, _RARE) for name in _said_by(test))


def _said_by(test: p.Expression) -> Iterator[str]:
    """The identifiers of a condition; a key is one where it could be an attribute."""
    for node in p.walk(test):
        if isinstance(node, p.Name):
            yield node.id
        elif isinstance(node, p.Attr):
            yield node.name
        elif isinstance(node, p.Const) and isinstance(node.value, str):
            yield node.value


def _constant(stand: Stand, test: p.Expression, depth: int = 4) -> bool:
    given = changing(stand)
    if isinstance(test, p.Name) and test.id in given:
        return depth > 0 and _same_each_round(stand, test, depth)
    if isinstance(test, p.Compare | p.Unary | p.Bool):
        return all(_constant(stand, part, depth) for part in p.children(test) if isinstance(part, p.Expression))
    for node in p.walk(test):
        if isinstance(node, p.Binary) and node.op in ("%", "&"):
            return False
        if isinstance(node, p.Call) and not _same_answer(stand, node):
            return False
        place = lvalue(node)
        if place and isinstance(node, p.Name | p.Attr) and (place in given or place.partition(".")[0] in given):
            return False
    return True


def _same_each_round(stand: Stand, name: p.Name, depth: int) -> bool:
    """Whether all that a body gives to a name, before it is asked, is the same in each round: what it is given, and whether."""
    values = values_given(stand, name.id)
    if not values or any(value is None or value.at[:2] > name.at[:2] for value in values):
        return False
    for value in values:
        assert value is not None
        there = replace(stand, way=way_to(stand.body, Span("", *value.at)))
        tests = [condition.test for condition in conditions(there)]
        if not all(test is not None and test.at != name.at and _is_steady(there, test) for test in tests):
            return False
        if not _constant(stand, value, depth - 1):
            return False
    return True


def _same_answer(stand: Stand, call: p.Call) -> bool:
    """A question to a library or an object that takes nothing from the round: ``dist.get_rank()``, ``len(self.layers)``."""
    if isinstance(call.function, p.Name) and call.function.id in (_KINDS | {"len", "getattr", "int", "bool", "float"}):
        return True
    dotted = dotted_name(stand.file, call.function)
    return not call.args and bool(dotted) and not dotted.startswith(("time.", "random.", "datetime."))


def changing(stand: Stand) -> frozenset[str]:
    """The places that are given values in the loop, or by methods other than the constructor; a called function's parameters."""
    return _changing(stand.loop, stand.function, stand.owner)


@functools.lru_cache(maxsize=1024)
def _changing(loop: p.Loop | None, function: p.Function | None, owner: p.Class | None) -> frozenset[str]:
    found: set[str] = set()
    if loop is not None:
        found |= places_assigned([*loop.body, loop])
        if loop.target is not None:
            found |= {node.id for node in p.walk(loop.target) if isinstance(node, p.Name)}
        for statement in loop.body:
            for node in p.walk(statement):
                if isinstance(node, p.Loop) and node.target is not None:
                    found |= {name.id for name in p.walk(node.target) if isinstance(name, p.Name)}
    elif function is not None:
        found |= places_assigned(function.body)
        found |= {param.name for param in function.params} - {"self", "cls"}
    if owner is not None:
        for name, overloads in owner.methods.items():
            if name != "__init__":
                found |= {place for f in overloads for place in _assigned_by(f) if place.startswith("self.")}
    return frozenset(found)


@functools.lru_cache(maxsize=4096)
def _assigned_by(function: p.Function) -> frozenset[str]:
    return frozenset(places_assigned(function.body))
