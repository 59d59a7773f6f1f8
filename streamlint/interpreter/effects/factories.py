"""Factories: buffers that a call makes, where they are, and what fills them."""

from __future__ import annotations

from collections.abc import Callable

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Step
from streamlint.interpreter.addresses import is_address
from streamlint.interpreter.chosen import is_chosen_here
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.copies import issue_copy
from streamlint.interpreter.effects.devices import as_device, asked_device, is_scalar_type
from streamlint.interpreter.effects.host import maybe_device_read, read_values
from streamlint.interpreter.effects.memory import is_raw, made_here
from streamlint.interpreter.effects.sizes import measure
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.handed import from_outside
from streamlint.interpreter.opaque import opaque_call
from streamlint.interpreter.run import family
from streamlint.interpreter.values import Buffer, Const, Device, Handle, LibraryName, Opaque, Series, Value
from streamlint.operations import Direction, Evidence, Memory

_GENERATORS = ("at::Generator", "torch::Generator")


def _factory(call: Call) -> Value:
    made = _made(call)
    place = call.text("result", "buffer")
    if place == "buffer":
        return made
    rest = call.opaque()
    return Series([made, rest] if place == "first" else [rest, made], kind="tuple")


def _made(call: Call) -> Value:
    run = call.run
    device = _factory_device(call)
    memory, evidence = _factory_memory(call, device)
    alias = _aliased(call, memory)
    if alias is not None:
        return alias
    storage = run.storage(memory, f"{call.name}{run.visit_key(call.site.node)}", evidence=evidence, library=call.library)
    measure(call, storage)
    storage.trail = (made_here(call, memory),)
    storage.for_device = _handed_device(call)
    storage.by_choice = storage.for_device is not None and (device is None or device.space == "host")
    result = Buffer(storage, type=call.text("type", run.file.tensor_type))
    if isinstance(kind := call.value("dtype"), LibraryName):
        result.attrs["dtype"] = kind
    data = call.value("data")
    if memory is Memory.UNKNOWN and data is None and _is_filled(call):
        stream = run.stream_of("torch")
        filling = ops.Launch(call.span, "torch", call.name, stream=stream, kind="compute", assumed=True)
        storage.made = run.machine.presume_work(filling, stream)
    away = (device is not None and device.space != "host") or (device is None and memory is Memory.DEVICE)
    from_host = data is not None and (not isinstance(data, Buffer) or data.storage.on_host)
    if from_host and memory is not Memory.PINNED and away and call.library == "torch":
        maybe_device_read(run)  # the host waits for the copy, and so for what stands before it
    given = data.items if isinstance(data, Series) and data.items else [data] if data is not None else []
    storage.addresses = tuple(item for item in given if isinstance(item, Buffer) and is_address(item))
    if isinstance(data, Buffer | Series) and not storage.addresses:
        read_values(run, [data], call.span, call.name, wait=memory is not Memory.DEVICE)
    if memory is Memory.DEVICE and call.library == "torch" and _is_uploaded(call, data):
        _upload(call, result)
    if is_raw(call) and memory in (Memory.DEVICE, Memory.PINNED, Memory.MANAGED):
        storage.raw = True
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=memory, nbytes=storage.nbytes, buffer=result))
    elif memory is Memory.PINNED and call.library == "torch":
        alloc = ops.Alloc(call.span, call.library, call.name, memory=memory, nbytes=storage.nbytes, cached=True, buffer=result)
        run.machine.alloc(alloc)
    if memory is Memory.DEVICE and "empty" not in call.name and data is None and call.library in ("torch", "cupy"):
        run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream_argument(call), writes=(result,), kind="compute"))
    if memory is Memory.DEVICE and "empty" in call.name and data is None and not is_raw(call) and not run.context.setup:
        pool = run.stream_of(family(call.library)) if call.library in ("torch", "cupy") else None
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=memory, cached=True, stream=pool, buffer=result))
    if memory is Memory.DEVICE:
        if not run.file.is_cuda:
            run.machine.note(ops.Touch(call.span, call.library, call.name, evidence=evidence))
        storage.stream = run.stream_of(family(call.library))
    return result


