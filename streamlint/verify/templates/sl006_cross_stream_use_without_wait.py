"""SL006: one stream reads what another is still writing.

With the writer behind a gate the reader runs all the same, and sees what the memory held before.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats, torch_module

RULE, NAME = "SL006", "cross-stream-use-without-wait"
_STALE = "data race: the second stream reads before the first has written"
_COUNT = 1024
_PARAMETERS: dict[str, Any] = {"bytes": 4 * _COUNT, "stream": "non-blocking"}


class _Round:
    """The value that this round writes; the last round's is what a stale read sees."""

    value = 0.0

    def reset(self, number: int) -> object:
        self.value = float(number)
        return self.value * _COUNT


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(torch_module().cuda.Stream())
    turn = _Round()
    return Trial(lambda: snippet.total(turn.value, stream), gate=handle_of(stream), reset=turn.reset)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    turn = _Round()
    return Trial(lambda: snippet.total(turn.value, first, second), gate=first.ptr, reset=turn.reset)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    source, between, host = floats(lab, _COUNT), floats(lab, _COUNT), host_floats(lab, _COUNT, "pinned")
    pass_on = function(library, "pass_on", ctypes.c_float, POINTER, POINTER, POINTER, SIZE, POINTER, POINTER)

    def reset(number: int) -> object:
        source.fill(float(number))
        return float(number)

    def call() -> object:
        return pass_on(source.data.ptr, between.data.ptr, host.ctypes.data, _COUNT, first.ptr, second.ptr)

    return Trial(call, gate=first.ptr, reset=reset)


CASES = (
    Case(RULE, "read_on_current_stream", "torch", Experiment.DATA_RACE, _STALE, "sl006_torch", _torch, _PARAMETERS),
    Case(RULE, "read_on_other_stream", "cupy", Experiment.DATA_RACE, _STALE, "sl006_cupy", _cupy, _PARAMETERS),
    Case(RULE, "copy_on_other_stream", "cuda", Experiment.DATA_RACE, _STALE, "sl006_cuda", _cuda, _PARAMETERS),
)
