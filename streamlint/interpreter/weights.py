"""What a module of PyTorch's holds, as one piece of memory: moved on a stream that somebody made, read where the module is called."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.handed import on_side_stream
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Device, Handle, Opaque, Storage, Value
from streamlint.operations import Evidence, Memory

_KEY = "(weights)"


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
    if not isinstance(module, Handle | Opaque) or not isinstance(held := module.attrs.get(_KEY), Buffer):
        return
    if name == module.term or name.endswith(".__call__"):
        run.machine.launch(ops.Launch(span, "torch", name, stream=run.stream_of("torch"), reads=(held,), kind="compute"))


def rebind(holder: Value, value: Value) -> None:
    """``weight.data = tensor``: the same tensor of PyTorch's, and other memory from now on; what was made of it before keeps the old."""
    if not isinstance(value, Buffer) or not value.type.startswith("torch.") or value is holder:
        return
    if isinstance(holder, Opaque) and not holder.type:
        holder.buffer = Buffer(value.storage, value.part, value.type, value.gapped, value.strided)
    elif isinstance(holder, Buffer) and holder.type.startswith("torch.") and holder.leaves is None:
        holder.storage, holder.part, holder.gapped, holder.strided = value.storage, value.part, value.gapped, value.strided


def rebound(value: Value) -> Value:
    """The memory that an unknown tensor was given; else the value as it is."""
    given = value.attrs.get("data") if isinstance(value, Opaque) and value.buffer is not None else None
    same = isinstance(value, Opaque) and isinstance(given, Buffer) and value.buffer is not None and given.storage is value.buffer.storage
    return given if same and given is not None else value