def _is_uploaded(call: Call, data: Value | None) -> bool:
    """Whether a new tensor's numbers are copied to the device. In C++ a list is, and one number is filled in on the device."""
    if call.run.file.is_cuda:
        return isinstance(data, Series | Buffer) and _is_from_host(data)
    return bool(call.run.machine.captures.active) and _is_from_host(data)


def _is_from_host(data: Value | None) -> bool:
    """Whether a tensor is made of what is on the host for sure: numbers, a list without tensors in it, memory of the host."""
    if isinstance(data, Series):
        return all(_is_from_host(item) or isinstance(item, Opaque) for item in data.items or ())
    return isinstance(data, Const) or (isinstance(data, Buffer) and data.storage.on_host)


def _upload(call: Call, result: Buffer) -> None:
    """``torch.tensor(data, device="cuda")`` is made in pageable memory and copied, and the host waits: no capture takes that."""
    source = Buffer(call.run.storage(Memory.PAGEABLE, "literal", small=True, trail=(Step("created on the host here", call.span),)))
    stream, evidence = stream_argument(call), result.storage.evidence
    issue_copy(call, result, source, Direction.H2D, asynchronous=False, stream=stream, evidence=evidence)


def _factory_device(call: Call) -> Device | None:
    value = call.value("device")
    if value is None and call.row.get("device") is not None:
        value = next((v for v in call.values("device") if as_device(call.run, v) is not None and not _is_number(call, v)), None)
    if call.run.file.is_cuda and value is not None and is_scalar_type(value):
        return None
    return asked_device(call.run, value) if value is not None and not (isinstance(value, Const) and value.value is None) else None


def _handed_device(call: Call) -> tuple[str, str] | None:
    """The function at hand, and its parameter that says the device."""
    node, function = call.site.node, call.run.frames[-1].function
    given = p.argument(node, None, "device") if isinstance(node, p.Call) else None
    if not isinstance(given, p.Name) or function is None or all(param.name != given.id for param in function.params):
        return None
    return function.qualname, given.id


def _is_put(call: Call) -> bool:
    """Whether a device is named that nothing is known of: ``device=x.device``."""
    value = call.value("device") if call.row.get("device") is not None else None
    return value is not None and not isinstance(value, Const) and not (isinstance(value, Device) and value.space in ("host", "other"))


def _is_filled(call: Call) -> bool:
    """Whether PyTorch fills the new tensor where a device is named, or another tensor is, of which nothing is known."""
    if call.library != "torch" or call.run.file.is_cuda or "empty" in call.name:
        return False
    like = call.value("like") if call.row.get("like") is not None else None
    return _is_put(call) if like is None else from_outside([like])


def _factory_memory(call: Call, device: Device | None) -> tuple[Memory, Evidence]:
    space = call.text("space", "argument")
    pinned = call.switch("pin") if call.row.get("pin") is not None else False
    if pinned is False and isinstance(call.site.node, p.Call):
        given = p.argument(call.site.node, None, "pin_memory")
        pinned = None if given is not None and not is_chosen_here(call.run, given) else False
    stated = call.text("memory")
    if space == "device":
        return Memory.DEVICE, Evidence.LITERAL
    if space == "managed":
        return Memory.MANAGED, Evidence.LITERAL
    if device is not None:
        if device.space == "device":
            return Memory.DEVICE, device.evidence
        if device.space != "host":
            return Memory.UNKNOWN, Evidence.NONE
        if device.pinned:
            return Memory.PINNED, Evidence.NONE
    elif space == "like":
        like = call.value("like")
        if isinstance(like, Buffer) and not like.storage.on_host:
            return like.storage.memory, like.storage.evidence
        if not isinstance(like, Buffer):
            return Memory.UNKNOWN, Evidence.NONE
    elif space == "argument" and call.arguments.open:
        return Memory.UNKNOWN, Evidence.NONE
    if not call.run.file.is_cuda and call.name == "torch.tensor" and device is None and _may_be_scalar(call.value("data")):
        return Memory.UNKNOWN, Evidence.NONE  # a number, a list, an array: its size is not known
    if call.run.file.is_cuda and device is None and any(map(_may_name_device, call.arguments.positional[1:])):
        return Memory.UNKNOWN, Evidence.NONE  # tensor options that are not followed
    if pinned is None:
        return Memory.UNKNOWN, Evidence.NONE  # pinned when possible
    if pinned:
        return Memory.PINNED, Evidence.NONE
    return Memory(stated) if stated else Memory.PAGEABLE, Evidence.NONE


