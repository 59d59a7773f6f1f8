"""SL004: CUDA calls, or waits for a thread that uses CUDA, inside a host callback.

"The host function must not make any CUDA API calls. Attempting to use a CUDA API may result in cudaErrorNotPermitted, but this is not
required" (CUDA runtime API, ``cudaLaunchHostFunc``). Measured on an H200 (driver 580.159): allocation, free, launch, copy, memset,
synchronize, event record, the destruction of events and streams and even ``cudaGetDevice`` return 800 at once; only event and stream
queries pass.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, LabError
from streamlint.verify.templates._common import POINTER, Surfacing, floats, function, numba_cuda

RULE, NAME = "SL004", "cuda-call-in-host-callback"
_REFUSED = "CUDA refuses the call: cudaErrorNotPermitted (800)"
_DEADLOCK = "deadlock: the callback waits for a lock whose owner waits for the stream"
_NOT_PERMITTED = 800
_CALL = ("refused call",)
_COUNT = 1024


def _status(stream: Surfacing, work: Callable[[], object]) -> int:
    work()
    end = time.perf_counter() + 2.0
    while not stream.ran and time.perf_counter() < end:
        time.sleep(0.001)
    if not stream.ran:
        raise LabError("the callback did not run")
    return stream.status


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(Surfacing(lab.stream(blocking=False)))
    values = floats(lab, _COUNT)
    lab.keep(lab.cupy.sum(values))  # the kernel is loaded before the callback needs it
    results: list[Any] = lab.keep([])
    return Trial(lambda: _status(stream, lambda: snippet.collect(values, stream, results)), expected=_NOT_PERMITTED)


def _lock(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return Trial(lambda: snippet.flush("batch 0"))


class _Handle(int):
    """A handle that is an ``int`` with a ``value``: numba-cuda 0.30's ``add_callback`` reads it, cuda-bindings' own lacks it."""

    @property
    def value(self) -> int:
        return int(self)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda = numba_cuda()
    raw = lab.stream(blocking=False)
    numba_stream = cuda.external_stream(raw.ptr)
    if not hasattr(numba_stream.handle, "value"):
        numba_stream.handle = _Handle(raw.ptr)
    stream = lab.keep(Surfacing(numba_stream))
    results: list[Any] = lab.keep([])
    return Trial(lambda: _status(stream, lambda: snippet.collect(_COUNT, stream, results)), expected=_NOT_PERMITTED)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    finish = function(library, "finish", ctypes.c_int, POINTER, POINTER)
    buffer = lab.runtime.malloc(4 * _COUNT)
    return Trial(lambda: finish(buffer, stream.ptr), expected=_NOT_PERMITTED)


CASES = (
    Case(RULE, "operation_in_callback", "cupy", Experiment.ERROR, _REFUSED, "sl004_cupy", _cupy, kinds=_CALL),
    Case(RULE, "copy_in_callback", "numba", Experiment.ERROR, _REFUSED, "sl004_numba", _numba, kinds=_CALL),
    Case(RULE, "cuda_free_in_callback", "cuda", Experiment.ERROR, _REFUSED, "sl004_cuda", _cuda, kinds=_CALL),
    Case(
        RULE,
        "lock_in_callback",
        "cupy",
        Experiment.DEADLOCK,
        _DEADLOCK,
        "sl004_cupy_lock",
        _lock,
        kinds=("lock inversion",),
    ),
)
