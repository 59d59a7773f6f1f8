"""Making, viewing and moving buffers: factories, views, transfers, copies."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from streamlint import operations as ops
from streamlint.cuda_model import STAGED_BYTES
from streamlint.findings import Step
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import (
    Buffer,
    ClassValue,
    Const,
    Device,
    FunctionValue,
    Handle,
    Instance,
    LibraryName,
    Loader,
    Opaque,
    Series,
    Storage,
    Stream,
    Value,
)
from streamlint.models.vocabulary import Selector
from streamlint.operations import Direction, Evidence, Memory

if TYPE_CHECKING:
    from streamlint.interpreter.effects import Call

_WORD_BYTES = 8  # the widest element that libraries make by default


# --- devices --------------------------------------------------------------------------------------------------------------------------


def as_device(run: Run, value: Value | None) -> Device | None:
    """A value used as a device; None if it does not look like one."""
    if isinstance(value, Device):
        return value
    if isinstance(value, Const):
        if isinstance(value.value, str):
            return _named_device(value.value)
        if isinstance(value.value, int) and not isinstance(value.value, bool):
            return Device("device", Evidence.LITERAL, f"cuda:{value.value}")
        return None
    if isinstance(value, Opaque):
        if value.default is not None:
            known = as_device(run, value.default)
            if known is not None and known.space == "device":
                return Device("device", Evidence.DEFAULT, value.term)
        if run.settings.target_device == "cuda" and "device" in value.term:
            return Device("device", Evidence.DEFAULT, value.term)
        return Device("unknown", text=value.term)
    return None


def _named_device(text: str) -> Device | None:
    kind = text.partition(":")[0]
    if kind in ("cuda", "gpu"):
        return Device("device", Evidence.LITERAL, text)
    if kind == "cpu":
        return Device("host", Evidence.LITERAL, text)
    if kind in ("mps", "xpu", "hpu", "meta", "npu", "mlu", "musa", "tpu", "xla", "privateuseone", "ipu"):
        return Device("other", text=text)
    return None


def looks_like_dtype(value: Value | None) -> bool:
    if isinstance(value, LibraryName):
        last = value.name.rpartition(".")[2]
        return value.name.startswith(("torch.", "numpy.", "cupy.")) and last.rstrip("0123456789_") in {
            "float",
            "half",
            "double",
            "int",
            "long",
            "bool",
            "uint",
            "bfloat",
            "complex",
            "short",
            "char",
            "byte",
        }
    return isinstance(value, Opaque) and value.name.endswith(".dtype")


# --- sizes ----------------------------------------------------------------------------------------------------------------------------


def elements(values: list[Value]) -> int | None:
    """The number of elements that a shape names, where every extent is a number."""
    total = 1
    for value in values:
        if isinstance(value, Series) and value.items is not None and value.name != "open":
            inner = elements(value.items)
            if inner is None:
                return None
            total *= inner
        elif isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
            total *= max(value.value, 0)
        else:
            return None
    return total


def is_small(nbytes: int | None) -> bool:
    return nbytes is not None and nbytes <= STAGED_BYTES


def _size_of_data(value: Value | None) -> tuple[int | None, bool]:
    """Bytes of literal data, and whether it is small: a number, a display, a list of one number an item."""
    if isinstance(value, Const) and isinstance(value.value, int | float | bool):
        return _WORD_BYTES, True
    if isinstance(value, Series):
        if value.items is not None and not any(isinstance(v, Buffer) for v in value.items):
            known = None if value.name == "open" else elements_of_display(value)
            # A list in Python source, or one built item by item: lengths, indices, ids.
            return (known * _WORD_BYTES if known is not None else None), True
        return None, value.items is None
    if isinstance(value, Opaque):
        return None, False
    return None, False


def elements_of_display(value: Series) -> int:
    return sum(elements_of_display(item) if isinstance(item, Series) and item.items is not None else 1 for item in value.items or [])


# --- factories ------------------------------------------------------------------------------------------------------------------------


def _factory(call: Call) -> Value:
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    device = _factory_device(call)
    memory, evidence = _factory_memory(call, device)
    alias = _aliased(call, memory)
    if alias is not None:
        return alias
    storage = run.storage(memory, f"{call.name}{run.visit_key(call.site.node)}", evidence=evidence, library=call.library)
    _size(call, storage)
    storage.trail = (_made_here(call, memory),)
    result = Buffer(storage, type=call.text("type", "torch.Tensor"))
    data = call.value("data")
    if isinstance(data, Buffer | Series):
        _read_data(call, data, memory, result)
    if _is_raw(call) and memory in (Memory.DEVICE, Memory.PINNED, Memory.MANAGED):
        storage.raw = True
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=memory, nbytes=storage.nbytes, buffer=result))
    if memory is Memory.DEVICE and "empty" not in call.name and data is None and call.library in ("torch", "cupy"):
        run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream_argument(call), writes=(result,), kind="compute"))
    if memory is Memory.DEVICE:
        storage.stream = run.stream_of("torch" if call.library.startswith("torch") else call.library)
    return result


def _is_raw(call: Call) -> bool:
    """Whether a buffer comes from the driver each time: a library without a pool, or one whose pool was switched off."""
    return call.run.file.settings.get(call.library, call.flag("raw"))


def _may_be_scalar(value: Value | None) -> bool:
    """An unknown value, or one computed from unknown values."""
    return isinstance(value, Opaque) or (isinstance(value, Buffer) and value.storage.memory is Memory.UNKNOWN and not value.storage.host)


def _made_here(call: Call, memory: Memory) -> Step:
    words = {
        Memory.PAGEABLE: "allocated in pageable host memory here",
        Memory.PINNED: "allocated in pinned host memory here",
        Memory.DEVICE: "allocated on the device here",
        Memory.MANAGED: "allocated in managed memory here",
    }
    return Step(words.get(memory, "allocated here"), call.span)


def _factory_device(call: Call) -> Device | None:
    value = call.value("device")
    if value is None and call.row.get("device") is not None:
        value = next((v for v in call.values("device") if as_device(call.run, v) is not None), None)
    return as_device(call.run, value) if value is not None and not (isinstance(value, Const) and value.value is None) else None


def _factory_memory(call: Call, device: Device | None) -> tuple[Memory, Evidence]:
    space = call.text("space", "argument")
    pinned = call.switch("pin") if call.row.get("pin") is not None else False
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
    elif space == "like":
        like = call.value("like")
        if isinstance(like, Buffer) and not like.storage.on_host:
            return like.storage.memory, like.storage.evidence
        if not isinstance(like, Buffer):
            return Memory.UNKNOWN, Evidence.NONE
    elif space == "argument" and call.arguments.open:
        return Memory.UNKNOWN, Evidence.NONE
    if device is None and space == "argument" and call.run.memo.get("default-device") is not None:
        return Memory.UNKNOWN, Evidence.NONE
    if not call.run.file.is_cuda and call.name == "torch.tensor" and device is None and _may_be_scalar(call.value("data")):
        return Memory.UNKNOWN, Evidence.NONE  # a number, a list, an array: its size is not known
    if call.run.file.is_cuda and device is None and any(isinstance(v, Opaque | Handle) for v in call.arguments.positional[1:]):
        return Memory.UNKNOWN, Evidence.NONE  # tensor options that are not followed
    if pinned is None:
        return Memory.UNKNOWN, Evidence.NONE  # pinned when possible
    if pinned:
        return Memory.PINNED, Evidence.NONE
    return Memory(stated) if stated else Memory.PAGEABLE, Evidence.NONE


def _aliased(call: Call, memory: Memory) -> Buffer | None:
    """``torch.from_numpy(x)``: the same memory under another type."""
    if not call.flag("alias"):
        return None
    data = call.value("data")
    if isinstance(data, Opaque) and memory is not Memory.DEVICE:
        # Memory from out of view: pageable, pinned or registered, nobody knows.
        storage = call.run.storage(Memory.UNKNOWN, data.term, trail=(_made_here(call, Memory.UNKNOWN),), library=call.library)
        storage.host = call.text("space") == "host"
        return Buffer(storage, type=call.text("type", "torch.Tensor"))
    if not isinstance(data, Buffer):
        return None
    if memory is Memory.DEVICE and not data.storage.on_device:
        return None
    return Buffer(data.storage, data.part, call.text("type", data.type), data.gapped, data.strided)


def _size(call: Call, storage: Storage) -> None:
    shape = call.values("shape")
    if shape:
        count = elements(shape)
        if count is not None:
            storage.nbytes = count * _item_bytes(call)
            storage.small = is_small(storage.nbytes)
        return
    if call.row.get("like") is not None:
        like = call.value("like")
        if isinstance(like, Buffer) and call.row.get("data") is None:
            storage.nbytes, storage.small = like.storage.nbytes, like.storage.small
            return
    if call.row.get("data") is not None:
        storage.nbytes, storage.small = _size_of_data(call.value("data"))
    elif call.text("type") == "torch.Tensor" and call.row.get("shape") is not None and not call.arguments.open:
        storage.nbytes, storage.small = _WORD_BYTES, True  # torch.empty(()) and friends


def _item_bytes(call: Call) -> int:
    value = call.value("dtype")
    text = value.term if value is not None else ""
    for width, size in (
        ("64", 8),
        ("double", 8),
        ("long", 8),
        ("32", 4),
        ("16", 2),
        ("half", 2),
        ("8", 1),
        ("bool", 1),
        ("float", 4),
        ("int", 4),
    ):
        if width in text:
            return size
    return 4


def _read_data(call: Call, data: Buffer | Series, memory: Memory, result: Buffer) -> None:
    from streamlint.interpreter.effects.host import read_values

    read_values(call.run, [data], call.span, call.name, wait=memory is not Memory.DEVICE)


# --- views ----------------------------------------------------------------------------------------------------------------------------


def _view(call: Call) -> Value:
    from streamlint.interpreter.effects import buffer_of

    run = call.run
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    buffer = buffer_of(run, value)
    if buffer is None:
        return call.opaque(*([value] if value is not None else []))
    part = call.text("part", "whole")
    kind = call.text("type", buffer.type)
    if part == "contiguous":
        return _contiguous(call, buffer)
    if part == "elements":
        if buffer.leaves is not None:
            return buffer
        return Series(None, element=None, name=f"{buffer.term}.{call.name}", made=_Parts(run, buffer))
    result = Buffer(
        buffer.storage,
        buffer.part,
        kind,
        buffer.gapped or part == "some",
        buffer.strided or part == "strided",
        leaves=buffer.leaves,
        attrs={},
    )
    if call.flag("host_access"):
        return _host_view(call, buffer, result)
    return result


class _Parts(dict):  # type: ignore[type-arg]
    """Elements of a tensor that was taken apart: parts of its memory, made when they are asked for."""

    def __init__(self, run: Run, buffer: Buffer) -> None:
        super().__init__()
        self.buffer = buffer

    def __contains__(self, key: object) -> bool:
        return True

    def __getitem__(self, key: str) -> Value:
        return Buffer(self.buffer.storage, (*self.buffer.part, ("i", key)), self.buffer.type)

    def values(self) -> list[Value]:  # type: ignore[override]
        return [self.buffer]


def _host_view(call: Call, buffer: Buffer, result: Buffer) -> Value:
    """``t.numpy()``, ``np.asarray(t)``: a host view; the first use of it is a read of the memory, announced here."""
    from streamlint.interpreter.effects.host import read_values

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
        from streamlint.interpreter.effects.host import read_values

        read_values(call.run, [buffer], call.span, call.name)
        storage = call.run.storage(Memory.PAGEABLE, f"{buffer.storage.name}.contiguous", library=buffer.storage.library)
        storage.trail = (*buffer.storage.trail, Step("copied into new pageable memory here: contiguous() of a strided view", call.span))
        return Buffer(storage, type=buffer.type)
    return Buffer(buffer.storage, buffer.part, buffer.type)


def _pin(call: Call) -> Value:
    from streamlint.interpreter.effects import buffer_of

    value = call.value("of") if call.row.get("of") is not None else call.receiver
    buffer = buffer_of(call.run, value)
    if buffer is None:
        return call.opaque()
    from streamlint.interpreter.effects.host import read_values

    read_values(call.run, [buffer], call.span, call.name)
    old = buffer.storage
    storage = call.run.storage(Memory.PINNED, f"{old.name}.pinned", nbytes=old.nbytes, small=old.small, library=old.library)
    storage.trail = (Step("pinned here", call.span),)
    return Buffer(storage, type=buffer.type, leaves={} if buffer.leaves is not None else None)


# --- transfers ------------------------------------------------------------------------------------------------------------------------


def _target(call: Call) -> Device | None:
    """Where a transfer goes; None if it changes no place (``x.to(dtype)``)."""
    to = call.row.get("to", "argument")
    if to == "device":
        given = next((d for v in call.values("device") if (d := as_device(call.run, v)) is not None), None)
        return given if given is not None and given.space == "device" else Device("device", Evidence.LITERAL)
    if to == "host":
        return Device("host", Evidence.LITERAL)
    candidates = call.values("device") if call.row.get("device") is not None else call.arguments.positional
    for value in candidates:
        if looks_like_dtype(value):
            continue
        if isinstance(value, Buffer):
            # Tensor.to(other): the other's place.
            if value.storage.on_device:
                return Device("device", value.storage.evidence)
            return Device("host", Evidence.DERIVED) if value.storage.on_host else Device("unknown", text=value.term)
        found = as_device(call.run, value)
        if found is not None and not (isinstance(value, Const) and isinstance(value.value, bool)):
            return found
    return None


def _transfer(call: Call) -> Value:
    from streamlint.interpreter.effects import buffer_of
    from streamlint.interpreter.objects import library_bases

    run = call.run
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if isinstance(value, Handle | Instance) and (not isinstance(value, Instance) or library_bases(run, value.definition, value.file)):
        return move_module(call, value)
    if isinstance(value, Series) and call.library != "torch":
        value = _gathered(call, value)
    source = buffer_of(run, value)
    if source is None and isinstance(value, Const | Series):
        storage = run.storage(Memory.PAGEABLE, "literal", small=True, trail=(Step("made on the host here", call.span),))
        source = Buffer(storage, type="numpy.ndarray")
    if source is None:
        return call.opaque(*([value] if value is not None else []))
    target = _target(call)
    if target is None:
        return cast(call, source)
    return move(call, source, target)


def _gathered(call: Call, value: Series) -> Value:
    held = next((v for v in value.all() if isinstance(v, Buffer)), None)
    return held if held is not None else value


def cast(call: Call, source: Buffer) -> Value:
    """``x.to(dtype)``, ``x.float()``: a new value in the same place; on the host it is pageable."""
    from streamlint.interpreter.effects.work import compute

    if call.run.machine.in_flight(source) is not None:
        return source  # of the same type already, as far as is known: then nothing is read
    return compute(call.run, (source,), call.span, call.name, type=source.type, library=call.library)


def move(call: Call, source: Buffer, target: Device) -> Value:
    """A transfer of a buffer to a device or to the host."""
    if target.space == "device":
        return _to_device(call, source, target)
    if target.space == "host":
        return _to_host(call, source)
    result = call.run.unknown_buffer(f"{call.name}{call.run.visit_key(call.site.node)}", call.text("type", source.type))
    result.leaves = {} if source.leaves is not None else None
    if source.storage.on_device:
        result.storage.evidence = Evidence.DERIVED
    return result


def _to_device(call: Call, source: Buffer, target: Device) -> Value:
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    if source.storage.on_device:
        return Buffer(source.storage, source.part, call.text("type", source.type), source.gapped, source.strided, leaves=source.leaves)
    asynchronous = call.switch("asynchronous")
    storage = run.storage(Memory.DEVICE, f"{call.name}{run.visit_key(call.site.node)}", evidence=target.evidence, library=call.library)
    storage.trail = (Step("moved to the device here", call.span),)
    storage.nbytes, storage.small = source.storage.nbytes, source.storage.small
    result = Buffer(storage, type=call.text("type", source.type), leaves={} if source.leaves is not None else None)
    out = call.value("out")
    if isinstance(out, Buffer):
        result = out
    elif call.flag("raw") and _is_raw(call):
        storage.raw = True
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=Memory.DEVICE, buffer=result))
    if call.flag("staged") and source.storage.memory is not Memory.PINNED:
        # The library copies into its own pinned memory first: the host reads, nothing waits.
        from streamlint.interpreter.effects.host import read_values

        read_values(run, [source], call.span, call.name)
        run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream_argument(call), writes=(result,), kind="upload"))
        return result
    stream = stream_argument(call)
    issue_copy(
        call, result, source, Direction.H2D, asynchronous=_asked(call, asynchronous, stream), stream=stream, evidence=target.evidence
    )
    return result


def _asked(call: Call, asynchronous: bool | None, stream: Stream | None) -> bool:
    """Whether a copy was asked to be asynchronous. numba: it is wherever a stream other than 0 is given."""
    if asynchronous is True and call.library == "numba":
        return stream is not None and stream.kind != "null"
    return asynchronous is True


def _to_host(call: Call, source: Buffer) -> Value:
    from streamlint.interpreter.effects import buffer_of
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    if source.storage.on_host:
        return Buffer(source.storage, source.part, call.text("type", source.type), source.gapped, source.strided, leaves=source.leaves)
    if source.storage.memory is Memory.UNKNOWN and call.library in ("cupy", "numba"):
        source.storage.memory, source.storage.evidence = Memory.DEVICE, Evidence.DERIVED  # their arrays are nowhere else
    asynchronous = call.switch("asynchronous")
    stream = stream_argument(call)
    asked = _asked(call, asynchronous, stream)
    rule = call.text("host_memory", "pageable")
    pinned = rule == "pinned" or (rule == "pinned-if-asynchronous" and asked)
    memory = Memory.PINNED if pinned else Memory.PAGEABLE
    if rule == "pinned-if-asynchronous" and asynchronous is None:
        memory = Memory.UNKNOWN
    storage = run.storage(memory, f"{call.name}{run.visit_key(call.site.node)}", library=call.library)
    storage.trail = (Step("copied to new pinned host memory here" if pinned else "copied to new pageable host memory here", call.span),)
    storage.nbytes, storage.small = source.storage.nbytes, source.storage.small
    result = Buffer(storage, type=call.text("type", source.type), leaves={} if source.leaves is not None else None)
    out = call.value("out")
    given = buffer_of(run, out, "numpy.ndarray") if out is not None and not (isinstance(out, Const) and out.value is None) else None
    if given is not None:
        result = given
    evidence = source.storage.evidence if source.storage.on_device else (Evidence.SCOPE if asked else Evidence.NONE)
    issue_copy(call, result, source, Direction.D2H, asynchronous=asked, stream=stream, evidence=evidence)
    return result


def issue_copy(
    call: Call,
    dst: Buffer | None,
    src: Buffer | None,
    direction: Direction,
    *,
    asynchronous: bool,
    stream: Stream | None,
    evidence: Evidence,
    nbytes: int | None = None,
) -> None:
    """Put a copy on the path, with what is known of its host side."""
    host = src if direction is Direction.H2D else dst if direction is Direction.D2H else None
    storage = host.storage if host is not None else None
    small = storage is not None and storage.small
    size = nbytes if nbytes is not None else (storage.nbytes if storage is not None and not host_part(host) else None)
    gapped = host is not None and host.gapped
    memory = storage.memory if storage is not None else Memory.UNKNOWN
    # A gapped source is made contiguous in new pageable memory first (Copy.cu).
    effective = Memory.PAGEABLE if gapped and memory is Memory.PINNED and call.library.startswith("torch") else memory
    if memory is Memory.DEVICE or memory is Memory.MANAGED:
        effective = Memory.UNKNOWN
    operation = ops.Copy(
        call.span,
        call.library,
        call.name,
        dst=dst,
        src=src,
        stream=stream,
        direction=direction,
        asked_async=asynchronous,
        nbytes=size,
        known_small=small or is_small(size),
        evidence=evidence,
        host_memory=effective,
        host_gapped=gapped,
        host_made_in=storage.made_in if storage is not None else None,
        trail=storage.trail if storage is not None else (),
    )
    call.run.machine.copy(operation)
    call.run.coverage.copies[(call.span, call.name)] = storage is not None and memory is not Memory.UNKNOWN


def host_part(buffer: Buffer | None) -> bool:
    return buffer is not None and bool(buffer.part)


def move_module(call: Call, value: Handle | Instance) -> Value:
    """``module.to(device)``: its parameters move; the module is returned."""
    target = _target(call)
    if target is None:
        return value
    before = value.attrs.get("(device)")
    value.attrs["(device)"] = target
    if target.space == "device" and before is None and isinstance(value, Handle) and value.made and call.switch("asynchronous"):
        _upload_parameters(call, value, target)
    return value


def _upload_parameters(call: Call, module: Handle, target: Device) -> None:
    """The parameters of a module that was made in view are in pageable memory."""
    from streamlint.interpreter.effects.streams import stream_argument

    sizes = [v.value for v in module.args.values() if isinstance(v, Const) and isinstance(v.value, int) and not isinstance(v.value, bool)]
    small = bool(sizes) and is_small(4 * math.prod(max(size, 1) for size in sizes))
    trail = tuple(Step("a module's parameters are made in pageable host memory here", step.span) for step in module.trail)
    source = Buffer(call.run.storage(Memory.PAGEABLE, "parameters", small=small, trail=trail))
    result = Buffer(call.run.storage(Memory.DEVICE, "parameters", evidence=target.evidence))
    issue_copy(call, result, source, Direction.H2D, asynchronous=True, stream=stream_argument(call), evidence=target.evidence)


def _module_to(call: Call) -> Value:
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if isinstance(value, Handle | Instance):
        return move_module(call, value)
    return _transfer(call)


# --- copies ---------------------------------------------------------------------------------------------------------------------------


def _copy(call: Call) -> Value:
    from streamlint.interpreter.effects.streams import stream_argument

    run = call.run
    dst = _side(call, "dst")
    src = _side(call, "src")
    direction = _direction(call, dst, src)
    _settle_place(dst, src, direction)
    if direction is Direction.H2H:
        _host_copy(call, dst, src)
        return call.receiver or call.status()
    stream = stream_argument(call)
    asynchronous = call.switch("asynchronous")
    nbytes = _bytes(call)
    on_device = src if direction is Direction.D2H else dst
    evidence = on_device.storage.evidence if on_device is not None and on_device.storage.on_device else Evidence.NONE
    if run.file.is_cuda or call.library in ("cuda_python", "cupy", "numba"):
        evidence = Evidence.LITERAL
    issue_copy(call, dst, src, direction, asynchronous=_asked(call, asynchronous, stream), stream=stream, evidence=evidence, nbytes=nbytes)
    return call.receiver if call.receiver is not None and not run.file.is_cuda else call.status()


def _side(call: Call, name: str) -> Buffer | None:
    from streamlint.interpreter.effects import buffer_of

    value = call.value(name)
    if isinstance(value, Series | Const) and not call.run.file.is_cuda:
        return Buffer(call.run.storage(Memory.PAGEABLE, "literal", small=True), type="numpy.ndarray")
    return buffer_of(call.run, value)


_DIRECTIONS = {"h2d": Direction.H2D, "d2h": Direction.D2H, "d2d": Direction.D2D, "h2h": Direction.H2H, "peer": Direction.PEER}


def _direction(call: Call, dst: Buffer | None, src: Buffer | None) -> Direction:
    field = call.row.get("direction")
    word = field if isinstance(field, str) else None
    if isinstance(field, Selector):
        value = call.given(field)
        word = _direction_word(call.run, value) if value is not None else field.default or "infer"
    if word in _DIRECTIONS:
        return _DIRECTIONS[word]
    to_device, from_device = _place(dst), _place(src)
    if to_device and from_device:
        return Direction.D2D
    if to_device and from_device is False:
        return Direction.H2D
    if to_device is False and from_device:
        return Direction.D2H
    if to_device is False and from_device is False:
        return Direction.H2H
    if word == "infer" and call.run.file.is_cuda and call.switch("asynchronous"):
        # Between host and host nobody would ask for a stream.
        if to_device is False:
            return Direction.D2H
        if from_device is False:
            return Direction.H2D
    return Direction.UNKNOWN


def _direction_word(run: Run, value: Value) -> str | None:
    if isinstance(value, Const):
        numbers: dict[object, str] = {0: "h2h", 1: "h2d", 2: "d2h", 3: "d2d"}
        return value.value if isinstance(value.value, str) else numbers.get(value.value)
    last = value.term.rpartition("::")[2].rpartition(".")[2]
    return run.file.models.constants.get(last) or run.file.models.constants.get(value.term)


def _place(buffer: Buffer | None) -> bool | None:
    if buffer is None or buffer.storage.memory in (Memory.UNKNOWN, Memory.MANAGED):
        return None
    return buffer.storage.on_device


def _settle_place(dst: Buffer | None, src: Buffer | None, direction: Direction) -> None:
    """A copy's direction says where pointers point that nothing was known of."""
    for buffer, on_device in (
        (dst, direction in (Direction.H2D, Direction.D2D, Direction.PEER)),
        (src, direction in (Direction.D2H, Direction.D2D, Direction.PEER)),
    ):
        if buffer is not None and buffer.storage.memory is Memory.UNKNOWN and on_device:
            buffer.storage.memory = Memory.DEVICE
            buffer.storage.evidence = Evidence.DERIVED


