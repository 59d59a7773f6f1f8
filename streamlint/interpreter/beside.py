"""Code that runs beside the path: other threads, other processes, workers of a loader. Each begins with streams and a clock of its own.

A target runs at once, where it is started, with nothing in flight but what is handed to it. What it did is on the path, marked
(``Context.beside``); what it touched is as it was before, for no order is known between it and the path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection

from streamlint import operations as ops
from streamlint.findings import Span, Step
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import STREAM_TYPES, RaiseSignal, Run
from streamlint.interpreter.values import Buffer, Storage, Stream, Value
from streamlint.operations import Beside, Memory
from streamlint.record import replace

_STARTED = {
    "thread": "thread started here",
    "process": "process started here",
    "worker": "workers of this loader run it",
}


def begun(run: Run, kind: str, span: Span) -> Beside:
    """Another thread, process or worker, begun here."""
    return Beside(kind, Step(_STARTED[kind], span), len(run.machine.operations))


def run_beside(run: Run, spawn: ops.Spawn, body: Callable[[], Value], handed: Collection[Storage] = ()) -> Value | None:
    """Note the start, and run the body in surroundings of its own. Returns what it returned; None where it raised or is too deep.

    What is ``handed`` to it keeps the work that is under way on it.
    """
    run.machine.note(spawn)
    if spawn.beside is not None:
        run.beside.setdefault(spawn.beside.key, functools.partial(_once_more, run, spawn, body))
    around = run.context.beside
    if around is not None and around.kind != "process":
        return None  # threads that start threads
    handed = under_way(run, [run.passing[1]]) if run.passing is not None else handed
    current, carried = run.current, run.carried
    run.carried = handed
    run.current = {"torch": Stream("null", "ambient", None, "torch", STREAM_TYPES["torch"])}
    plain = {"callback": None, "capture": None, "loops": (), "guards": (), "setup": False, "teardown": False, "handles_error": False}
    try:
        with run.machine.aside(handed), run.machine.gil.entered(None), run.within(beside=spawn.beside, **plain):
            return body()
    except RaiseSignal:
        return None
    finally:
        run.current, run.carried = current, carried


def _once_more(run: Run, spawn: ops.Spawn, body: Callable[[], Value]) -> Value | None:
    return run_beside(run, replace(spawn), body)


def found_empty(run: Run, channel: str) -> None:
    """The code in progress asked an empty channel: it will go on once something is put there."""
    who = run.context.beside
    if who is not None and who.key not in run.waiting.setdefault(channel, []):
        run.waiting[channel].append(who.key)


def wake(run: Run, channel: str) -> None:
    """Something was put into a channel: who found it empty runs once more."""
    who = run.context.beside
    for key in run.waiting.pop(channel, ()):
        if key in run.beside and (who is None or who.key != key):
            run.beside.pop(key)()


def taken(run: Run, channel: str) -> Value | None:
    """The code in progress takes from a channel: what it is being given, if it runs once more for that."""
    who = run.context.beside
    if who is None:
        return None
    if who.kind == "thread":
        run.takers.setdefault(channel, who.key)
    if run.passing is None or run.passing[0] != channel:
        for storage in run.carried:  # who puts something there may have waited first
            storage.writes.clear()
            storage.reads.clear()
        return None
    value, run.passing = run.passing[1], None
    return value


def hand_over(run: Run, channel: str, value: Value) -> None:
    """A pinned buffer with copies under way goes into a channel that a thread in view takes from: the thread goes on with it as it is."""
    key = run.takers.get(channel)
    if key is None or key not in run.beside or run.context.beside is not None or not under_way(run, [value]):
        return
    run.takers[channel] = None
    run.passing = (channel, value)
    run.beside.pop(key)()
    run.passing = None


def under_way(run: Run, values: list[Value]) -> list[Storage]:
    """The pinned memory that can be reached from values with copies under way."""
    held = [v.storage for v in reachable(values, limit=40) if isinstance(v, Buffer)]
    return [storage for storage in held if storage.memory is Memory.PINNED and run.machine.is_busy(storage)]


def joined(run: Run, span: Span, name: str, what: str = "join") -> None:
    """The host waits for another thread, which may have waited for anything on the device."""
    run.machine.note(ops.Block(span, "python", name, what=what))
    run.machine.forget_everything()
