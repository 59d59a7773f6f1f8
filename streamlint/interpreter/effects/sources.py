"""Kernels whose text a library compiles while the program runs (CuPy's RawKernel): what that text says of their arguments."""

from __future__ import annotations

from streamlint.frontends.kernel_text import written
from streamlint.interpreter.effects.host import KERNEL, TEXT
from streamlint.interpreter.effects.kernels import Signature
from streamlint.interpreter.values import Const, Handle, Value


def compiled(kernel: Value | None, count: int) -> Signature:
    """What is known of a kernel with so many arguments. One that is given a single buffer writes it: a kernel is there to write."""
    held = kernel.attrs if isinstance(kernel, Handle) else {}
    text, name = held.get(TEXT), held.get(KERNEL)
    known = None
    if isinstance(text, Const) and isinstance(name, Const) and isinstance(text.value, str) and isinstance(name.value, str):
        known = written(text.value, name.value.partition("<")[0])
    if known is None or len(known.arguments) != count:
        return Signature([True] * count)
    return Signature(known.arguments, sure=known.sure)
