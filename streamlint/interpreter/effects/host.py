"""What the host does with buffers: reading, writing, and waiting for device values that it reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span, Step
from streamlint.interpreter.assignment import assign, store_at
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.devices import as_device
from streamlint.interpreter.nested import hold
from streamlint.interpreter.run import RaiseSignal, Run, family
from streamlint.interpreter.values import Buffer, Const, Device, Handle, Opaque, Reference, Series, Table, Value
from streamlint.operations import Direction, Evidence, Memory

# What is kept with an object: the text that it compiles, and which kernel of it it is.
TEXT, KERNEL = "(text)", "(kernel)"


def host_read(run: Run, buffer: Buffer, span: Span, name: str) -> None:
    """The host looks at a buffer; a host view that was announced (``t.numpy()``) is read where it was announced."""
    if buffer.storage.on_device:
        return
    announced = buffer.access
    if announced is not None and run.machine.in_flight(buffer) is not None:
        span, name = announced.span, announced.name
    run.machine.host_read(ops.HostRead(span, buffer.storage.library, name, buffer=buffer, asked=_asked(run)))


def _asked(run: Run) -> Span | None:
    """C++: where a getter is called, a method that does nothing but give back what it reads. Who calls it chooses when."""
    function = run.frame.function
    if function is None or not run.file.is_cuda or not function.class_name or function.params or len(function.body) != 1:
        return None
    return run.frame.call if isinstance(function.body[0], p.Return) else None


def host_iteration(run: Run, buffer: Buffer, span: Span, name: str) -> None:
    """Taking a host array apart reads its numbers; a torch tensor gives views of its memory, which read nothing yet."""
    if not buffer.type.startswith("torch."):
        read_values(run, (buffer,), span, name, wait=False)


def host_write(run: Run, buffer: Buffer, span: Span, name: str) -> None:
    if not buffer.storage.on_device:
        run.machine.host_write(ops.HostWrite(span, buffer.storage.library, name, buffer=buffer))


def read_values(run: Run, values: Iterable[Value], span: Span, name: str, wait: bool = True, memory: Memory = Memory.PINNED) -> None:
    """The host uses these values: host buffers are read; for device buffers it waits for the current stream first."""
    for value in values:
        for buffer in buffers_in(value):
            if buffer.storage.on_device:
                if wait:
                    device_read(run, buffer, span, name, memory)
            elif buffer.storage.memory is Memory.UNKNOWN and not buffer.storage.host and not buffer.storage.writes:
                if wait and not run.file.is_cuda:
                    maybe_device_read(run)
            else:
                host_read(run, buffer, span, name)


def buffers_in(value: Value, depth: int = 3) -> Iterable[Buffer]:
    if isinstance(value, Reference):
        return
    if isinstance(value, Buffer):
        yield value
    elif isinstance(value, Opaque) and value.buffer is not None:
        yield value.buffer
    elif depth and isinstance(value, Series):
        for item in value.items or ():
            yield from buffers_in(item, depth - 1)
    elif depth and isinstance(value, Table):
        for item in value.items.values():
            yield from buffers_in(item, depth - 1)


def device_read(run: Run, buffer: Buffer, span: Span, name: str, memory: Memory = Memory.PINNED) -> None:
    """The host fetches a device value: a synchronous copy on the current stream. A number goes through the library's pinned memory."""
    library = family(buffer.storage.library or "torch")
    stream = run.stream_of(library)
    copy = ops.Copy(
        span,
        library,
        name,
        src=buffer,
        stream=stream,
        direction=Direction.D2H,
        known_small=memory is Memory.PINNED,
        evidence=buffer.storage.evidence,
        host_memory=memory,
    )
    run.machine.copy(copy)


def numbers_fetched(call: Call) -> None:
    """Arguments that have to be numbers: where a tensor is given, the library fetches what it holds."""
    for value in call.values("scalars"):
        if not isinstance(value, Buffer | Opaque):
            continue
        for buffer in buffers_in(value):
            if buffer.storage.on_device:
                device_read(call.run, buffer, call.span, call.name)
            elif buffer.storage.memory is Memory.UNKNOWN and not buffer.storage.host:
                maybe_device_read(call.run)
            else:
                host_read(call.run, buffer, call.span, call.name)


