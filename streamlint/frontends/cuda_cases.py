"""How the statements of a ``switch`` or a loop end."""

from __future__ import annotations

from streamlint.program import Block, Body, Break, Continue, Expression, If, Raise, Return, Statement, Switch, Try

_LEAVES = (Break, Continue, Return, Raise)


def spelled_out(labels: list[list[Expression] | None], bodies: list[Body]) -> list[tuple[tuple[Expression, ...], Body]]:
    """Cases whose bodies go on into the next until something ends them; the ending ``break`` is dropped."""
    cases: list[tuple[tuple[Expression, ...], Body]] = []
    waiting: list[Expression] = []
    default = False
    for position, (label, own) in enumerate(zip(labels, bodies, strict=True)):
        waiting += label or []
        default = default or label is None
        if not own and position + 1 < len(bodies):
            continue
        body: Body = []
        for following in bodies[position:]:
            body += following
            if _ends(following):
                break
        cases.append((() if default else tuple(waiting), _without_break(body)))
        waiting, default = [], False
    return cases


def _ends(body: Body) -> bool:
    last = body[-1] if body else None
    if isinstance(last, Block):
        return _ends(last.body)
    if isinstance(last, If):
        return bool(last.otherwise) and _ends(last.then) and _ends(last.otherwise)
    return isinstance(last, _LEAVES)


def _without_break(body: Body) -> Body:
    last = body[-1] if body else None
    if isinstance(last, Break):
        return body[:-1]
    if isinstance(last, Block) and _ends(last.body):
        return [*body[:-1], Block(_without_break(last.body), at=last.at)]
    return body


def breaks(body: Body) -> bool:
    """Whether a ``break`` or ``continue`` leaves these statements."""
    for statement in body:
        if isinstance(statement, Break | Continue):
            return True
        inner: list[Statement] = []
        if isinstance(statement, If):
            inner = [*statement.then, *statement.otherwise]
        elif isinstance(statement, Block | Try):
            inner = statement.body
        elif isinstance(statement, Switch):
            inner = [item for _, case in statement.cases for item in case if not isinstance(item, Break)]
        if breaks(inner):
            return True
    return False
