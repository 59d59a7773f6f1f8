"""SL003: allocating and freeing in a loop. It is the free that waits.

Measured on an H200 (driver 580.159, CUDA 13.0): ``cudaFree`` waits for the whole device and holds other threads' launches meanwhile;
``cudaMalloc`` does not wait; ``cudaMallocAsync`` and ``cudaFreeAsync`` are asynchronous. NVIDIA documents that ``cudaFree`` *may*
synchronize. The gates here stand on a non-blocking stream that the program does not use.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import FLOAT, POINTER, SIZE, floats, flush_numba, function, numba_cuda, torch_module

RULE, NAME = "SL003", "alloc-in-loop"
_WAITS = "host waits for the device"
_FACTS: dict[str, Any] = {"bytes": 1 << 20, "memory": "device", "rounds": 3}
_PINNED = {**_FACTS, "memory": "pinned"}
_MANY, _BIG = {**_FACTS, "rounds": 16}, {**_FACTS, "bytes": 32 << 20}
_TAKES = ("bytes",)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    busy, stream = lab.stream(blocking=False), lab.stream(blocking=False)
    return Trial(lambda: snippet.process(parameters["rounds"], parameters["bytes"], stream), gate=busy.ptr)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda = numba_cuda()
    busy, raw = lab.stream(blocking=False), lab.stream(blocking=False)
    stream = lab.keep(cuda.external_stream(raw.ptr))
    count = parameters["bytes"] // FLOAT
    return Trial(lambda: snippet.process(parameters["rounds"], count, stream), gate=busy.ptr, reset=lambda _: flush_numba(cuda))


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    busy = lab.stream(blocking=False)
    return Trial(lambda: snippet.evaluate(parameters["rounds"], parameters["bytes"] // FLOAT), gate=busy.ptr)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    busy, stream = lab.stream(blocking=False), lab.stream(blocking=False)
    process = function(library, "process", None, ctypes.c_int, SIZE, POINTER)
    return Trial(lambda: process(parameters["rounds"], parameters["bytes"], stream.ptr), gate=busy.ptr)


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    busy, stream = lab.stream(blocking=False), lab.stream(blocking=False)
    return Trial(lambda: snippet.run(parameters["rounds"], parameters["bytes"], stream.ptr), gate=busy.ptr)


def _cuda_pinned(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    busy, stream = lab.stream(blocking=False), lab.stream(blocking=False)
    size = parameters["bytes"]
    device = floats(lab, max(size // FLOAT, 1))
    process = function(library, "process", None, ctypes.c_int, SIZE, POINTER, POINTER)
    return Trial(lambda: process(parameters["rounds"], size, device.data.ptr, stream.ptr), gate=busy.ptr)


CASES = (
    Case(RULE, "cuda_free_in_loop", "cupy", Experiment.HOST_WAITS, _WAITS, "sl003_cupy", _cupy, _FACTS, takes=_TAKES),
    Case(
        RULE,
        "cuda_free_holds_other_threads",
        "cupy",
        Experiment.THREAD_HELD,
        "another thread's launch is held while the free waits",
        "sl003_cupy",
        _cupy,
        _FACTS,
        takes=_TAKES,
        kinds=(OTHER_CLAIM,),
    ),
    # numba queues frees and does them once more than 10 are pending, so the wait shows from the 11th round on.
    Case(RULE, "device_array_in_loop", "numba", Experiment.HOST_WAITS, _WAITS, "sl003_numba", _numba, _MANY, takes=_TAKES),
    Case(RULE, "empty_cache_in_loop", "torch", Experiment.HOST_WAITS, _WAITS, "sl003_torch", _torch, _BIG),
    Case(RULE, "cuda_free_in_loop", "cuda-python", Experiment.HOST_WAITS, _WAITS, "sl003_cuda_python", _cuda_python, _FACTS, takes=_TAKES),
    Case(RULE, "cuda_free_in_loop", "cuda", Experiment.HOST_WAITS, _WAITS, "sl003_cuda", _cuda, _FACTS, takes=_TAKES),
    Case(
        RULE,
        "pinned_buffer_in_loop",
        "cuda",
        Experiment.HOST_WAITS,
        _WAITS,
        "sl003_cuda_pinned",
        _cuda_pinned,
        _PINNED,
        takes=_TAKES,
    ),
)
