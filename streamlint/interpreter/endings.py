"""Where statements end: bodies that always leave by return, exception, break, or a call that does not come back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from streamlint import program as p
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.notes import remembered

_DEEPEST = 2
_LEAVING = (p.Return, p.Break, p.Continue)


def leaves(body: list[p.Statement], file: File) -> bool:
    """Whether a body always ends by leaving: what stands behind it is never run."""
    return any(_leaves(statement, file) for statement in body)


@remembered(16384)
def arms_leave(node: p.If, file: File) -> tuple[bool, bool]:
    """The same of the two arms of an ``if``."""
    return leaves(node.then, file), leaves(node.otherwise, file)


def _leaves(statement: p.Statement, file: File) -> bool:
    match statement:
        case p.Block() | p.With():
            return leaves(statement.body, file)
        case p.If():
            return leaves(statement.then, file) and leaves(statement.otherwise, file)
        case p.Try():
            ways = (statement.body + statement.otherwise, *(handler.body for handler in statement.handlers))
            return leaves(statement.final, file) or all(leaves(way, file) for way in ways)
        case p.Loop(kind="do"):
            # Its body is run at least once; ``break`` and ``continue`` leave no more than the loop.
            first = next((inner for inner in statement.body if _leaves(inner, file)), None)
            return isinstance(first, p.Return | p.Raise) or (first is not None and ends_the_program(first, file))
    return isinstance(statement, p.Return | p.Raise | p.Break | p.Continue) or ends_the_program(statement, file)


@remembered(32768)
def ends_the_program(statement: p.Statement, file: File, depth: int = _DEEPEST) -> bool:
    """Whether a statement throws, or calls what does not come back: ``exit``, or a function at hand that ends so."""
    if isinstance(statement, p.Raise):
        return True
    if isinstance(statement, p.Block):
        return any(ends_the_program(inner, file, depth) for inner in statement.body)
    call = statement.value if isinstance(statement, p.ExprStatement) else None
    if not isinstance(call, p.Call):
        return False
    name = _called(call.function, file)
    row = file.models.call(name) if name else None
    if row is not None:
        return row.effect == "exit"
    return depth > 0 and isinstance(call.function, p.Name) and _never_returns(call.function.id, file, depth - 1)


def _called(function: p.Expression, file: File) -> str:
    if file.is_cuda:
        return function.id.lstrip(":") if isinstance(function, p.Name) else ""
    return dotted_name(file, function) or (function.id if isinstance(function, p.Name) else "")


def _never_returns(name: str, file: File, depth: int) -> bool:
    """Whether each function at hand that a name may mean ends the program on its only way through."""
    named = file.relevance.named(name.rpartition("::")[2])
    return bool(named) and all(_has_no_way_out(function, file.program.owner(function, file), depth) for function in named)


def _has_no_way_out(function: p.Function, file: File, depth: int) -> bool:
    if any(isinstance(node, p.Return) for node in own_statements(function.body)):
        return False
    return any(ends_the_program(statement, file, depth) for statement in function.body)


def own_statements(body: Iterable[object]) -> Iterator[p.Statement]:
    """The statements of a body, inner ones too, but not those of functions that are defined in it."""
    for part in body:
        if isinstance(part, p.Statement):
            yield part
        if isinstance(part, p.Statement | p.Handler) and not isinstance(part, p.FunctionDef | p.ClassDef):
            yield from own_statements(p.children(part))


def last_way_on(node: p.If, function: p.Function | None, file: File) -> bool | None:
    """How an ``if`` comes out that is the last to leave before a ``raise`` ends the body (not to leave shows nothing); None: it is not."""
    if function is None or node not in _last_ways_on(function, file):
        return None
    return any(isinstance(inner, _LEAVING) for inner in node.then)


@remembered(4096)
def _last_ways_on(function: p.Function, file: File) -> frozenset[p.If]:
    bodies = [function.body, *(body for statement in own_statements(function.body) for body in _bodies(statement))]
    return frozenset(node for body in bodies if body and (node := _last_way_on(body, file)) is not None)


def _bodies(statement: p.Statement) -> Iterator[p.Body]:
    """The bodies in a statement whose exceptions nobody catches there."""
    match statement:
        case p.If():
            yield from (statement.then, statement.otherwise)
        case p.Loop() | p.With() | p.Block():
            yield statement.body
        case _:
            return


def _last_way_on(body: p.Body, file: File) -> p.If | None:
    end = next((number for number, statement in enumerate(body) if ends_the_program(statement, file)), None)
    if end is not None:
        return _way_out_of(body[:end], _LEAVING)
    last = body[-1]
    if isinstance(last, p.Loop) and last.kind == "for" and any(ends_the_program(inner, file) for inner in last.otherwise):
        return _way_out_of(last.body, (p.Return, p.Break))
    return None


def _way_out_of(body: p.Body, by: tuple[type[p.Statement], ...]) -> p.If | None:
    """The last ``if`` of a body of which one arm leaves it so; None where another statement behind it may return."""
    for statement in reversed(body):
        if isinstance(statement, p.If):
            arms = [any(isinstance(inner, by) for inner in arm) for arm in (statement.then, statement.otherwise)]
            if arms[0] != arms[1]:
                return statement
        if isinstance(statement, p.Loop) and statement.kind == "for" and (found := _way_out_of(statement.body, (p.Return,))):
            return found
        if any(isinstance(inner, p.Return) for inner in own_statements([statement])):
            return None
    return None


def gives_back(body: Sequence[p.Statement]) -> bool:
    """Whether a case of a ``switch`` ends what is around it, or gives a value back: what a ``break`` does not."""
    last = body[-1] if body else None
    return gives_back(last.body) if isinstance(last, p.Block) else isinstance(last, p.Return | p.Raise | p.Continue)
