"""Gradients: whether autograd records (not under ``no_grad`` and its kin, nor inside a function of its own), and those that it leaves."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.run import Run
from streamlint.interpreter.values import Buffer, Storage, Value
from streamlint.operations import Evidence, Memory

_OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"})
_ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})


def recording(run: Run) -> bool:
    """Whether what is computed here keeps its operands for a backward pass."""
    if run.gradients:
        return run.gradients[-1]
    return not any(_switches_off(frame.function, frame.file) for frame in run.frames if frame.function is not None)


def is_decorated_off(function: p.Function, file: File) -> bool:
    """Whether a decorator switches gradients off."""
    words = (d.function if isinstance(d, p.Call) else d for d in function.decorators)
    return any(dotted_name(file, word) in _OFF for word in words)


def _switches_off(function: p.Function, file: File) -> bool:
    if is_decorated_off(function, file):
        return True
    if function.name not in ("forward", "backward") or not function.class_name:
        return False
    definition = file.class_named(function.class_name)
    return definition is not None and any(dotted_name(file, base).endswith("autograd.Function") for base in definition.bases)


@contextlib.contextmanager
def scope(run: Run, expression: p.Expression) -> Iterator[None]:
    """A ``with`` that switches gradients off, or on again."""
    name = dotted_name(run.file, expression.function) if isinstance(expression, p.Call) else ""
    if name not in _OFF | _ON:
        yield
        return
    run.gradients.append(name in _ON)
    try:
        yield
    finally:
        run.gradients.pop()


def beside(run: Run, tensor: Buffer, name: str) -> Value:
    """A tensor's gradient: memory of its own, where the tensor is. On the host it may still be missing."""
    return run.remembered(_key(tensor, name), lambda: _missing(run, tensor, name) if tensor.storage.on_host else _present(tensor, name))


def gradient_of(run: Run, tensor: Buffer) -> Value | None:
    """What a tensor's ``grad`` was set to, or found to be; None where nobody in view looked at it."""
    return tensor.attrs.get("grad") or run.memo.get(_key(tensor, "grad"))


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
