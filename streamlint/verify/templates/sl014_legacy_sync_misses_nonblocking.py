"""SL014: the null stream is synchronized, and work on a non-blocking stream is still under way."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats
from streamlint.verify.templates._trials import BYTES, COUNT, cupy_losses_read, refilled, torch_loss_read

RULE, NAME = "SL014", "legacy-sync-misses-nonblocking"
_STALE = "data race: the default stream is synchronized, and the old value is read"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "direction": "d2h", "memory": "pinned", "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return torch_loss_read(lab, snippet.read_back)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return cupy_losses_read(lab, snippet.read_back, parameters["memory"])


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return cupy_losses_read(lab, lambda losses, host, stream: snippet.read_back(losses.data.ptr, host, stream.ptr), parameters["memory"])


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    source, between, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")
    read_back = function(library, "read_back", ctypes.c_float, POINTER, POINTER, POINTER, SIZE, POINTER)

    def call() -> object:
        return read_back(source.data.ptr, between.data.ptr, host.ctypes.data, COUNT, stream.ptr)

    return Trial(call, gate=stream.ptr, reset=refilled(source.fill, poisoned=host))


CASES = (
    Case(RULE, "default_stream_synchronized", "torch", Experiment.DATA_RACE, _STALE, "sl014_torch", _torch, {**_PARAMETERS, "bytes": 4}),
    Case(RULE, "null_stream_synchronized", "cupy", Experiment.DATA_RACE, _STALE, "sl014_cupy", _cupy, _PARAMETERS),
    Case(RULE, "null_stream_synchronized", "cuda-python", Experiment.DATA_RACE, _STALE, "sl014_cuda_python", _cuda_python, _PARAMETERS),
    Case(RULE, "synchronous_copy", "cuda", Experiment.DATA_RACE, _STALE, "sl014_cuda", _cuda, _PARAMETERS),
)