def maybe_device_read(run: Run) -> None:
    """The host fetches a value that may be on a device: if it is, the current stream was waited for."""
    run.machine.host_waits(run.stream_of("torch"))


# --- effects ----------------------------------------------------------------------------------------------------------------------------


def _read(call: Call) -> Value:
    run = call.run
    values = call.values("of") if call.row.get("of") is not None else ([call.receiver] if call.receiver is not None else [])
    if run.file.is_cuda:
        values = (
            [b for v in values if (b := buffer_of(run, v)) is not None]
            if any(isinstance(v, Reference | Opaque) for v in values)
            else values
        )
    read_values(run, values, call.span, call.name, memory=Memory(call.text("host_memory", "pinned")))
    result = call.text("result", "scalar")
    if result == "none":
        return Const(None)
    if result == "sequence":
        return Series(None, name=f"{call.name}{run.visit_key(call.site.node)}")
    number = call.opaque()
    number.plain = True
    return number


def _none(call: Call) -> Value:
    result = call.text("result", "scalar")
    shown = call.value("on_device")
    shown = shown.of if isinstance(shown, Device) else shown
    if isinstance(shown, Buffer) and shown.storage.memory is Memory.UNKNOWN and not shown.storage.host:
        shown.storage.memory, shown.storage.evidence = Memory.DEVICE, Evidence.DERIVED
    if result == "none":
        return call.status()
    if call.run.file.is_cuda and call.name.startswith(("cuda", "cublas", "cufft", "curand", "cudnn", "cusparse", "cu")):
        return call.status()
    if call.is_tuple:
        return Series([Const(0), call.opaque()], kind="tuple")
    held = call.receiver
    if isinstance(held, Buffer) and call.name.rpartition(".")[2] == "device":
        return call.opaque(held)
    term = (
        f"{held.term}.{call.name.rpartition('.')[2]}({', '.join(v.term for v in call.arguments.positional)})" if held is not None else None
    )
    if term is None:
        arguments = ", ".join(v.term for v in call.arguments.positional)
        term = f"{call.name}({arguments})"
    made = call.run.opaque(term)
    made.plain = call.library == "python"
    return made


def _exit(call: Call) -> Value:
    raise RaiseSignal


def _object(call: Call) -> Value:
    handle = Handle(call.text("type", call.name), call.run.machine.fresh("object"))
    handle.args = {**{str(i): v for i, v in enumerate(call.arguments.positional)}, **call.arguments.keywords}
    handle.trail = (Step("created here", call.span),)
    handle.made = "device" not in handle.args
    if (how := call.text("holds")) and not call.arguments.open:
        hold(handle, call.arguments.positional, how)
    origin = call.receiver.attrs.get(TEXT) if isinstance(call.receiver, Handle) else None
    compiles = {TEXT: call.value("text") or origin, KERNEL: call.value("kernel")}
    handle.attrs.update({key: value for key, value in compiles.items() if value is not None})
    if call.row.get("device") is not None and (home := as_device(call.run, call.value("device"))) is not None:
        handle.attrs["(device)"] = home
    return call.store(handle)


def _swap(call: Call) -> Value:
    first, second = call.value("first"), call.value("second")
    if isinstance(first, Reference) and isinstance(second, Reference):
        one, two = call.run.at(first), call.run.at(second)
        store_at(call.run, first, two, call.site.node)
        store_at(call.run, second, one, call.site.node)
    elif len(call.arguments.nodes) >= 2:
        nodes = call.arguments.nodes
        if first is not None and second is not None:
            assign(call.run, nodes[0].value, second, call.site.node)
            assign(call.run, nodes[1].value, first, call.site.node)
    return Const(None)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "read": _read,
    "none": _none,
    "exit": _exit,
    "object": _object,
    "swap": _swap,
}
