"""Trials that several rules share: the same program shape, with another order missing. Runs in the child process only."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from streamlint.verify.cases import Trial
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats, lab_stream, torch_module, torch_stream

COUNT = 1024  # floats in the buffers of a race
BYTES = 4 * COUNT


class Turn:
    """The value that this round writes. What a stale read sees is the last round's."""

    def __init__(self, copies: int = COUNT) -> None:
        self._copies = copies
        self.value = 0.0

    def reset(self, number: int) -> object:
        """The sum of that many copies of the round's value, which is what a right program returns."""
        self.value = float(number)
        return self.value * self._copies


def passed_between_streams(lab: Lab, library: Any) -> Trial:
    """C: ``pass_on(source, between, host, count, first, second)``, where the first stream writes what the second brings home."""
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    source, between, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")
    pass_on = function(library, "pass_on", ctypes.c_float, POINTER, POINTER, POINTER, SIZE, POINTER, POINTER)

    def reset(number: int) -> object:
        source.fill(float(number))
        return float(number)

    def call() -> object:
        return pass_on(source.data.ptr, between.data.ptr, host.ctypes.data, COUNT, first.ptr, second.ptr)

    return Trial(call, gate=first.ptr, reset=reset)


def passed_between_streams_in_python(lab: Lab, snippet: Any) -> Trial:
    """The same through cuda.bindings: ``pass_on(source, between, host, first, second)``; returns the sum of what came home."""
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    source, between, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")

    def reset(number: int) -> object:
        source.fill(float(number))
        return float(number * COUNT)

    return Trial(lambda: snippet.pass_on(source.data.ptr, between.data.ptr, host, first.ptr, second.ptr), gate=first.ptr, reset=reset)


def torch_loss_read(lab: Lab, read: Callable[[Any, Any], object], kind: str = "non-blocking") -> Trial:
    """``read(loss, stream)`` brings one value home through a side stream.

    torch's pinned blocks are reused: the poison is the last round's value, so each round needs another.
    """
    torch = torch_module()
    stream = torch_stream(lab, torch, kind)
    loss = lab.keep(torch.zeros(1, device="cuda"))

    def reset(number: int) -> object:
        loss.fill_(float(number))
        return float(number)

    return Trial(lambda: read(loss, stream), gate=handle_of(stream), reset=reset)


def cupy_losses_read(lab: Lab, read: Callable[[Any, Any, Any], object], memory: str, kind: str = "non-blocking") -> Trial:
    """``read(losses, host, stream)`` brings an array home into poisoned ``pinned`` or ``pageable`` memory."""
    stream = lab_stream(lab, kind)
    losses, host = floats(lab, COUNT), host_floats(lab, COUNT, memory)

    def reset(number: int) -> object:
        host[:] = -1.0
        losses.fill(float(number))
        return float(number * COUNT)

    return Trial(lambda: read(losses, host, stream), gate=stream.ptr, reset=reset)
