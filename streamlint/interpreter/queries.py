"""``query`` until true is a wait: what an answer to a query tells the host."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Event, Opaque, Stream, Value


def asked(value: Value) -> Event | Stream | None:
    """The event or stream that a query's result speaks of."""
    if isinstance(value, Opaque) and value.name.startswith("query:") and value.reach:
        held = value.reach[0]
        if isinstance(held, Event | Stream):
            return held
    return None


def assume(run: Run, node: p.Expression, holds: bool) -> None:
    """A condition is known to have come out so: if it says that a query succeeded, the host has seen that work end."""
    if isinstance(node, p.Unary) and node.op == "not":
        assume(run, node.operand, not holds)
    elif isinstance(node, p.Bool):
        for part in node.values:
            if len(node.values) == 1 or (node.op == "and") == holds:
                assume(run, part, holds)
            elif _mentions_query(part):
                assume(run, part, holds)
    elif isinstance(node, p.Compare):
        _assume_comparison(run, node, holds)
    elif isinstance(node, p.Call | p.Attr | p.Name):
        target = asked(run.evaluate(node))
        if target is not None and holds:
            run.machine.host_waits(target)


def _mentions_query(node: p.Expression) -> bool:
    return any(isinstance(item, p.Call | p.Attr) and "uery" in str(getattr(item, "name", "") or getattr(getattr(item, "function", None), "id", "")) for item in p.walk(node))


def _assume_comparison(run: Run, node: p.Compare, holds: bool) -> None:
    left, right = run.evaluate(node.left), run.evaluate(node.right)
    for one, two in ((left, right), (right, left)):
        target = asked(one)
        if target is None:
            continue
        succeeded = isinstance(two, Const) and two.value in (0, True)
        equal = holds == (node.op in ("==", "is"))
        # `!= cudaSuccess` came out false, or `== cudaErrorNotReady` did.
        if equal == succeeded:
            run.machine.host_waits(target)


def learn(run: Run, value: Value, holds: bool) -> None:
    """A query's own result was tested."""
    target = asked(value)
    if target is not None and holds:
        run.machine.host_waits(target)
