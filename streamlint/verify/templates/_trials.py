"""Trials that several rules share: the same program shape, with another order missing. Runs in the child process only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.verify.cases import Trial
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats, lab_stream, torch_module, torch_stream

COUNT = 1024  # floats in the buffers of a race
BYTES = 4 * COUNT
BLOCK = 4 << 20  # floats: PyTorch takes a segment of its own for each block of this size


class Turn:
    """The value that this round writes. What a stale read sees is the last round's."""

    def __init__(self, copies: int = COUNT, more: float = 0.0) -> None:
        self._copies, self._more = copies, more
        self.value = 0.0

    def reset(self, number: int) -> object:
        """The sum of that many copies of the round's value, and what is more: what a right program returns."""
        self.value = float(number)
        return self.value * self._copies + self._more


def refilled(fill: Callable[[float], object], copies: int = 1, poisoned: Any = None, more: float = 0.0) -> Callable[[int], object]:
    """What a round begins with: a source filled with its number, and a destination with what no round copies."""

    def reset(number: int) -> object:
        if poisoned is not None:
            poisoned[:] = -1.0
        fill(float(number))
        return float(number * copies) + more

    return reset


def cuda_pass_on(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    """C: ``pass_on(source, between, host, count, first, second)``, where the first stream writes what the second brings home."""
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    source, between, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")
    pass_on = function(library, "pass_on", ctypes.c_float, POINTER, POINTER, POINTER, SIZE, POINTER, POINTER)

    def call() -> object:
        return pass_on(source.data.ptr, between.data.ptr, host.ctypes.data, COUNT, first.ptr, second.ptr)

    return Trial(call, gate=first.ptr, reset=refilled(source.fill))


def cuda_python_pass_on(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """The same through cuda.bindings: ``pass_on(source, between, host, first, second)``; returns the sum of what came home."""
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    source, between, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")

    def call() -> object:
        return snippet.pass_on(source.data.ptr, between.data.ptr, host, first.ptr, second.ptr)

    return Trial(call, gate=first.ptr, reset=refilled(source.fill, COUNT))


def torch_total(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """``total(value, first, second)``: what the first stream fills with the value is summed on the second."""
    torch, turn = torch_module(), Turn()
    first, second = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream())
    return Trial(lambda: snippet.total(turn.value, first, second), gate=handle_of(first), reset=turn.reset)


def cupy_total(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """The same with CuPy."""
    first, second, turn = lab.stream(blocking=False), lab.stream(blocking=False), Turn()
    return Trial(lambda: snippet.total(turn.value, first, second), gate=first.ptr, reset=turn.reset)


def torch_copied(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """``copied(value, count, stream)``: a block is copied on the stream while its owner lets go of it."""
    stream, turn = lab.keep(torch_module().cuda.Stream()), Turn(copies=1)
    return Trial(lambda: snippet.copied(turn.value, BLOCK, stream), gate=handle_of(stream), reset=turn.reset)


def torch_loss_read(lab: Lab, read: Callable[[Any, Any], object], kind: str = "non-blocking") -> Trial:
    """``read(loss, stream)`` brings one value home through a side stream.

    torch's pinned blocks are reused: the poison is the last round's value, so each round needs another.
    """
    torch = torch_module()
    stream = torch_stream(lab, torch, kind)
    loss = lab.keep(torch.zeros(1, device="cuda"))
    return Trial(lambda: read(loss, stream), gate=handle_of(stream), reset=refilled(loss.fill_))


def cupy_losses_read(lab: Lab, read: Callable[[Any, Any, Any], object], memory: str, kind: str = "non-blocking") -> Trial:
    """``read(losses, host, stream)`` brings an array home into poisoned ``pinned`` or ``pageable`` memory."""
    stream = lab_stream(lab, kind)
    losses, host = floats(lab, COUNT), host_floats(lab, COUNT, memory)
    return Trial(lambda: read(losses, host, stream), gate=stream.ptr, reset=refilled(losses.fill, COUNT, host))
