"""Device work: kernels, library calls, computing on buffers, callbacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter.effects.host import buffers_in, device_read, host_write, read_values
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Environment,
    FunctionValue,
    Handle,
    KernelConfig,
    LibraryName,
    Method,
    Opaque,
    Reference,
    Series,
    Stream,
    Value,
)
from streamlint.models.vocabulary import Selector
from streamlint.operations import Evidence, Memory

if TYPE_CHECKING:
    from streamlint.interpreter.calls import Arguments, CallSite
    from streamlint.interpreter.effects import Call


def compute(
    run: Run,
    values: Iterable[Value],
    span: Span,
    name: str,
    *,
    type: str = "",
    library: str = "",
    writes: Sequence[Buffer] = (),
    stream: Stream | None = None,
    host: bool = False,
    waits: bool = False,
) -> Value:
    """Work on buffers where they are: a launch if one is on a device, else a host computation that reads them."""
    operands = [b for v in values for b in buffers_in(v)]
    device = next((b for b in operands if b.storage.on_device), None)
    if host and device is None:
        return _on_host(run, operands, writes, span, name, type)
    if device is not None:
        return _on_device(run, device, operands, writes, span, name, type, library, stream, waits)
    return _on_host(run, operands, writes, span, name, type)


def _on_device(
    run: Run,
    device: Buffer,
    operands: list[Buffer],
    writes: Sequence[Buffer],
    span: Span,
    name: str,
    type: str,
    library: str,
    stream: Stream | None,
    waits: bool,
) -> Value:
    home = library or device.storage.library or "torch"
    home = "torch" if home.startswith("torch") else home
    if stream is None:
        from dataclasses import replace

        stream = run.stream_of(home)
        if stream.kind == "null" and stream.chosen is None:
            stream = replace(stream, chosen=span, how="omitted")
    storage = run.storage(
        Memory.DEVICE,
        f"{name}@{span.row}:{span.column}#{len(run.machine.operations)}",
        evidence=Evidence(max(device.storage.evidence, Evidence.DERIVED)),
        library=home,
    )
    result = Buffer(storage, type=type or device.type)
    reads = tuple(b for b in operands if b.storage.on_device)
    written = tuple(writes) or (result,)
    run.machine.launch(
        ops.Launch(span, home, name, stream=stream, reads=reads, writes=tuple(b for b in written if b.storage.on_device), kind="compute")
    )
    if waits:
        device_read(run, result, span, name)
    return writes[0] if writes else result


def _on_host(run: Run, operands: list[Buffer], writes: Sequence[Buffer], span: Span, name: str, type: str) -> Value:
    known = [b for b in operands if b.storage.memory is not Memory.UNKNOWN or b.storage.writes]
    for buffer in known:
        read_values(run, [buffer], span, name)
    for buffer in writes:
        host_write(run, buffer, span, name)
    if writes:
        return writes[0]
    first = operands[0] if operands else None
    hosts = [b for b in operands if b.storage.on_host]
    # A tensor of the host does not mix with one of a device, but for a scalar: the others are on the host as well.
    every = bool(operands) and (len(hosts) == len(operands) or any(not b.storage.small for b in hosts))
    memory = Memory.PAGEABLE if every else Memory.UNKNOWN
    storage = run.storage(
        memory, f"{name}@{span.row}:{span.column}#{len(run.machine.operations)}", library=first.storage.library if first else ""
    )
    if every and first is not None:
        storage.small = all(b.storage.small for b in operands)
        storage.trail = (
            *(first.storage.trail[:1] if first.storage.memory is Memory.PINNED else ()),
            Step(f"computed on the host here ({last_name(name)}): a new pageable tensor", span),
        )
    return Buffer(storage, type=type or (first.type if first else "torch.Tensor"))


def last_name(name: str) -> str:
    return name.rpartition(".")[2].rpartition("::")[2]


def _compute(call: Call) -> Value:
    run = call.run
    if call.row.get("reads") is not None:
        values = call.values("reads")
    else:
        values = ([call.receiver] if call.receiver is not None else []) + call.arguments.all()
    writes = [b for v in call.values("writes") for b in buffers_in(v)]
    out = [b for v in call.values("out") for b in buffers_in(v)]
    writes.extend(out)
    field = call.row.get("stream")
    stream = None
    if field is not None:
        from streamlint.interpreter.effects.streams import stream_argument

        stream = stream_argument(call)
    values = [v for v in values if not any(v is w for w in out)]
    unknown = [v for v in values if isinstance(v, Opaque) and v.buffer is None]
    if call.library == "cupy" and not call.flag("host") and not writes and not any(True for v in values for _ in buffers_in(v)):
        # CuPy computes on the device whatever it is given.
        values = [*values, Buffer(run.storage(Memory.DEVICE, "operand", evidence=Evidence.LITERAL, library="cupy"), type="cupy.ndarray")]
    result = compute(
        run,
        [*values, *writes],
        call.span,
        call.name,
        type=call.text("type"),
        library=call.library if call.library in ("torch", "cupy") and not call.flag("host") else "",
        writes=writes,
        stream=stream,
        host=call.flag("host"),
        waits=call.flag("waits"),
    )
    return _result(call, result, values, unknown)


def _result(call: Call, result: Value, values: list[Value], unknown: Sequence[Value]) -> Value:
    kind = call.text("result", "buffer")
    if kind == "none":
        return Const(None)
    if kind == "scalar":
        return call.opaque()
    if kind == "self" and call.receiver is not None:
        return call.receiver
    if (
        isinstance(result, Buffer)
        and unknown
        and result.storage.small
        and result.storage.memory is not Memory.DEVICE
        and not call.row.get("host")
    ):
        # Scalars of the host work with whatever the unknown operand is.
        result.storage.memory = Memory.UNKNOWN
    if isinstance(result, Buffer) and not any(True for v in values for _ in buffers_in(v)) and not call.row.get("out"):
        if call.library == "cupy" and not call.flag("host"):
            result.storage.memory, result.storage.evidence, result.type = Memory.DEVICE, Evidence.LITERAL, "cupy.ndarray"
            result.storage.library = "cupy"
        elif call.library == "numpy" or call.flag("host"):
            result.storage.memory, result.type = Memory.PAGEABLE, call.text("type", "numpy.ndarray")
            result.storage.trail = (Step("a new array in pageable host memory", call.span),)
        else:
            result.storage.memory = Memory.UNKNOWN
    if kind == "sequence" and isinstance(result, Buffer):
        return Series(None, element=result, name=f"{call.name}{call.run.visit_key(call.site.node)}")
    return result


# --- kernels ----------------------------------------------------------------------------------------------------------------------------


def chevron_launch(run: Run, node: p.Launch) -> Value:
    """``kernel<<<grid, block, shared, stream>>>(args)``."""
    config = [run.evaluate(e) for e in node.config]
    args = [run.evaluate(a.value) for a in node.args]
    span = run.span(node.name_at if node.name_at != p.NOWHERE else node.at)
    stream = _chevron_stream(run, config, span)
    name = node.kernel.id if isinstance(node.kernel, p.Name) else "kernel"
    _kernel(run, span, "cuda-runtime", name, stream, args)
    return Const(None)


def _chevron_stream(run: Run, config: list[Value], span: Span) -> Stream | None:
    from streamlint.interpreter.calls import Arguments, CallSite
    from streamlint.interpreter.effects import Call
    from streamlint.interpreter.effects.streams import as_stream
    from streamlint.models import Row

    call = Call(run, Row(("launch",), "launch", {}, "cuda-runtime"), "launch", None, Arguments(), CallSite(p.Unknown(), span))
    if len(config) < 4:
        return Stream("null", "null", None, "cuda-runtime", chosen=span, how="omitted")
    return as_stream(call, config[3], how="literal")


def _kernel(run: Run, span: Span, library: str, name: str, stream: Stream | None, args: list[Value]) -> None:
    from streamlint.interpreter.effects import buffer_of

    touched = []
    for value in args:
        buffer = buffer_of(run, value) if isinstance(value, Buffer) else None
        if buffer is not None:
            touched.append(buffer)
        else:
            touched.extend(buffers_in(value))
    device = tuple(b for b in touched if not b.storage.on_host)
    run.machine.launch(ops.Launch(span, library, name, stream=stream, reads=device, writes=device))
    run.coverage.launches[(span, name)] = stream is not None


def numba_launch(run: Run, config: KernelConfig, arguments: Arguments, site: CallSite) -> Value:
    """``kernel[grid, block, stream](args)``; host arrays are copied there and back."""
    from streamlint.interpreter.effects import Call
    from streamlint.interpreter.effects.streams import as_stream
    from streamlint.models import Row

    call = Call(run, Row(("kernel",), "launch", {}, "numba"), "kernel", None, arguments, site)
    given = config.config[2] if len(config.config) > 2 else None
    if given is None:
        stream: Stream | None = Stream("null", "null", None, "numba", chosen=config.span, how="omitted")
    else:
        stream = as_stream(call, given)
    arrays = [b for v in arguments.positional for b in buffers_in(v) if b.storage.on_host]
    for array in arrays:
        _implicit_copy(call, config.span, array, stream, to_device=True)
    _kernel(run, config.span, "numba", getattr(getattr(config.kernel, "function", None), "name", "kernel"), stream, arguments.positional)
    for array in arrays:
        _implicit_copy(call, config.span, array, stream, to_device=False)
    return Const(None)


def _implicit_copy(call: Call, span: Span, array: Buffer, stream: Stream | None, to_device: bool) -> None:
    """numba copies host arrays to the device before the launch and back after it, on the launch's stream (args.py)."""
    from streamlint.interpreter.effects.buffers import issue_copy

    device = Buffer(
        call.run.storage(Memory.DEVICE, "argument", evidence=Evidence.LITERAL), type="numba.cuda.cudadrv.devicearray.DeviceNDArray"
    )
    asynchronous = stream is not None and stream.kind != "null"
    dst, src = (device, array) if to_device else (array, device)
    direction = ops.Direction.H2D if to_device else ops.Direction.D2H
    call.site.span = span
    issue_copy(call, dst, src, direction, asynchronous=asynchronous, stream=stream, evidence=Evidence.LITERAL)


