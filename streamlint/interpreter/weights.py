"""What a module of PyTorch's holds, as one piece of memory: moved on a stream that somebody made, read where the module is called.

The module is moved as a whole, or new memory is given to one parameter after the other: then the last of them stands for all.
"""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.handed import on_side_stream
from streamlint.interpreter.nested import listed as parts_of
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Const, Device, Handle, Opaque, Series, Storage, Value
from streamlint.operations import Evidence, Memory

_KEY = "(weights)"
_LISTS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers"})


def move(run: Run, module: Value, target: Device, span: Span, name: str) -> bool:
    """``module.to(device, non_blocking=True)`` in the scope of a stream that was made: the weights are on their way on it.

    A copy that blocks has ended when the call returns, and on the stream that is current anyway nothing is out of order.
    """
    if not isinstance(module, Handle | Opaque) or run.file.is_cuda or not on_side_stream(run):
        return False
    if target.space in ("host", "other"):
        module.attrs.pop(_KEY, None)
        return False
    evidence = target.evidence if target.space == "device" else Evidence.SCOPE  # nobody chooses a stream to stay on the host
    held = module.attrs.get(_KEY)
    if not isinstance(held, Buffer):
        storage = Storage(Memory.DEVICE, "weights", evidence=Evidence(max(evidence, Evidence.DERIVED)), library="torch")
        held = module.attrs[_KEY] = Buffer(storage, type="torch.Tensor")
    run.machine.launch(ops.Launch(span, "torch", name, stream=run.stream_of("torch"), writes=(held,), kind="upload"))
    return True


def read(run: Run, module: Value | None, span: Span, name: str) -> None:
    """A module is called: it works with its weights on the current stream."""
    held = _weights(module)
    if module is None or held is None:
        return
    if name == module.term or name.endswith(".__call__"):
        run.machine.launch(ops.Launch(span, "torch", name, stream=run.stream_of("torch"), reads=(held,), kind="compute"))


def _weights(module: Value | None) -> Buffer | None:
    """A module's own weights that were moved in view, or those of the list that it was taken from."""
    if not isinstance(module, Handle | Opaque):
        return None
    around = [each for each in module.reach if isinstance(each, Handle)] if isinstance(module, Opaque) and _KEY not in module.attrs else []
    return next((held for each in (module, *around) if isinstance(held := each.attrs.get(_KEY), Buffer)), None)


def listed(module: Value | None, method: str, result: Value) -> None:
    """A module was asked for its parameters or buffers: what is given to one of them is given to the module."""
    if method in _LISTS and isinstance(result, Opaque) and isinstance(module, Handle | Opaque):
        result.module = module


def rebind(holder: Value, value: Value) -> None:
    """``weight.data = tensor``: the same tensor of PyTorch's, and other memory from now on; what was made of it before keeps the old."""
    module = holder.module if isinstance(holder, Opaque) else None
    if module is not None:
        _give(module, value if isinstance(value, Buffer) and value.storage.on_device else Const(None))
    if not isinstance(value, Buffer) or not value.type.startswith("torch.") or value is holder:
        return
    if isinstance(holder, Opaque) and not holder.type:
        holder.buffer = Buffer(value.storage, value.part, value.type, value.gapped, value.strided)
    elif isinstance(holder, Buffer) and holder.type.startswith("torch.") and holder.leaves is None:
        holder.storage, holder.part, holder.gapped, holder.strided = value.storage, value.part, value.gapped, value.strided


def _give(module: Value, memory: Value) -> None:
    """A module has its weights in this memory, and so have those that it is made of."""
    if isinstance(module, Handle | Opaque):
        module.attrs[_KEY] = memory
        held = parts_of(module)
        if isinstance(held, Series):
            for part in (*held.all(), *([held.element] if held.element is not None else [])):
                _give(part, memory)


def rebound(value: Value) -> Value:
    """The memory that an unknown tensor was given, or was found to be on the device; else the value as it is."""
    given = value.attrs.get("data") if isinstance(value, Opaque) and value.buffer is not None else None
    same = isinstance(value, Opaque) and isinstance(given, Buffer) and value.buffer is not None and given.storage is value.buffer.storage
    if same and given is not None:
        return given
    found = value.buffer if isinstance(value, Opaque) else None
    return found if found is not None and found.storage.on_device and found.type.startswith("torch.") else value
