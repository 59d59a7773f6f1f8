"""``with``: stream scopes, context managers at hand, and those of libraries."""

from __future__ import annotations

import sys
from collections.abc import Callable

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter.assignment import assign
from streamlint.interpreter.beside import joined
from streamlint.interpreter.bodies import call_method, run_generator
from streamlint.interpreter.captures import CaptureScope
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.effects.streams import foreign_stream
from streamlint.interpreter.index import dotted_name
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Const, Device, GeneratorCall, Handle, Instance, LibraryName, Opaque, ScopeValue, Stream, Value

Inside = Callable[[Value], None]  # runs the body with what the manager gave


def enter_with(run: Run, node: p.With, index: int) -> None:
    """Enter the items of a ``with`` from left to right, run the body, leave."""
    from streamlint.interpreter.statements import execute

    if index == len(node.items):
        execute(run, node.body)
        return
    _enter(run, node, index)


def _enter(run: Run, node: p.With, index: int) -> None:
    expression, target = node.items[index]
    manager = run.evaluate(expression)

    def inside(value: Value) -> None:
        if target is not None:
            assign(run, target, value, node)
        enter_with(run, node, index + 1)

    if isinstance(manager, GeneratorCall):
        _generator(run, manager, inside)
    elif isinstance(manager, Instance):
        _instance(run, manager, inside, run.node_span(expression))
    elif isinstance(manager, LibraryName) and (row := run.file.models.attribute(manager.name)) is not None and row.effect == "gil":
        with run.machine.gil.scope(str(row.get("part"))):
            inside(manager)
    elif isinstance(manager, ScopeValue):
        _library(run, manager, inside, expression)
    elif isinstance(manager, Stream):
        # CuPy: a stream is a context manager that makes itself current.
        with run.current_stream(manager, manager.library or "cupy"):
            inside(manager)
    else:
        if isinstance(manager, Device) and manager.library == "cupy":
            run.machine.note(ops.Touch(run.node_span(expression), "cupy", "cupy.cuda.Device.use", evidence=ops.Evidence.LITERAL))
        if isinstance(manager, Handle) and manager.type == "threading.Lock":
            _lock(run, expression)
        with run.current_stream(_unknown_stream(run, manager, expression), "cupy"):
            inside(manager)
        if isinstance(manager, Handle) and manager.type.endswith("Executor"):
            joined(run, run.node_span(expression), manager.type)


def _unknown_stream(run: Run, manager: Value, expression: p.Expression) -> Stream | None:
    """CuPy: an unknown value in a ``with`` may be a stream, which is then the current one; what NumPy or Python itself makes is none."""
    if not isinstance(manager, Opaque) or not any(d.startswith("cupy") for d in run.file.imports.values()):
        return None
    if isinstance(expression, p.Call):
        head = dotted_name(run.file, expression.function).partition(".")[0]
        if head in sys.stdlib_module_names or (run.file.models.is_known(head) and not head.startswith("cupy")):
            return None
    return foreign_stream(run, manager, manager.term, "cupy")


def _lock(run: Run, expression: p.Expression) -> None:
    from streamlint.interpreter.guards import lvalue

    name = (lvalue(expression) or "").rpartition(".")[2]
    run.machine.note(ops.Block(run.node_span(expression), "python", "threading.Lock", what="lock", on=name))


def _generator(run: Run, manager: GeneratorCall, inside: Inside) -> None:
    """A ``@contextmanager`` at hand: its body runs with the ``with`` body as its ``yield``."""
    caller, around = run.frame, run.context

    def consumer(value: Value) -> Value:
        with run.consuming(caller, around):
            inside(value)
        return Const(None)

    run_generator(run, manager, consumer)


def _instance(run: Run, manager: Instance, inside: Inside, span: Span) -> None:
    waits = find_method(run, manager.definition, manager.file, "__enter__") is None
    enter, leave = ("__aenter__", "__aexit__") if waits else ("__enter__", "__exit__")
    entered = call_method(run, manager, enter, [], span)
    try:
        inside(entered if entered is not None else manager)
    finally:
        call_method(run, manager, leave, [Const(None), Const(None), Const(None)], span)


def _library(run: Run, manager: ScopeValue, inside: Inside, expression: p.Expression) -> None:
    from streamlint.interpreter.effects.memory import register, unregister

    if manager.kind == "pinned" and manager.buffer is not None:
        span = _call_span(run, expression)
        register(run, manager.buffer, span, "cuda.pinned")
        try:
            inside(manager.buffer)
        finally:
            unregister(run, manager.buffer, span, "cuda.pinned")
        return
    if isinstance(manager, CaptureScope):
        _capture(run, manager, inside, expression)
        return
    if manager.kind == "synchronizes":
        inside(manager)
        run.machine.synchronize(ops.Synchronize(run.node_span(expression), manager.library, "scope", of=manager.stream))
        return
    with run.current_stream(manager.stream, manager.library):
        inside(manager.value if manager.value is not None else manager)


def _capture(run: Run, manager: CaptureScope, inside: Inside, expression: p.Expression) -> None:
    """A graph is captured: what is issued inside is recorded, and does not run. Its beginning waits for the device (graphs.py)."""
    assert manager.stream is not None
    run.machine.host_waits(None)
    step = Step("capture begins here", _call_span(run, expression))
    session = run.machine.captures.begin(manager.stream, manager.mode, step, manager.library, len(run.context.calls))
    regular = False
    try:
        with run.current_stream(session.origin, manager.library):
            inside(manager)
        regular = True
    finally:
        run.machine.captures.end(session.origin, regular)


def _call_span(run: Run, expression: p.Expression) -> Span:
    return run.span(expression.name_at if isinstance(expression, p.Call) else expression.at)