def _launch(call: Call) -> Value:
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    query = call.value("size_query")
    if isinstance(query, Const) and query.value in (None, 0):
        return call.status()
    stream = _policy_stream(call) if call.flag("policy") else stream_argument(call, default="none")
    fields = call.row.get("reads"), call.row.get("writes")
    values = call.arguments.all() if fields == (None, None) else [*call.values("reads"), *call.values("writes")]
    touched = tuple(b for v in values for b in buffers_in(v) if not b.storage.on_host)
    operation = ops.Launch(
        call.span, call.library, call.name, stream=stream, reads=touched, writes=touched, kind="library", host_waits=call.flag("waits")
    )
    run.machine.launch(operation)
    run.coverage.launches[(call.span, call.name)] = stream is not None
    return call.status() if run.file.is_cuda else Const(None)


def _policy_stream(call: Call) -> Stream | None:
    """thrust: the stream of the policy that is the first argument; without one, the null stream if device memory is in play."""
    first = call.arguments.positional[0] if call.arguments.positional else None
    if isinstance(first, Stream):
        from streamlint.interpreter.effects.streams import as_stream

        return as_stream(call, first)
    text = first.term if first is not None else ""
    constant = call.run.file.models.constants.get(text)
    if constant == "policy" or text in ("thrust::device", "thrust::cuda::par", "thrust::cuda::par_nosync"):
        return Stream("null", "null", None, "thrust", chosen=call.span, how="policy")
    if text.startswith(("thrust::host", "thrust::seq")):
        return None
    on_device = any(isinstance(v, Buffer) and v.storage.on_device for v in call.arguments.positional)
    return Stream("null", "null", None, "thrust", chosen=call.span, how="policy") if on_device else None


