"""SL001: an asynchronous copy from or to pageable memory waits on the host for earlier work in its stream.

Measured on an H200 (driver 580.159, CUDA 13.0): a pageable H2D copy is staged and returns at once up to 1 MB, and waits at 16 MB; a
pageable D2H copy waits from the first byte; pinned copies of any size return at once. On the null stream the waiting copy also holds
every other thread's launches. NVIDIA documents only that it *may* be synchronous (CUDA runtime API, "API synchronization behavior").
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import (
    FLOAT,
    POINTER,
    SIZE,
    floats,
    flush_numba,
    function,
    lab_stream,
    numba_cuda,
    numba_stream,
    torch_module,
    torch_stream,
)

RULE, NAME = "SL001", "unpinned-non-blocking"
_TAKES = ("bytes", "stream")
_WAITS = "host waits for the stream"
_H2D: dict[str, Any] = {"bytes": 16 << 20, "direction": "h2d", "stream": "non-blocking"}
_D2H: dict[str, Any] = {"bytes": 1 << 20, "direction": "d2h", "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    stream = torch_stream(lab, torch, parameters["stream"])
    work = snippet.upload if parameters["direction"] == "h2d" else snippet.download
    return Trial(lambda: work(parameters["bytes"] // FLOAT, stream), gate=handle_of(stream))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab_stream(lab, parameters["stream"])
    count = parameters["bytes"] // FLOAT
    if parameters["direction"] == "h2d":
        return Trial(lambda: snippet.upload(count, stream), gate=stream.ptr)
    scores = floats(lab, count)
    return Trial(lambda: snippet.download(scores, stream), gate=stream.ptr)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda = numba_cuda()
    stream, handle = numba_stream(lab, cuda, parameters["stream"])
    count = parameters["bytes"] // FLOAT
    return Trial(lambda: snippet.upload(count, stream), gate=handle, reset=lambda _: flush_numba(cuda))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    # The host buffers that the function returns are left to the process's end: freeing pinned memory waits for the device.
    stream = lab_stream(lab, parameters["stream"])
    count = parameters["bytes"] // FLOAT
    device = floats(lab, count)
    name = "upload" if parameters["direction"] == "h2d" else "download"
    work = function(library, name, ctypes.c_void_p, POINTER, SIZE, POINTER)
    return Trial(lambda: work(device.data.ptr, count, stream.ptr), gate=stream.ptr)


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    # Kept like those of _cuda.
    stream = lab_stream(lab, parameters["stream"])
    count = parameters["bytes"] // FLOAT
    device = floats(lab, count)
    return Trial(lambda: lab.keep(snippet.upload(device.data.ptr, count, stream.ptr)), gate=stream.ptr)


CASES = (
    Case(RULE, "pageable_upload", "torch", Experiment.HOST_WAITS, _WAITS, "sl001_torch_h2d", _torch, _H2D, takes=_TAKES),
    Case(RULE, "pageable_download", "torch", Experiment.HOST_WAITS, _WAITS, "sl001_torch_d2h", _torch, _D2H, takes=_TAKES),
    Case(
        RULE,
        "pageable_download_holds_other_threads",
        "torch",
        Experiment.THREAD_HELD,
        "another thread's launch is held while the copy waits on the null stream",
        "sl001_torch_d2h",
        _torch,
        {**_D2H, "stream": "null"},
        kinds=(OTHER_CLAIM,),
    ),
    Case(RULE, "pageable_upload", "cupy", Experiment.HOST_WAITS, _WAITS, "sl001_cupy_h2d", _cupy, _H2D, takes=_TAKES),
    Case(RULE, "pageable_download", "cupy", Experiment.HOST_WAITS, _WAITS, "sl001_cupy_d2h", _cupy, _D2H, takes=_TAKES),
    Case(RULE, "pageable_upload", "numba", Experiment.HOST_WAITS, _WAITS, "sl001_numba_h2d", _numba, _H2D, takes=_TAKES),
    Case(RULE, "pageable_upload", "cuda-python", Experiment.HOST_WAITS, _WAITS, "sl001_cuda_python", _cuda_python, _H2D, takes=_TAKES),
    Case(RULE, "pageable_upload", "cuda", Experiment.HOST_WAITS, _WAITS, "sl001_cuda_h2d", _cuda, _H2D, takes=_TAKES),
    Case(RULE, "pageable_download", "cuda", Experiment.HOST_WAITS, _WAITS, "sl001_cuda_d2h", _cuda, _D2H, takes=_TAKES),
)
