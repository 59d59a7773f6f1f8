"""Transfers: a value goes to a device or to the host, and what comes of it is new memory there."""

from __future__ import annotations

import math
from collections.abc import Callable

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Step
from streamlint.interpreter import weights
from streamlint.interpreter.chosen import is_chosen_here
from streamlint.interpreter.classes import library_bases
from streamlint.interpreter.effects import Call, buffer_of
from streamlint.interpreter.effects.copies import is_asynchronous, issue_copy
from streamlint.interpreter.effects.devices import as_device, asked_device, defaults_elsewhere, looks_like_dtype
from streamlint.interpreter.effects.host import read_values
from streamlint.interpreter.effects.memory import is_raw
from streamlint.interpreter.effects.sizes import becomes_whole, is_small
from streamlint.interpreter.effects.streams import stream_argument
from streamlint.interpreter.effects.work import compute
from streamlint.interpreter.handed import presumed
from streamlint.interpreter.values import Buffer, Const, Device, Handle, Instance, Series, Table, Value
from streamlint.operations import Direction, Evidence, Memory
from streamlint.record import replace


def _transfer(call: Call) -> Value:

    run = call.run
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if isinstance(value, Handle | Instance) and (not isinstance(value, Instance) or library_bases(run, value.definition, value.file)):
        return move_module(call, value)
    if call.flag("leaves") and isinstance(value, Series | Table) and (target := _target(call)) is not None:
        return _each(call, value, target)
    if isinstance(value, Series) and call.library != "torch":
        value = _gathered(value)
    source = buffer_of(run, value)
    if source is None and isinstance(value, Const | Series):
        storage = run.storage(Memory.PAGEABLE, "literal", small=True, trail=(Step("created on the host here", call.span),))
        source = Buffer(storage, type="numpy.ndarray")
    if source is None:
        return call.opaque(*([value] if value is not None else []))
    target = _target(call)
    if target is None:
        return cast(call, source)
    return move(call, source, target)


def _each(call: Call, value: Value, target: Device) -> Value:
    """A container of the same shape whose tensors were moved."""
    if isinstance(value, Series) and value.items is not None:
        return Series([_each(call, item, target) for item in value.items], kind=value.kind, name=value.name)
    if isinstance(value, Table):
        return Table({key: _each(call, item, target) for key, item in value.items.items()}, dict(value.keys), value.complete)
    return move(call, value, target) if isinstance(value, Buffer) else value


def _gathered(value: Series) -> Value:
    held = next((v for v in value.all() if isinstance(v, Buffer)), None)
    return held if held is not None else value


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
        named = value is call.arguments.keywords.get("device")
        found = asked_device(call.run, value) if named else as_device(call.run, value)
        if found is not None and not (isinstance(value, Const) and isinstance(value.value, bool)):
            asked = named and found.space == "unknown" and not defaults_elsewhere(value)
            return replace(found, evidence=Evidence.ASKED) if asked else found
    return None


def cast(call: Call, source: Buffer) -> Value:
    """``x.to(dtype)``, ``x.float()``: a new value in the same place; on the host it is pageable."""

    if call.run.machine.in_flight(source) is not None:
        return source  # of the same type already, as far as is known: then nothing is read
    made = compute(call.run, (source,), call.span, call.name, type=source.type, library=call.library)
    if isinstance(made, Buffer):
        made.storage.counted = made.storage.counted or becomes_whole(call)
    return made


def move(call: Call, source: Buffer, target: Device) -> Value:
    """A transfer of a buffer to a device or to the host."""
    result = _moved(call, source, target)
    if call.library == "torch" and target.space != "host" and result.storage is not source.storage:
        result.storage.uploaded = True
    return result


def _moved(call: Call, source: Buffer, target: Device) -> Buffer:
    if target.space == "device":
        return _to_device(call, source, target)
    if target.space == "host":
        return _to_host(call, source)
    if source.storage.memory is Memory.PINNED and call.switch("asynchronous"):
        # Nobody pins for a copy from host to host.
        return _to_device(call, source, replace(target, space="device", evidence=Evidence.ASKED))
    result = call.run.unknown_buffer(f"{call.name}{call.run.visit_key(call.site.node)}", call.text("type", source.type))
    result.leaves = {} if source.leaves is not None else None
    if source.storage.on_device:
        result.storage.evidence = Evidence.DERIVED
    elif source.storage.on_host and target.evidence is Evidence.ASKED and call.switch("asynchronous"):
        stream = stream_argument(call)
        issue_copy(call, None, source, Direction.H2D, asynchronous=True, stream=stream, evidence=Evidence.ASKED)
    return result


