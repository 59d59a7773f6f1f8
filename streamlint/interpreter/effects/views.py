"""Views: the same memory seen in another way, and the host copies that are made where that cannot be."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import operations as ops
from streamlint.findings import Step
from streamlint.interpreter import weights
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.devices import as_device
from streamlint.interpreter.effects.host import read_values
from streamlint.interpreter.interop import handed_over
from streamlint.interpreter.lifetimes import moved
from streamlint.interpreter.run import family
from streamlint.interpreter.taken_apart import Pairs, Parts, members_of
from streamlint.interpreter.values import Buffer, Const, Device, Handle, Instance, LibraryName, Opaque, Series, Storage, Table, Value
from streamlint.operations import Evidence, Memory


def _along_first_axis(call: Call, buffer: Buffer) -> bool:
    """Whether a part is a range of the first axis of a tensor without gaps: then it has none either."""
    axis, step = call.value("axis"), call.value("step")
    every = step is None or (isinstance(step, Const) and step.value == 1)
    return isinstance(axis, Const) and axis.value == 0 and every and not buffer.strided


def _repeats(call: Call) -> bool:
    """Whether ``expand`` may give an axis a new length: 1 and -1 never do."""
    sizes = [size for value in call.values("sizes") for size in (value.items or [value] if isinstance(value, Series) else [value])]
    return not sizes or not all(isinstance(size, Const) and size.value in (1, -1) for size in sizes)


def _view(call: Call) -> Value:

    run = call.run
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    buffer = _parameters(call, value) or buffer_of(run, value)
    if buffer is None and isinstance(value, Handle) and call.library == "python" and call.flag("host_access"):
        return _new_array(call)
    if buffer is None:
        return _out_of_view(call, value)
    if call.text("type").startswith("numpy.") and buffer.storage.memory is Memory.UNKNOWN and isinstance(value, Opaque):
        buffer.storage.host = True  # an array of NumPy's is on the host, pinned or not
    if call.text("shares"):
        handed_over(run, buffer, family(call.library), call.text("shares"))
    part = call.text("part", "whole")
    kind = call.text("type", buffer.type)
    if part == "contiguous":
        return _contiguous(call, buffer)
    if part == "elements":
        if buffer.leaves is not None:
            return buffer
        return Series(None, name=f"{buffer.term}.{call.name}", made=Parts(buffer))
    if part == "members":
        return Series(None, name=f"{buffer.term}.{call.name}", made=members_of(run, buffer))
    if part == "named":
        return Series(None, name=f"{buffer.term}.{call.name}", made=Pairs(run, members_of(run, buffer)))
    if part == "mapping":
        return Table(members_of(run, buffer), complete=False)
    result = Buffer(
        buffer.storage,
        buffer.part,
        kind,
        buffer.gapped or (part == "some" and not _along_first_axis(call, buffer)) or (part == "repeated" and _repeats(call)),
        buffer.strided or part == "strided",
        leaves=buffer.leaves,
        attrs={},
    )
    if call.flag("host_access"):
        return _host_view(call, buffer, result)
    return result


def _out_of_view(call: Call, value: Value | None) -> Value:
    """What an object gives that holds memory nobody in view has seen: the parameters of a module that was not moved."""
    made = call.opaque(*([value] if value is not None else []))
    if isinstance(value, Handle | Instance):
        weights.listed(value, call.site.name, made)
    return made


def _new_array(call: Call) -> Value:
    """``np.asarray(image)``: an object that is no array gives its numbers to a new one."""
    storage = call.run.storage(Memory.PAGEABLE, f"{call.name}{call.run.visit_key(call.site.node)}", library="numpy")
    storage.trail = (Step("new array in pageable host memory", call.span),)
    return Buffer(storage, type="numpy.ndarray")


def _parameters(call: Call, value: Value | None) -> Buffer | None:
    """What a module holds that was moved to a device or to the host in view."""
    home = value.attrs.get("(device)") if isinstance(value, Handle | Instance) else None
    if value is None or not isinstance(home, Device) or home.space not in ("device", "host") or call.run.file.is_cuda:
        return None
    kind = "buffers" if call.name.endswith("buffers") else "parameters"
    if home.space == "device":
        storage = Storage(Memory.DEVICE, kind, evidence=Evidence(max(home.evidence, Evidence.DERIVED)), library="torch")
    else:
        storage = Storage(Memory.UNKNOWN, kind, host=True, library="torch")
    made = call.run.remembered(f"{kind} of {value.term} in {home.space}", lambda: Buffer(storage, type="torch.Tensor"))
    return made if isinstance(made, Buffer) else None


def _host_view(call: Call, buffer: Buffer, result: Buffer) -> Value:
    """``t.numpy()``, ``np.asarray(t)``: a host view; the first use of it is a read of the memory, announced here."""

    run = call.run
    if buffer.storage.on_device:
        if call.library == "numpy":
            read_values(run, [buffer], call.span, call.name)
        return Buffer(run.storage(Memory.PAGEABLE, f"{call.name}{run.visit_key(call.site.node)}", library="numpy"), type="numpy.ndarray")
    if run.machine.in_flight(buffer) is not None:
        result.access = ops.HostRead(call.span, call.library, call.name, buffer=buffer)
    elif buffer.access is not None:
        result.access = buffer.access
    return result


def _contiguous(call: Call, buffer: Buffer) -> Value:
    if buffer.storage.on_host and (buffer.gapped or buffer.strided):
        read_values(call.run, [buffer], call.span, call.name)
        old = buffer.storage
        storage = call.run.storage(Memory.PAGEABLE, f"{old.name}.contiguous", nbytes=old.nbytes, small=old.small, library=old.library)
        storage.counted = old.counted
        storage.trail = (*buffer.storage.trail, Step("contiguous() copies a strided view into new pageable memory here", call.span))
        return Buffer(storage, type=buffer.type)
    same = Buffer(buffer.storage, buffer.part, buffer.type)
    return _host_view(call, buffer, same) if call.flag("host_access") and buffer.storage.on_host else same


def _pin(call: Call) -> Value:

    value = call.value("of") if call.row.get("of") is not None else call.receiver
    buffer = buffer_of(call.run, value)
    if buffer is None:
        return call.opaque()

    read_values(call.run, [buffer], call.span, call.name)
    if call.run.context.beside is not None:
        call.run.machine.note(ops.Touch(call.span, call.library, call.name, evidence=ops.Evidence.LITERAL))
    old = buffer.storage
    storage = call.run.storage(Memory.PINNED, f"{old.name}.pinned", nbytes=old.nbytes, small=old.small, library=old.library)
    storage.trail = (Step("pinned here", call.span),)
    result = Buffer(storage, type=buffer.type, leaves={} if buffer.leaves is not None else None)
    if not buffer.storage.on_device and old.memory is not Memory.PINNED:
        # Where the tensor was made, if in this call and of nothing older.
        made = old.trail if old.made_in == call.run.context.calls and len(old.trail) == 1 else ()
        alloc = ops.Alloc(call.span, call.library, call.name, memory=Memory.PINNED, cached=True, buffer=result, trail=made)
        call.run.machine.alloc(alloc)
    return result


def _same(call: Call) -> Value:
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if value is None:
        return call.opaque()
    if call.row.get("into") is not None:
        return call.store(value)
    if call.flag("moves") and call.run.context.setup and isinstance(value, Buffer):
        return call.run.unknown_buffer(f"{call.name}{call.run.visit_key(call.site.node)}", value.type)
    return value


def _namespace(call: Call) -> Value:
    """``torch.get_device_module("cuda")`` is ``torch.cuda``; of a device that is not known it is nothing else that matters here."""
    given = as_device(call.run, call.value("of"))
    return LibraryName(call.text("name")) if given is None or given.space in ("device", "unknown") else call.opaque()


def _move(call: Call) -> Value:
    value = call.value("of")
    if value is None:
        return call.opaque()
    return moved(value)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "view": _view,
    "pin": _pin,
    "same": _same,
    "namespace": _namespace,
    "move": _move,
}