_STREAMS = frozenset({"cudaStream_t", "CUstream", "hipStream_t"})


def work_of_declared(run: Run, function: p.Function, environment: Environment, site: CallSite) -> None:
    """A call of a function that is only declared, with a stream among its parameters: device work on that stream."""
    from streamlint.interpreter.calls import Arguments as Args
    from streamlint.interpreter.effects import Call
    from streamlint.interpreter.effects.streams import as_stream
    from streamlint.models import Row

    param = next((pm for pm in function.params if pm.type is not None and pm.type.name in _STREAMS and not pm.type.pointers), None)
    if param is None:
        return
    call = Call(run, Row(("declared",), "launch", {}, "cuda-runtime"), function.name, None, Args(), site)
    stream = as_stream(call, environment.names[param.name])
    touched = tuple(b for v in environment.names.values() for b in buffers_in(v) if b.storage.on_device)
    run.machine.launch(ops.Launch(site.span, "cuda-runtime", function.name, stream=stream, reads=touched, kind="library"))


# --- callbacks --------------------------------------------------------------------------------------------------------------------------


def _callback(call: Call) -> Value:
    """A host function that runs in stream order: its body is run here, marked as running on a driver thread."""
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    stream = stream_argument(call)
    function = _callback_function(call)
    known = isinstance(function, FunctionValue)
    run.machine.callback(ops.Callback(call.span, call.library, call.name, stream=stream, body_known=known))
    if function is not None and run.context.callback is None:
        step = Step("registered as a host callback here", call.span)
        with run.within(callback=step, loops=(), guards=()):
            _run_callback(call, function, stream)
    return call.status()