def _to_device(call: Call, source: Buffer, target: Device) -> Buffer:

    run = call.run
    # CuPy takes an array of another library that is on a device as it is: of one that may be there, nothing is known to be uploaded.
    foreign = call.flag("staged") and source is call.value("of") and source.type.startswith("torch.")
    if source.storage.on_device or (foreign and source.storage.memory is Memory.UNKNOWN and not source.storage.host):
        return Buffer(source.storage, source.part, call.text("type", source.type), source.gapped, source.strided, leaves=source.leaves)
    asynchronous = call.switch("asynchronous")
    storage = run.storage(Memory.DEVICE, f"{call.name}{run.visit_key(call.site.node)}", evidence=target.evidence, library=call.library)
    storage.trail = (Step("moved to the device here", call.span),)
    storage.nbytes, storage.small = source.storage.nbytes, source.storage.small
    result = Buffer(storage, type=call.text("type", source.type), leaves={} if source.leaves is not None else None)
    out = call.value("out")
    if isinstance(out, Buffer):
        result = out
    elif call.flag("raw") and is_raw(call):
        storage.raw = True
        run.machine.alloc(ops.Alloc(call.span, call.library, call.name, memory=Memory.DEVICE, buffer=result))
    if call.flag("staged") and source.storage.memory is not Memory.PINNED:
        # The library copies into its own pinned memory first: the host reads, nothing waits.

        read_values(run, [source], call.span, call.name)
        run.machine.launch(ops.Launch(call.span, call.library, call.name, stream=stream_argument(call), writes=(result,), kind="upload"))
        return result
    stream = stream_argument(call)
    issue_copy(
        call,
        result,
        source,
        Direction.H2D,
        asynchronous=is_asynchronous(call, asynchronous, stream),
        stream=stream,
        evidence=target.evidence,
    )
    return result


def _to_host(call: Call, source: Buffer) -> Buffer:

    run = call.run
    if source.storage.on_host:
        return Buffer(source.storage, source.part, call.text("type", source.type), source.gapped, source.strided, leaves=source.leaves)
    if source.storage.memory is Memory.UNKNOWN and call.library in ("cupy", "numba"):
        source.storage.memory, source.storage.evidence = Memory.DEVICE, Evidence.DERIVED  # their arrays are nowhere else
    asynchronous = call.switch("asynchronous")
    stream = stream_argument(call)
    asked = is_asynchronous(call, asynchronous, stream)
    if asked:
        presumed(run, source)
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
    evidence = source.storage.evidence if source.storage.on_device else (Evidence.SCOPE if asked and _names_host(call) else Evidence.NONE)
    issue_copy(call, result, source, Direction.D2H, asynchronous=asked, stream=stream, evidence=evidence)
    return result


def _names_host(call: Call) -> bool:
    """Whether a copy to the host says so, or its caller does."""
    node = call.site.node
    args = node.args if isinstance(node, p.Call) and call.row.get("to", "argument") == "argument" else ()
    given = [arg.value for arg in args if arg.keyword == "device"] or [arg.value for arg in args if arg.keyword is None]
    return is_chosen_here(call.run, given[0] if given else None)


def _module_to(call: Call) -> Value:
    value = call.value("of") if call.row.get("of") is not None else call.receiver
    if isinstance(value, Handle | Instance):
        return move_module(call, value)
    return _transfer(call)


def move_module(call: Call, value: Handle | Instance) -> Value:
    """``module.to(device)``: its parameters move; the module is returned."""
    target = _target(call)
    if target is None:
        return value
    before = value.attrs.get("(device)")
    value.attrs["(device)"] = target
    if call.switch("asynchronous"):
        weights.move(call.run, value, target, call.span, call.name)
    if target.space == "device" and not call.run.file.is_cuda:
        call.run.machine.note(ops.Touch(call.span, call.library, call.name, evidence=target.evidence))
    if target.space == "device" and before is None and isinstance(value, Handle) and value.made and call.switch("asynchronous"):
        _upload_parameters(call, value, target)
    return value


def _upload_parameters(call: Call, module: Handle, target: Device) -> None:
    """The parameters of a module that was made in view are in pageable memory."""

    sizes = [v.value for v in module.args.values() if isinstance(v, Const) and isinstance(v.value, int) and not isinstance(v.value, bool)]
    small = bool(sizes) and is_small(4 * math.prod(max(size, 1) for size in sizes))
    trail = tuple(Step("module parameters allocated in pageable host memory here", step.span) for step in module.trail)
    source = Buffer(call.run.storage(Memory.PAGEABLE, "parameters", small=small, trail=trail))
    result = Buffer(call.run.storage(Memory.DEVICE, "parameters", evidence=target.evidence))
    issue_copy(call, result, source, Direction.H2D, asynchronous=True, stream=stream_argument(call), evidence=target.evidence)


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "transfer": _transfer,
    "module_to": _module_to,
}
