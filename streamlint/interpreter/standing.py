"""Where a piece of code stands in a body: the way down to it, and whether each round of a loop comes by.

Static, for a path shows one round only: what holds it back must be read from the conditions around and before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.guards import lvalue, places_assigned
from streamlint.interpreter.hot import own_calls, steps_optimizer
from streamlint.interpreter.index import File, dotted_name

# Names may silence a finding, never cause one: words of what is not done in each round, or not for real.
_RARE = re.compile(
    r"(?i)verbos|debug|\blog|_log|print|report|profil|eval|valid|test|first|warm|sanity|should|due|every|interval|time|nan|inf\b"
)
# Questions about a value whose answer is the same in each round.
_KINDS = frozenset({"isinstance", "hasattr", "callable", "issubclass"})


@dataclass(frozen=True, slots=True)
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


def way_to(body: Iterable[object], span: Span) -> tuple[object, ...]:
    """The nodes from a statement down to the one that stands at ``span``: the call of that name, or the innermost that holds it."""
    wanted: p.Position = (span.row, span.column, span.end_row, span.end_column)
    way: list[object] = []
    level: Iterable[object] = body
    while True:
        below = next((node for node in level if _holds(node, wanted)), None)
        if below is None:
            break
        way.append(below)
        level = list(p.children(below))
    for index in range(len(way) - 1, -1, -1):
        node = way[index]
        if isinstance(node, p.Call) and node.name_at == wanted:
            return tuple(way[: index + 1])
    return tuple(way)


def _holds(node: object, wanted: p.Position) -> bool:
    at: p.Position = getattr(node, "at", p.NOWHERE)
    if at != p.NOWHERE:
        return (at[0], at[1]) <= (wanted[0], wanted[1]) and (wanted[2], wanted[3]) <= (at[2], at[3])
    return any(_holds(child, wanted) for child in p.children(node))


@dataclass(frozen=True, slots=True)
class Test:
    """A condition that an operation stands under. ``arm`` is what runs where it holds back or lets through."""

    test: p.Expression | None  # None: the handler of an exception
    arm: tuple[object, ...]


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
    return list(p.children(node))


def _skips(statements: list[object], position: int) -> Iterator[Test]:
    rest = tuple(statements[position:])
    for index, earlier in enumerate(statements[:position]):
        if isinstance(earlier, p.If):
            for arm in (earlier.then, earlier.otherwise):
                if any(isinstance(statement, p.Continue | p.Return) for statement in arm):
                    yield Test(earlier.test, (*statements[index + 1 : position], *rest))


def _around(way: tuple[object, ...], node: object) -> Iterator[Test]:
    index = way.index(node)
    following = way[index + 1] if index + 1 < len(way) else None
    if following is None:
        return
    if isinstance(node, p.If):
        if following in node.then:
            yield Test(node.test, tuple(node.then))
        elif following in node.otherwise:
            yield Test(node.test, tuple(node.otherwise))
    elif isinstance(node, p.Conditional) and following in (node.then, node.otherwise):
        yield Test(node.test, ())
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


def each_round(stand: Stand, loop: p.Loop) -> bool:
    """Whether only constants, questions of kind, or the accumulation test stand between a body and the node."""
    return all(condition.test is not None and _lets_pass(stand, condition, loop) for condition in conditions(stand))


def _lets_pass(stand: Stand, condition: Test, loop: p.Loop) -> bool:
    test = condition.test
    assert test is not None
    if any(steps_optimizer(call, stand.file) for call in own_calls(condition.arm)):
        return True  # the accumulation test: what stands here runs once a step
    if stand.loop is not None and _guards_a_step(stand, test):
        return True
    return _is_steady(stand, test)


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
    lines = file.module.text.splitlines()[node.at[0] - 1 : node.at[2]]
    if not lines:
        return ""
    lines[-1] = lines[-1][: node.at[3] - 1]
    lines[0] = lines[0][node.at[1] - 1 :]
    return " ".join(lines)


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
    if isinstance(test, p.Name | p.Attr | p.Call) and _RARE.search(_text(stand.file, test)):
        return False
    return _constant(stand, test)


def _constant(stand: Stand, test: p.Expression) -> bool:
    given = changing(stand)
    for node in p.walk(test):
        if isinstance(node, p.Binary) and node.op in ("%", "&"):
            return False
        if isinstance(node, p.Call) and not _same_answer(stand, node):
            return False
        place = lvalue(node)
        if place and isinstance(node, p.Name | p.Attr) and (place in given or place.partition(".")[0] in given):
            return False
    return True


def _same_answer(stand: Stand, call: p.Call) -> bool:
    """A question to a library or an object that takes nothing from the round: ``dist.get_rank()``, ``len(self.layers)``."""
    if isinstance(call.function, p.Name) and call.function.id in (_KINDS | {"len", "getattr", "int", "bool", "float"}):
        return True
    dotted = dotted_name(stand.file, call.function)
    return not call.args and bool(dotted) and not dotted.startswith(("time.", "random.", "datetime."))


def changing(stand: Stand) -> set[str]:
    """The places that are given values in the loop, or by methods other than the constructor; a called function's parameters."""
    found: set[str] = set()
    if stand.loop is not None:
        found |= places_assigned([*stand.loop.body, stand.loop])
        if stand.loop.target is not None:
            found |= {node.id for node in p.walk(stand.loop.target) if isinstance(node, p.Name)}
        for statement in stand.loop.body:
            for node in p.walk(statement):
                if isinstance(node, p.Loop) and node.target is not None:
                    found |= {name.id for name in p.walk(node.target) if isinstance(name, p.Name)}
    elif stand.function is not None:
        found |= places_assigned(stand.function.body)
        found |= {param.name for param in stand.function.params} - {"self", "cls"}
    if stand.owner is not None:
        for name, overloads in stand.owner.methods.items():
            if name != "__init__":
                found |= {place for f in overloads for place in places_assigned(f.body) if place.startswith("self.")}
    return found
