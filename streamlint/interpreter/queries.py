"""``query`` until true is a wait: what an answer to a query tells the host."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint import program as p
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Event, Opaque, Stream, Value
from streamlint.operations import Query


def answer(run: Run, target: Event | Stream | None, is_status: bool, key: str) -> Opaque:
    """What a query gives: whether the device has come there, or a status, which is 0 then."""
    return run.opaque(f"{'status' if is_status else 'query'}:{key}", *([target] if target is not None else []))


def asked(value: Value) -> Event | Stream | None:
    """The event or stream that a query's result speaks of."""
    if isinstance(value, Opaque) and value.name.startswith(("query:", "status:")) and value.reach:
        held = value.reach[0]
        if isinstance(held, Event | Stream):
            return held
    return None


def says_done(value: Value, other: Value) -> bool:
    """Whether a query's result that equals another value says that the device is done. Of all statuses success alone is 0."""
    if not isinstance(other, Const):
        return False
    return other.value == 0 if isinstance(value, Opaque) and value.name.startswith("status:") else bool(other.value)


def compared(run: Run, name: str, op: str, left: Value, right: Value) -> Opaque:
    """The result of a comparison that nothing is known of, but maybe what it says of a query."""
    result = run.opaque(name, left, right)
    query, other = (left, right) if asked(left) is not None else (right, left)
    if op in ("==", "!=") and asked(query) is not None:
        result.attrs[_DONE] = Const(says_done(query, other) == (op == "=="))
    return result


_DONE = "(done)"  # of a comparison with a query: which of its results says that the device is done


def told_by(value: Value) -> tuple[list[Event | Stream], list[Event | Stream]]:
    """What the device has come to where a value is true, and where it is false: a query, its opposite, all or any of several."""
    if not isinstance(value, Opaque):
        return [], []
    target = asked(value)
    if target is not None:
        return ([], [target]) if value.name.startswith("status:") else ([target], [])
    done = value.attrs.get(_DONE)
    if isinstance(done, Const):
        targets = [held for held in map(asked, value.reach) if held is not None]
        return (targets, []) if done.value else ([], targets)
    kind = value.name.partition(":")[0]
    parts = [told_by(part) for part in value.reach] if kind in ("all", "any") or value.name.startswith("not ") else []
    if kind == "all":
        return [held for true, _ in parts for held in true], []
    if kind == "any":
        return [], [held for _, false in parts for held in false]
    return (parts[0][1], parts[0][0]) if len(parts) == 1 else ([], [])


def of_several(run: Run, kind: str, values: Iterable[Value], key: str) -> Value | None:
    """``all(...)`` or ``any(...)`` of values of which some speak of the device; None where none does."""
    values = list(values)
    return run.opaque(f"{kind}:{key}", *values) if any(map(any, map(told_by, values))) else None


def told(run: Run, value: Value, succeeded: bool) -> None:
    """A value that speaks of the device was tested and came out so."""
    for target in told_by(value)[0 if succeeded else 1]:
        run.machine.host_waits(target)


def told_equal(run: Run, value: Value, other: Value, equal: bool) -> None:
    """A value was compared with another one, and came out so: `== cudaSuccess` holds, or `== cudaErrorNotReady` does not."""
    target = asked(value)
    if target is not None and equal == says_done(value, other):
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