def _bytes(call: Call) -> int | None:
    value = call.value("bytes")
    if isinstance(value, Const) and isinstance(value.value, int):
        return value.value
    return None


def _host_copy(call: Call, dst: Buffer | None, src: Buffer | None) -> None:
    from streamlint.interpreter.effects.host import host_write, read_values

    if src is not None:
        read_values(call.run, [src], call.span, call.name)
    if dst is not None:
        host_write(call.run, dst, call.span, call.name)


def _loader(call: Call) -> Value:
    pinned = call.switch("pin")
    if pinned is False:
        trail = (Step("this loader does not pin its batches (pin_memory is not set)", call.span),)
    else:
        trail = (Step("batches of this loader", call.span),)
    collate = call.value("collate")
    made_here = collate if isinstance(collate, FunctionValue | ClassValue) else None
    return Loader(pinned, trail, type=call.name, collate=made_here)


def _same(call: Call) -> Value:
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if value is None:
        return call.opaque()
    if call.row.get("into") is not None:
        return call.store(value)
    return value


def _device(call: Call) -> Value:
    value = call.value("from")
    if value is None:
        return Device("device", Evidence.LITERAL) if call.library in ("cupy", "numba", "cuda_python") else Device("unknown")
    return as_device(call.run, value) or Device("unknown", text=value.term)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "factory": _factory,
    "view": _view,
    "pin": _pin,
    "transfer": _transfer,
    "copy": _copy,
    "loader": _loader,
    "same": _same,
    "device": _device,
    "module_to": _module_to,
}
