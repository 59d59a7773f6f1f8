"""SL002: work on the null stream beside other streams.

The legacy null stream waits for all blocking streams and all blocking streams wait for it (CUDA runtime API, "Stream synchronization
behavior"): between blocking streams a stray launch is a barrier. Non-blocking streams, torch's among them, are not ordered with it
at all: there it is a race. Measured on an H200: an extension kernel on stream 0 under ``torch.cuda.stream(side)`` read stale data in
19 of 20 runs.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, floats, function, numba_cuda, torch_module

RULE, NAME = "SL002", "implicit-default-stream"
_SERIALISES = "the streams serialise: work on one does not start while the other is shut"
_FACTS: dict[str, Any] = {"bytes": 4096, "stream": "blocking"}
_COUNT = 1024


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    a, b, steps = (floats(lab, count) for count in (_COUNT, _COUNT, 1))
    return Trial(lambda: snippet.step(a, b, steps), gate=handle_of(snippet.left), watch=handle_of(snippet.right))


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda, numpy = numba_cuda(), importlib.import_module("numpy")
    a, b, steps = (lab.keep(cuda.to_device(numpy.ones(count, dtype=numpy.float32))) for count in (_COUNT, _COUNT, 1))
    return Trial(lambda: snippet.step(a, b, steps), gate=handle_of(snippet.left), watch=handle_of(snippet.right))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    left, right = lab.stream(blocking=True), lab.stream(blocking=True)
    a, b, steps = (floats(lab, count) for count in (_COUNT, _COUNT, 1))
    step = function(library, "step", None, POINTER, POINTER, POINTER, ctypes.c_int, POINTER, POINTER)
    pointers = (a.data.ptr, b.data.ptr, steps.data.ptr)
    return Trial(lambda: step(*pointers, _COUNT, left.ptr, right.ptr), gate=left.ptr, watch=right.ptr)


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    side = lab.keep(torch.cuda.Stream())
    x = lab.keep(torch.zeros(_COUNT, device="cuda"))

    def reset(_round: int) -> object:
        x.zero_()
        return 2.0 * _COUNT

    return Trial(lambda: snippet.step(x, side), gate=handle_of(side), reset=reset)


CASES = (
    Case(RULE, "launch_on_null_stream", "cupy", Experiment.STREAMS_SERIALISE, _SERIALISES, "sl002_cupy", _cupy, _FACTS),
    Case(RULE, "launch_on_null_stream", "numba", Experiment.STREAMS_SERIALISE, _SERIALISES, "sl002_numba", _numba, _FACTS),
    Case(RULE, "launch_on_null_stream", "cuda", Experiment.STREAMS_SERIALISE, _SERIALISES, "sl002_cuda", _cuda, _FACTS),
    Case(
        RULE,
        "extension_on_null_stream",
        "torch",
        Experiment.DATA_RACE,
        "data race: the extension's kernel reads before the side stream has written",
        "sl002_torch_extension",
        _torch,
        {"bytes": 4096, "stream": "non-blocking"},
        needs=("nvcc", "ninja"),
        builds=True,
    ),
)
