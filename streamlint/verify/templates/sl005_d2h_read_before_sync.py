"""SL005: the host reads the destination of an asynchronous D2H copy before anything has synchronized.

With a pinned destination the read is stale, with no error: measured on an H200 in 20 of 20 runs. With a pageable one the copy happened to
wait for the stream from the first byte, so no wrong value is seen; NVIDIA documents only that it *may* ("API synchronization behavior"),
and the verdict is NOT OBSERVED.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, host_floats, lab_stream, numba_cuda, numba_stream
from streamlint.verify.templates._trials import BYTES, COUNT, cupy_losses_read, refilled, torch_loss_read

RULE, NAME = "SL005", "d2h-read-before-sync"
_TAKES = ("stream",)
_STALE = "data race: the host reads before the copy has arrived"
_PINNED: dict[str, Any] = {"bytes": BYTES, "direction": "d2h", "memory": "pinned", "stream": "non-blocking"}
_PAGEABLE: dict[str, Any] = {**_PINNED, "memory": "pageable"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return torch_loss_read(lab, snippet.read_loss, parameters["stream"])


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return cupy_losses_read(lab, snippet.read_loss, parameters["memory"], parameters["stream"])


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda, numpy = numba_cuda(), importlib.import_module("numpy")
    stream, handle = numba_stream(lab, cuda, parameters["stream"])
    losses, host = lab.keep(snippet.make_losses(COUNT)), host_floats(lab, COUNT, parameters["memory"])

    def fill(value: float) -> None:
        losses.copy_to_device(numpy.full(COUNT, value, dtype=numpy.float32))

    return Trial(lambda: snippet.read_loss(losses, host, stream), gate=handle, reset=refilled(fill, COUNT, host))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab_stream(lab, parameters["stream"])
    losses, host = floats(lab, COUNT), host_floats(lab, COUNT, parameters["memory"])
    read = function(library, "read_loss", ctypes.c_float, POINTER, POINTER, SIZE, POINTER)
    reset = refilled(losses.fill, poisoned=host)
    return Trial(lambda: read(losses.data.ptr, host.ctypes.data, COUNT, stream.ptr), gate=stream.ptr, reset=reset)


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    def read(losses: Any, host: Any, stream: Any) -> object:
        return snippet.read_loss(losses.data.ptr, host, stream.ptr)

    return cupy_losses_read(lab, read, parameters["memory"], parameters["stream"])


CASES = (
    Case(RULE, "loss_to_cpu", "torch", Experiment.DATA_RACE, _STALE, "sl005_torch", _torch, {**_PINNED, "bytes": 4}, takes=_TAKES),
    Case(RULE, "pinned_destination", "cupy", Experiment.DATA_RACE, _STALE, "sl005_cupy", _cupy, _PINNED, takes=_TAKES),
    Case(RULE, "pageable_destination", "cupy", Experiment.DATA_RACE, _STALE, "sl005_cupy", _cupy, _PAGEABLE, takes=_TAKES),
    Case(RULE, "pinned_destination", "numba", Experiment.DATA_RACE, _STALE, "sl005_numba", _numba, _PINNED, takes=_TAKES),
    Case(RULE, "pageable_destination", "numba", Experiment.DATA_RACE, _STALE, "sl005_numba", _numba, _PAGEABLE, takes=_TAKES),
    Case(RULE, "pinned_destination", "cuda-python", Experiment.DATA_RACE, _STALE, "sl005_cuda_python", _cuda_python, _PINNED, takes=_TAKES),
    Case(RULE, "pinned_destination", "cuda", Experiment.DATA_RACE, _STALE, "sl005_cuda", _cuda, _PINNED, takes=_TAKES),
    Case(RULE, "pageable_destination", "cuda", Experiment.DATA_RACE, _STALE, "sl005_cuda", _cuda, _PAGEABLE, takes=_TAKES),
)
