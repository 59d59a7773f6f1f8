"""Whether autograd records: it does not under ``no_grad`` and its kin, nor inside a function of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.index import File, dotted_name
from streamlint.interpreter.run import Run

_OFF = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.autograd.inference_mode"})
_ON = frozenset({"torch.enable_grad", "torch.autograd.enable_grad"})


def recording(run: Run) -> bool:
    """Whether what is computed here keeps its operands for a backward pass."""
    if run.gradients:
        return run.gradients[-1]
    return not any(_switches_off(frame.function, frame.file) for frame in run.frames if frame.function is not None)


def _switches_off(function: p.Function, file: File) -> bool:
    for decorator in function.decorators:
        if dotted_name(file, decorator.function if isinstance(decorator, p.Call) else decorator) in _OFF:
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
