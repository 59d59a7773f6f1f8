"""A root once more: methods called one time after the other.

Nothing is known of what a caller does in between; so what is found here is about the device's side alone (what one call has written for the
next), on streams that do not leave the class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter.classes import lineage
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Event, Instance, Stream, Value

MOST_ROUNDS = 4
CALLS = 3
_ORDERS = frozenset({"wait_stream", "wait_event", "wait", "synchronize", "record_stream"})
TEARDOWN = frozenset({"__del__", "__exit__", "__aexit__", "close"})
_ENDS = TEARDOWN | {"__init__"}


def is_worth_more(run: Run, function: p.Function | None) -> bool:
    """Whether more rounds can show more: a stream was made, and a caller may call a method as often as it likes."""
    if function is None or not any(stream.kind == "created" for stream in run.machine.streams.values()):
        return False
    return is_method(function) and not function.is_generator


def is_method(function: p.Function) -> bool:
    """A method that a caller may call as often as it likes."""
    private = function.name.startswith("_") and function.name not in ("__next__", "__call__")
    return bool(function.class_name) and function.name not in _ENDS and not private


def call_again(run: Run, receiver: Value | None, function: p.Function, result: Value, call: Callable[[], Value]) -> None:
    """Call a method as often as ``run.calls`` says."""
    if not is_method(function) or not isinstance(receiver, Instance) or function.is_generator:
        return
    starts: list[int] = []
    for _ in range(run.calls - 1):
        starts.append(len(run.machine.operations))
        result = call()
    entered = {name for operation in run.machine.operations for name in operation.context.functions}
    awaited = any(_orders(method) for method in _others(run, receiver, entered))  # a caller may call that in between
    driven = function.name in _methods_called(receiver.file)  # by code at hand, whose order is the true one
    lent = frozenset[str]() if awaited or driven else _private(run, receiver, result, run.lent.keys())
    run.between = [c for c in run.machine.conflicts if _of(c, lent) and any(_meets(run, c, start) for start in starts)]
    run.machine.conflicts = run.between


def _meets(run: Run, conflict: ops.Conflict, start: int) -> bool:
    """Whether a call that begins there works with what one before it has written on another stream, and no wait in between is in vain."""
    first, second = conflict.first, conflict.second
    if conflict.missing != "stream-wait" or not conflict.first_writes or not first.index < start <= second.index:
        return False
    return not any(isinstance(o, ops.Wait) and o.empty for o in run.machine.operations[first.index : second.index])


def _private(run: Run, receiver: Instance, result: Value, lent: Set[int]) -> frozenset[str]:
    """The object's streams that its caller has no handle on, and no result to wait for: none but what is ``lent`` to its stream."""
    held = {v.key for v in reachable([receiver]) if isinstance(v, Stream)}
    for value in reachable([result]):
        if isinstance(value, Event | Instance):
            return frozenset()  # an object may have a method that waits
        if isinstance(value, Stream):
            held.discard(value.key)
        elif isinstance(value, Buffer) and id(value.storage) not in lent:
            stamps = [access.stamp for access in value.storage.writes]
            held -= {stamp.stream for stamp in stamps if not run.machine.clocks.ordered(stamp, run.stream_of("torch").key)}
    return frozenset(held)


def _of(conflict: ops.Conflict, private: frozenset[str]) -> bool:
    """Whether the first stream is such a one: without it nobody can make the other wait."""
    stream = getattr(conflict.first, "stream", None)
    return isinstance(stream, Stream) and stream.key in private


def _others(run: Run, receiver: Instance, entered: set[str]) -> Iterator[p.Function]:
    """The methods that this run did not enter, those of the bases at hand among them."""
    met = set(_ENDS)
    for owner, _ in lineage(run, receiver.definition, receiver.file):
        for name, overloads in owner.methods.items():
            if name not in met:
                yield from (method for method in overloads if method.qualname not in entered)
        met |= set(owner.methods)


@remembered(512)
def _methods_called(file: File) -> frozenset[str]:
    """The names of the methods that a file's code calls, of whatever objects; a base's own method is its caller's."""
    callees = (node.function for node in walk_module(file.module) if isinstance(node, p.Call))
    return frozenset(c.name for c in callees if isinstance(c, p.Attr) and not isinstance(c.value, p.Call))


def _orders(method: p.Function) -> bool:
    calls = (node.function for node in p.walk(method) if isinstance(node, p.Call))
    return any(isinstance(callee, p.Attr) and callee.name in _ORDERS for callee in calls)


def only_between(run: Run) -> None:
    """What several calls in a row may tell."""
    between = {id(conflict) for conflict in run.between}
    run.machine.conflicts = [c for c in run.machine.conflicts if id(c) in between]
    run.machine.operations.clear()
