"""Callbacks: host code that CUDA runs beside the path."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import operations as ops
from streamlint.findings import Step
from streamlint.interpreter.arguments import Arguments, CallSite
from streamlint.interpreter.calls import invoke
from streamlint.interpreter.classes import find_method
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.values import (
    ClassValue,
    Const,
    FunctionValue,
    Instance,
    LibraryName,
    Method,
    Prepared,
    Reference,
    Stream,
    Value,
)


def _callback(call: Call) -> Value:
    """A host function that runs in stream order: its body is run here, marked as running on a driver thread."""

    run = call.run
    stream = stream_argument(call)
    function = _callback_function(call)
    known = isinstance(function, FunctionValue) or (isinstance(function, Instance) and _is_called(call, function))
    operation = ops.Callback(call.span, call.library, call.name, stream=stream, body_known=known)
    run.machine.callback(operation)
    if function is not None and run.context.callback is None:
        step = Step("registered as a host callback here", call.span)
        with run.within(callback=step, loops=(), guards=()), run.machine.gil.entered(None):
            _run_callback(call, function, stream)
    return call.status()


def _is_called(call: Call, value: Instance) -> bool:
    """Whether a Python object is called like a function, by a method at hand."""
    return not value.file.is_cuda and find_method(call.run, value.definition, value.file, "__call__") is not None


def _callback_function(call: Call) -> Value | None:
    value = call.value("function")
    if isinstance(value, Reference):
        value = call.run.at(value)
    if call.text("style") == "params":
        return getattr(value, "attrs", {}).get("fn") if value is not None else None
    return value


def _run_callback(call: Call, function: Value, stream: Stream | None) -> None:

    run = call.run
    site = CallSite(call.site.node, call.span, "callback")
    data = call.values("arguments")
    style = call.text("style", "data")
    if style == "params":
        held = call.value("function")
        held = run.at(held) if isinstance(held, Reference) else held
        data = [getattr(held, "attrs", {}).get("userData") or run.opaque("userData")]
    if style in ("cupy-add", "numba"):
        status = Const(0) if run.file.is_cuda else run.opaque("callback-status")
        data = [stream or run.opaque("callback-stream", type="cudaStream_t"), status, *(data or [Const(None)])]
        if style == "numba" and isinstance(function, FunctionValue):
            data = data[: max(1, len(function.function.params))]
    if isinstance(function, FunctionValue | Method | Prepared | ClassValue | LibraryName) or (
        isinstance(function, Instance) and _is_called(call, function)
    ):
        shadow, in_progress = run.machine.clocks, run.stack
        run.machine.clocks = shadow.copy()
        run.stack = []  # when it runs, what registers it has returned: it may call that again
        # In stream order: all earlier work of its stream has ended when it runs.
        try:
            run.machine.clocks.synchronize_device()
            invoke(run, function, Arguments(data), site)
        finally:
            run.machine.clocks, run.stack = shadow, in_progress


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "callback": _callback,
}
