"""SL018: a stream waits for an event before it is recorded, and so for nothing."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats, torch_module

RULE, NAME = "SL018", "event-wait-before-record"
_STALE = "data race: the wait comes before the record, and the second stream does not wait"
_COUNT = 1024
_PARAMETERS: dict[str, Any] = {"bytes": 4 * _COUNT, "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    first, second = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream())
    value = [0.0]

    def reset(number: int) -> object:
        value[0] = float(number)
        return value[0] * _COUNT

    return Trial(lambda: snippet.total(value[0], first, second), gate=handle_of(first), reset=reset)


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
    Case(RULE, "stream_waits_too_early", "torch", Experiment.DATA_RACE, _STALE, "sl018_torch", _torch, _PARAMETERS),
    Case(RULE, "stream_waits_too_early", "cuda", Experiment.DATA_RACE, _STALE, "sl018_cuda", _cuda, _PARAMETERS),
)
