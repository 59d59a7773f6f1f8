"""Computing on buffers and writing to them where they are: on a device, or on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamlint import operations as ops
from streamlint.findings import Span, Step
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.host import buffers_in, device_read, host_write, maybe_device_read, numbers_fetched, read_values
from streamlint.interpreter.effects.sizes import becomes_whole, resized
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.extension import TENSORS
from streamlint.interpreter.gradients import is_gradient, leave, left
from streamlint.interpreter.handed import from_outside, on_side_stream, presumed, works_in_fork
from streamlint.interpreter.hot import BACKWARD
from streamlint.interpreter.run import Run, family
from streamlint.interpreter.values import Buffer, Const, Handle, Opaque, Series, Stream, Value
from streamlint.operations import Evidence, Memory
from streamlint.record import replace

ARITHMETIC = "arithmetic"


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
    waits: bool = False,
    presume: bool = True,
) -> Value:
    """Work on buffers where they are: a launch if one is on a device, else a host computation that reads them.

    ``presume``: what is worked on in the scope of a stream that somebody made is on the device.
    """
    values = list(values)
    if presume and on_side_stream(run) and run.machine.captures.step is None:
        _presume(run, values, name)
    operands = [b for v in values for b in buffers_in(v)]
    device = next((b for b in operands if b.storage.on_device), None)
    if device is None:
        if presume:
            works_in_fork(run, values, span, name)
        outside = not writes and (_handed_tensors(operands) if run.file.is_cuda else from_outside(values))
        result = _on_host(run, operands, writes, span, name, type, outside)
        if isinstance(result, Buffer) and outside:
            result.storage.handed = True
    else:
        result = _on_device(run, device, operands, writes, span, name, type, library, stream, waits)
    if isinstance(result, Buffer) and not writes and values and is_gradient(values[0]):
        result.storage.of_gradient = True
    return result


def _handed_tensors(operands: Iterable[Buffer]) -> bool:
    """C++: whether a tensor among them was handed over, or is computed from such."""
    return any(buffer.type in TENSORS and (buffer.storage.owner == "caller" or buffer.storage.handed) for buffer in operands)


def _presume(run: Run, values: list[Value], name: str) -> None:
    """Nobody chooses a stream to compute on the host: what PyTorch is given there is on the device, unless one of them is not."""
    known = [b for v in values for b in buffers_in(v)]
    if any(b.storage.on_device or (b.storage.on_host and not b.storage.small) for b in known):
        return
    for number, value in enumerate(list(values)):
        if isinstance(value, Buffer):
            presumed(run, value)
        elif isinstance(value, Opaque) and not number and name.startswith("torch.") and presumed(run, value) is not None:
            values.extend(_operands(run, value))


def _operands(run: Run, value: Opaque, depth: int = 2) -> Iterable[Buffer]:
    """What a value was computed from on the current stream, as far as it was handed over."""
    if value.made is None or value.made.stamp.stream != run.stream_of("torch").key:
        return
    for inner in value.reach if depth else ():
        if (found := presumed(run, inner)) is not None:
            yield found
            if isinstance(inner, Opaque):
                yield from _operands(run, inner, depth - 1)


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
    home = family(library or _speaks(device) or device.storage.library or "torch")
    if stream is None:
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


def _speaks(buffer: Buffer) -> str:
    """The library whose type a buffer has: its operators run there, whoever made the memory."""
    library = buffer.type.partition(".")[0]
    return library if library in ("torch", "cupy") else ""


def _on_host(run: Run, operands: list[Buffer], writes: Sequence[Buffer], span: Span, name: str, type: str, outside: bool) -> Value:
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
    numpy = any(b.type.startswith("numpy.") and b.storage.host for b in operands) and not any(b.storage.on_device for b in operands)
    every = numpy or (bool(operands) and (len(hosts) == len(operands) or any(not b.storage.small for b in hosts)))
    memory = Memory.PAGEABLE if every else Memory.UNKNOWN
    storage = run.storage(
        memory, f"{name}@{span.row}:{span.column}#{len(run.machine.operations)}", library=first.storage.library if first else ""
    )
    if memory is Memory.UNKNOWN:
        storage.trail = (Step(f"new memory allocated here ({_last_name(name)}); pageable if it is on the host", span),)
        stream = run.stream_of("torch") if run.file.tensor_type == "torch.Tensor" or (run.file.is_cuda and outside) else None
        if stream is not None and (outside or stream.kind == "created"):
            # Whoever makes a stream current computes on it: it counts once the value turns out to be on a device.
            storage.made = run.machine.presume_work(ops.Launch(span, "torch", name, stream=stream, kind="compute", assumed=True), stream)
    storage.counted = _counts(operands, name)
    if every and first is not None:
        storage.small = all(b.storage.small for b in operands)
        storage.by_choice = any(b.storage.by_choice for b in operands)
        storage.trail = (
            *(first.storage.trail[:1] if first.storage.memory is Memory.PINNED else ()),
            Step(f"computed on the host here ({_last_name(name)}) as a new pageable tensor", span),
        )
    return Buffer(storage, type=type or (first.type if first else run.file.tensor_type))


def _counts(operands: list[Buffer], name: str) -> bool:
    """Whether the result is whole numbers as its operands are: in arithmetic one that counts tells what the others are."""
    if all(b.storage.small or b.storage.counted for b in operands):
        return bool(operands)
    told = operands if name == ARITHMETIC else operands[:1]
    return any(b.storage.counted for b in told)


def _last_name(name: str) -> str:
    return name.rpartition(".")[2].rpartition("::")[2]


def _compute(call: Call) -> Value:
    if call.flag("named") and call.arguments.positional:
        return call.run.opaque(f"{call.name}{call.run.visit_key(call.site.node)}")
    run = call.run
    if call.row.get("reads") is not None:
        values = call.values("reads")
    else:
        values = ([call.receiver] if call.receiver is not None else []) + call.arguments.all()
    if call.flag("made") and isinstance(call.receiver, Handle):
        values = [*values, *call.receiver.args.values()]
    values = [*values, *left(run)] if call.flag("gradients") else values
    writes = [b for v in call.values("writes") for b in buffers_in(v)]
    out = [b for v in call.values("out") for b in buffers_in(v)]
    writes.extend(out)
    field = call.row.get("stream")
    stream = None
    if field is not None:
        stream = stream_argument(call)
    if call.flag("cast") and len(values) == 1 and isinstance(values[0], Buffer) and _may_have_the_type(call, values[0]):
        return values[0]
    values = [v for v in values if not any(v is w for w in out)]
    unknown = [v for v in values if isinstance(v, Opaque) and v.buffer is None]
    if call.library == "cupy" and not call.flag("host") and not writes and not any(True for v in values for _ in buffers_in(v)):
        # CuPy computes on the device whatever it is given.
        values = [*values, Buffer(run.storage(Memory.DEVICE, "operand", evidence=Evidence.LITERAL, library="cupy"), type="cupy.ndarray")]
    if call.row.get("scalars") is not None and not run.file.is_cuda:
        numbers_fetched(call)
    waits = call.flag("waits") or _fetches_size(call)
    if waits and call.library == "torch" and not run.file.is_cuda and not any(b.storage.on_host for v in values for b in buffers_in(v)):
        maybe_device_read(run)  # the size of the result comes from wherever the operands are
    if call.flag("compares") and len(values) > 1 and not any(True for v in values for _ in buffers_in(v)):
        return call.opaque()  # of numbers a number
    result = compute(
        run,
        [*values, *writes],
        call.span,
        call.name,
        type=call.text("type"),
        library=call.library if call.library in ("torch", "cupy") and not call.flag("host") else "",
        writes=writes,
        stream=stream,
        waits=waits,
        presume=call.library == "torch",
    )
    if call.library == "torch" and _last_name(call.name) in BACKWARD:
        leave(run, values[0] if values else None, call.span, call.name)
    if isinstance(result, Buffer) and not writes:
        result.storage.fresh = result.storage.fresh or call.library == "torch"
        result.storage.counted = result.storage.counted or becomes_whole(call)
    return _result(call, result, values, unknown)


def _may_have_the_type(call: Call, buffer: Buffer) -> bool:
    """Whether a cast may be nothing: what is still on its way to the host is read by whoever looks at the numbers."""
    return buffer.storage.on_host and "dtype" not in buffer.attrs and call.run.machine.in_flight(buffer) is not None


def _fetches_size(call: Call) -> bool:
    """Whether the size of the result must be fetched, because it was not given."""
    if call.row.get("waits_without") is None or call.arguments.open or call.value("waits_without") is not None:
        return False
    return call.row.get("waits_on") is None or isinstance(call.value("waits_on"), Buffer)


def _result(call: Call, result: Value, values: list[Value], unknown: Sequence[Value]) -> Value:
    kind = call.text("result", "buffer")
    if isinstance(result, Buffer) and any(not (isinstance(v, Const) and v.value is None) for v in call.values("out")):
        return result  # ``out=``: the memory that was given, whatever it is
    if call.flag("host") and kind == "buffer" and isinstance(result, Buffer) and result.storage.memory is Memory.UNKNOWN:
        # NumPy returns new arrays, and they are pageable.
        result.storage.memory = Memory.PAGEABLE
        result.storage.trail = (Step("new array in pageable host memory", call.span),)
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
            result.storage.trail = (Step("new array in pageable host memory", call.span),)
        else:
            result.storage.memory = Memory.UNKNOWN
    if isinstance(result, Buffer) and (kind == "sequence" or any(isinstance(v, Const) and v.value is True for v in call.values("several"))):
        return Series(None, element=result, name=f"{call.name}{call.run.visit_key(call.site.node)}")
    return result


def in_place(run: Run, target: Buffer, value: Value, span: Span, name: str) -> None:
    """``target op= value``: a launch where the target is, or a host access."""
    compute(run, (target, value), span, name, writes=(target,))


def assign_elements(run: Run, target: Buffer, value: Value, span: Span) -> None:
    """``target[part] = value``."""
    if target.storage.on_device:
        compute(run, (target, value), span, "indexing", writes=(target,))
        return
    if not target.storage.on_host and any(buffer.storage.on_device for buffer in buffers_in(value)):
        # It is written where it is: on the device, or on the host, which then waits for the values.
        compute(run, (value,), span, "indexing", writes=(target,))
        maybe_device_read(run)
        return
    read_values(run, [value], span, "assignment")
    host_write(run, target, span, "assignment")


def _write(call: Call) -> Value:
    run = call.run
    target = buffer_of(run, call.value("of"))
    for value in call.values("reads"):
        buffer = buffer_of(run, value) if run.file.is_cuda else None
        read_values(run, [buffer or value], call.span, call.name)
    if target is not None and call.row.get("count") is not None:
        resized(target.storage, call.value("count"))
    if target is not None:
        if target.storage.on_device and not run.file.is_cuda:
            assign_elements(run, target, Const(0), call.span)
        else:
            host_write(run, target, call.span, call.name)
    return call.receiver or (call.arguments.positional[0] if call.arguments.positional else Const(None))


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "compute": _compute,
    "write": _write,
}
