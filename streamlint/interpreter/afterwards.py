"""C++: one method of a class after another. The second waits for an event or a stream of the object, and so means to wait for the first.

A caller may have waited for more between the two calls, and then the second would have nothing to wait for. So what is kept is only what
follows a wait of the second method for what the first one recorded or queued, and is not covered by it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

from streamlint import operations as ops
from streamlint import program as p
from streamlint.interpreter.guards import called_name
from streamlint.interpreter.index import File, is_declaration
from streamlint.interpreter.questions import question
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Event, Stream

_WAITS = frozenset({"EventSynchronize", "StreamSynchronize", "StreamWaitEvent", "EventQuery"})
_QUEUES = frozenset({"Async", "<<<", "EventRecord", "LaunchKernel"})
_MOST = 3


def earlier_methods(function: p.Function, definition: p.Class | None, file: File) -> Iterator[p.Function]:
    """The methods that a caller may have called before this one, whose work it waits for."""
    if definition is None or not _may_be_called(function) or not file.relevance.holds(function.body, _WAITS):
        return
    members = {field.name for field in definition.fields}
    own = _mentioned(function) & members
    found = 0
    for overloads in definition.methods.values():
        for method in overloads:
            body = _with_body(method, file)
            if body is function or body is None or not _may_be_called(body) or found == _MOST:
                continue
            shared = own & _mentioned(body)
            if len(shared) < 2 or not file.relevance.holds(body.body, _QUEUES) or _is_driven(function, body, file):
                continue
            found += 1
            yield body


def _with_body(method: p.Function, file: File) -> p.Function | None:
    if not is_declaration(method):
        return method
    found = file.program.definition(method, file)
    return found[0] if found is not None else None


def _may_be_called(function: p.Function) -> bool:
    return function.kind == "function" and not function.static and bool(function.body)


@functools.lru_cache(maxsize=4096)
def _mentioned(function: p.Function) -> frozenset[str]:
    return frozenset(n.id if isinstance(n, p.Name) else n.name for n in p.walk(function) if isinstance(n, p.Name | p.Attr))


def _is_driven(second: p.Function, first: p.Function, file: File) -> bool:
    """Whether code at hand calls both, or one calls the other: there the true order is seen."""
    if called_together(file, first.qualname, second.class_name, first.name, second.name):
        return True
    return first.name in _called(second) or second.name in _called(first)


@question
def called_together(file: File, own: str, class_name: str, one: str, other: str) -> bool:
    """Whether code outside of a class, and of a function, calls two methods of the class."""
    return any(
        function.qualname != own and function.class_name != class_name and {one, other} <= _called(function)
        for home in file.program.cpp(file)
        for function, _ in p.functions_of(home.module)
    )


@functools.lru_cache(maxsize=4096)
def _called(function: p.Function) -> frozenset[str]:
    return frozenset(called_name(node.function) for node in p.walk(function) if isinstance(node, p.Call))


def keep_awaited(run: Run, first: int, begin: int) -> None:
    """Of the run of both methods: pairs with an access in either, behind a wait of the second that was meant for the first's work."""
    operations = run.machine.operations
    queued = operations[first:begin]
    run.machine.conflicts = [
        conflict
        for conflict in run.machine.conflicts
        if first <= conflict.first.index < begin <= conflict.second.index
        and any(_waits_for(operation, queued) for operation in operations[begin : conflict.second.index])
    ]
    operations.clear()


def _waits_for(operation: ops.Operation, queued: list[ops.Operation]) -> bool:
    awaited = operation.of if isinstance(operation, ops.Synchronize) else operation.on if isinstance(operation, ops.Wait) else None
    if isinstance(awaited, Event):
        return any(isinstance(o, ops.Record) and o.event is awaited for o in queued)
    if isinstance(awaited, Stream):
        return any(isinstance(o, ops.Copy | ops.Launch) and o.stream is awaited for o in queued)
    return False
