"""Gradients that a backward pass leaves."""

from __future__ import annotations

from streamlint import operations as ops
from streamlint import program as p
from streamlint.findings import Span
from streamlint.interpreter.hot import steps_optimizer
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Access, Buffer, Const, Opaque, Storage, Stream, Value
from streamlint.operations import Evidence, Memory


def beside(run: Run, tensor: Buffer, name: str) -> Value:
    """A tensor's gradient: memory of its own, where the tensor is. On the host it may still be missing."""
    return run.remembered(_key(tensor, name), lambda: _missing(run, tensor, name) if tensor.storage.on_host else _present(tensor, name))


def gradient_of(run: Run, tensor: Buffer) -> Value | None:
    """What a tensor's ``grad`` was set to, or found to be; None where nobody in view looked at it."""
    return tensor.attrs.get("grad") or run.memo.get(_key(tensor, "grad"))


def is_gradient(value: Value) -> bool:
    """Whether a value from out of view is a gradient that autograd has left, or was computed from one."""
    if isinstance(value, Buffer) and value.storage.of_gradient:
        return True
    return (value.storage.name if isinstance(value, Buffer) else value.term).endswith(".grad")


def leave(run: Run, loss: Value | None, span: Span, name: str) -> None:
    """A backward pass leaves the gradients of its parameters, on the stream that is current where it is asked for.

    A loss that is not known is on the device: nobody chooses a stream to stay on the host. Which parameters they are of is not known: where
    passes ran on several streams, or on one that nobody chose, nothing is said of them.
    """
    stream = run.stream_of("torch")
    chosen = stream.kind == "created" and (isinstance(loss, Opaque) or (isinstance(loss, Buffer) and not loss.storage.on_host))
    held = run.memo.get(_LEFT)
    if held is None and chosen:
        held = Buffer(Storage(Memory.DEVICE, "gradients", evidence=Evidence.SCOPE, library="torch"), type="torch.Tensor")
    elif isinstance(held, Buffer) and not (chosen and all(_ran_on(access, stream) for access in held.storage.writes)):
        held = None
    run.memo[_LEFT] = held if held is not None else Const(None)
    if isinstance(held, Buffer):
        held.storage.reads.clear()  # what was read before may have been other memory
        run.machine.launch(ops.Launch(span, "torch", name, stream=stream, writes=(held,), kind="compute"))


def left(run: Run) -> tuple[Buffer, ...]:
    """What an optimizer, or what clips gradients, reads besides what it is given."""
    held = run.memo.get(_LEFT)
    return (held,) if isinstance(held, Buffer) else ()


def step(run: Run, call: p.Node, method: str, values: list[Value], span: Span, name: str) -> None:
    """An optimizer from out of view, or one in a wrapper, is stepped: it works with the gradients on the current stream."""
    known = [value.term for value in values if isinstance(value, Opaque)]
    if method == "zero_grad" and known:
        run.zeroed.add(known[0])
    if method != "step" or not (reads := left(run)):
        return
    if any(term in run.zeroed for term in known) or (isinstance(call, p.Call) and steps_optimizer(call, run.file)):
        run.machine.launch(ops.Launch(span, "torch", name, stream=run.stream_of("torch"), reads=reads, kind="compute"))


_LEFT = "(gradients)"


def _ran_on(access: Access, stream: Stream) -> bool:
    return access.stamp.stream == stream.key


def _key(tensor: Buffer, name: str) -> str:
    return f"{name} of {tensor.term}"


def _present(tensor: Buffer, name: str) -> Buffer:
    old = tensor.storage
    evidence = Evidence(max(old.evidence, Evidence.DERIVED))
    return Buffer(Storage(old.memory, f"{old.name}.{name}", evidence=evidence, trail=old.trail, library=old.library), type=tensor.type)


def _missing(run: Run, tensor: Buffer, name: str) -> Value:
    made = run.opaque(f"{tensor.term}.{name}", tensor)
    made.buffer = Buffer(Storage(Memory.UNKNOWN, made.name, host=True, library=tensor.storage.library), type=tensor.type)
    return made