def _callback_function(call: Call) -> Value | None:
    value = call.value("function")
    if isinstance(value, Reference):
        value = call.run.evaluate(value.target)
    if call.text("style") == "params":
        return getattr(value, "attrs", {}).get("fn") if value is not None else None
    return value


def _run_callback(call: Call, function: Value, stream: Stream | None) -> None:
    from streamlint.interpreter.calls import Arguments, CallSite, invoke

    run = call.run
    site = CallSite(call.site.node, call.span, "callback")
    data = call.values("arguments")
    style = call.text("style", "data")
    if style == "params":
        held = call.value("function")
        held = run.evaluate(held.target) if isinstance(held, Reference) else held
        data = [getattr(held, "attrs", {}).get("userData") or run.opaque("userData")]
    if style in ("cupy-add", "numba"):
        data = [stream or run.opaque("callback-stream"), run.opaque("callback-status"), *(data or [Const(None)])]
        if style == "numba" and isinstance(function, FunctionValue):
            data = data[: max(1, len(function.function.params))]
    if run.file.is_cuda and call.name.endswith("AddCallback"):
        data = [stream or run.opaque("callback-stream", type="cudaStream_t"), Const(0), *data]
    if isinstance(function, FunctionValue | Method | ClassValue | LibraryName):
        shadow = run.machine.clocks
        run.machine.clocks = type(shadow)({k: dict(v) for k, v in shadow.streams.items()}, dict(shadow.host), set(shadow.blocking))
        # In stream order: all earlier work of its stream has ended when it runs.
        try:
            run.machine.clocks.synchronize_device()
            invoke(run, function, Arguments(data), site)
        finally:
            run.machine.clocks = shadow


def _thread(call: Call) -> Value:
    """Another thread's work is out of view for now: what it can reach may be awaited there."""
    from streamlint.interpreter.calls import opaque_call

    result = opaque_call(call.run, call.name, call.receiver, call.arguments, call.site)
    kind = "concurrent.futures.Future" if "Executor" in call.name else "threading.Thread" if call.name.endswith("Thread") else ""
    return Opaque(result.term, (result,), type=kind) if kind else result


def _block(call: Call) -> Value:
    """The host waits for another thread, which may have waited for anything on the device."""
    run = call.run
    run.machine.note(ops.Block(call.span, call.library, call.name, what=call.text("what", "join")))
    run.machine.forget_everything()
    return call.opaque(*([call.receiver] if call.receiver is not None else []))


def is_handle(value: Value) -> bool:
    return isinstance(value, Handle)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "compute": _compute,
    "launch": _launch,
    "callback": _callback,
    "thread": _thread,
    "block": _block,
}
__all__ = ["EFFECTS", "Selector", "chevron_launch", "compute", "numba_launch"]
