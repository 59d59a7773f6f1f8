"""``query`` until true is a wait: what an answer to a query tells the host."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Event, Opaque, Stream, Value
from streamlint.operations import Query


def asked(value: Value) -> Event | Stream | None:
    """The event or stream that a query's result speaks of."""
    if isinstance(value, Opaque) and value.name.startswith("query:") and value.reach:
        held = value.reach[0]
        if isinstance(held, Event | Stream):
            return held
    return None


def told(run: Run, value: Value, succeeded: bool) -> None:
    """A query's own result was tested and came out so."""
    target = asked(value)
    if target is not None and succeeded:
        run.machine.host_waits(target)


def enter_round(run: Run, node: p.Expression, first: int) -> None:
    """A loop's condition, evaluated from operation ``first`` on, came out true for this round: what that says about the queries in it."""
    from streamlint.interpreter.conditions import Atom, probe

    if not any(isinstance(operation, Query) for operation in run.machine.operations[first:]):
        return
    found = probe(run, node)
    if isinstance(found, Atom):
        for part in found.parts if found.joined == "and" and not found.negated else (found,):
            for listener in part.learn if part.orders else ():
                listener(True)


def leave_loop(run: Run, node: p.Expression) -> None:
    """A loop's condition came out false: what that says about the queries in it."""
    from streamlint.interpreter.conditions import Atom, _tell, probe

    found = probe(run, node)
    if isinstance(found, Atom):
        _tell(run, found, False)
