"""Devices: what a value used as a device is."""

from __future__ import annotations

import re
from collections.abc import Callable

from streamlint.interpreter.effects import Call
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Const, Device, LibraryName, Opaque, Value
from streamlint.operations import Evidence
from streamlint.record import replace

_SCALAR_TYPE = re.compile(r"(?:torch|at|c10)::k(?:Float|Double|Half|BFloat|Int|UInt|Long|Short|Char|Byte|Bool|Complex)\w*(?:@.*)?")


def as_device(run: Run, value: Value | None) -> Device | None:
    """A value used as a device; None if it does not look like one."""
    if isinstance(value, Device):
        return _learnt(value)
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
        typed = value.type == "torch.device" and not defaults_elsewhere(value)
        return Device("unknown", Evidence.ASKED if typed else Evidence.NONE, value.term)
    return None


def asked_device(run: Run, value: Value | None) -> Device | None:
    """A value given where only a device can stand: a variable of another module (``device=settings.device``) is one as well."""
    found = as_device(run, value)
    return Device("unknown", text=value.term) if found is None and isinstance(value, LibraryName) else found


def _learnt(device: Device) -> Device:
    """The device of a value, with what was learnt of the value's place since it was asked for (``assert x.is_cuda``)."""
    buffer = device.of.buffer if isinstance(device.of, Opaque) else device.of
    if device.space != "unknown" or not isinstance(buffer, Buffer):
        return device
    found = _device_of(buffer)
    return device if found.space == "unknown" else replace(device, space=found.space, evidence=found.evidence, trail=found.trail)


def defaults_elsewhere(value: Value | None) -> bool:
    """Whether a parameter's default is a device that is no CUDA device: then an unknown device is likely to be that one."""
    default = value.default if isinstance(value, Opaque) else None
    return default is not None and not (isinstance(default, Const) and default.value is None)


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


def is_scalar_type(value: Value) -> bool:
    """C++: whether a value is an ``at::ScalarType``, as the headers abbreviate it."""
    return _SCALAR_TYPE.fullmatch(value.term) is not None


def _device(call: Call) -> Value:
    value = call.value("from")
    if value is None and call.library == "torch" and call.name != "torch.accelerator.current_accelerator":
        return Device("device", Evidence.DEFAULT, call.name)
    if value is None:
        return Device("device", Evidence.LITERAL) if call.library in ("cupy", "numba", "cuda_python") else Device("unknown")
    made = as_device(call.run, value) or (_device_of(value) if isinstance(value, Buffer) else Device("unknown", text=value.term))
    if made.space == "unknown" and not defaults_elsewhere(value):
        made = replace(made, evidence=Evidence.ASKED)
    options = call.receiver
    return replace(made, library=call.library, pinned=made.pinned or (isinstance(options, Device) and options.pinned))


def _device_of(buffer: Buffer) -> Device:
    storage = buffer.storage
    if storage.on_device:
        return Device("device", Evidence(max(storage.evidence, Evidence.DERIVED)), trail=storage.trail, of=buffer)
    return Device("host", Evidence.DERIVED, of=buffer) if storage.on_host else Device("unknown", text=buffer.term, of=buffer)


def _pinned_options(call: Call) -> Value:
    """Tensor options that ask for pinned memory, or may do so."""
    pinned, options = call.switch("pin"), call.receiver
    if pinned is None:
        return call.opaque()
    if isinstance(options, Device):
        return replace(options, pinned=pinned)
    return Device("host", Evidence.LITERAL, pinned=True) if pinned else options or call.opaque()


def _facade(call: Call) -> Value:
    return LibraryName(call.name)


def _placed(call: Call) -> Value:
    """Named as the question, of the value: conditions learn from the answer."""
    value = call.value("of")
    return call.run.opaque(f"placed:{value.term}", value) if value is not None else call.opaque()


EFFECTS: dict[str, Callable[[Call], Value]] = {
    "placed": _placed,
    "facade": _facade,
    "device": _device,
    "pinned_options": _pinned_options,
}