def _may_name_device(value: Value) -> bool:
    """C++: whether tensor options may say where a tensor is. Such as were followed from where they were made, and a type alone, do not."""
    if isinstance(value, Handle) and value.type == "at::TensorOptions":
        return any(map(_may_name_device, value.args.values()))
    return isinstance(value, Opaque | Handle) and not is_scalar_type(value) and not _is_generator(value)


def _is_number(call: Call, value: Value) -> bool:
    """C++: a number, or what random numbers come from, among arguments of which any may name a device."""
    return call.run.file.is_cuda and (isinstance(value, Const) or _is_generator(value))


def _is_generator(value: Value) -> bool:
    """C++: what random numbers come from."""
    return isinstance(value, Handle) and value.type in _GENERATORS


def _may_be_scalar(value: Value | None) -> bool:
    """An unknown value, or one computed from unknown values."""
    return isinstance(value, Opaque) or (isinstance(value, Buffer) and value.storage.memory is Memory.UNKNOWN and not value.storage.host)


def _aliased(call: Call, memory: Memory) -> Buffer | None:
    """``torch.from_numpy(x)``: the same memory under another type."""
    if not call.flag("alias"):
        return None
    data = call.value("data")
    node = call.site.node
    if isinstance(node, p.Call) and node.args and _is_size(node.args[0].value):
        return None
    if isinstance(data, Opaque) and memory is not Memory.DEVICE:
        # Memory from out of view: pageable, pinned or registered, nobody knows.
        storage = call.run.storage(Memory.UNKNOWN, data.term, trail=(made_here(call, Memory.UNKNOWN),), library=call.library)
        storage.host = call.text("space") == "host"
        return Buffer(storage, type=call.text("type", call.run.file.tensor_type))
    if not isinstance(data, Buffer):
        return None
    if memory is Memory.DEVICE and not data.storage.on_device:
        return None
    return Buffer(data.storage, data.part, call.text("type", data.type), data.gapped, data.strided)


def _is_size(node: p.Expression) -> bool:
    """Whether an expression is a number that a tensor's shape or a container's length gives."""
    if isinstance(node, p.Call):
        if isinstance(node.function, p.Attr):
            return node.function.name in ("numel", "nelement", "dim") or (node.function.name == "size" and bool(node.args))
        return isinstance(node.function, p.Name) and node.function.id == "len"
    return isinstance(node, p.Index) and isinstance(node.value, p.Attr) and node.value.name == "shape"


def _load(call: Call) -> Value:
    """``torch.load(path, map_location="cuda")``: whatever it is, its tensors are there."""
    device = _factory_device(call)
    if device is None or device.space != "device":
        return opaque_call(call.run, call.name, None, call.arguments, call.site)
    storage = call.run.storage(
        Memory.DEVICE, f"{call.name}{call.run.visit_key(call.site.node)}", evidence=device.evidence, library=call.library
    )
    storage.trail = (Step("loaded onto the device here", call.span),)
    return Buffer(storage, type=call.run.file.tensor_type, leaves={})


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "factory": _factory,
    "load": _load,
}
