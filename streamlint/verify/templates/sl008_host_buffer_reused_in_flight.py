"""SL008: the host refills a pinned buffer while the copy out of it waits for its turn.

The copy's stream is behind a gate: what arrives is the second content. Measured on an H200 in 20 of 20 runs; from pageable memory the
bytes are captured at the call, and the first content arrives.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, floats, function, lab_stream, numba_cuda, numba_stream, torch_module, torch_stream
from streamlint.verify.templates._trials import BYTES, COUNT, Turn

RULE, NAME = "SL008", "host-buffer-reused-in-flight"
_TAKES = ("stream",)
_SECOND = "data race: the copy reads the buffer after the host has filled it again"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "direction": "h2d", "memory": "pinned", "stream": "non-blocking"}
_ONE: dict[str, Any] = {**_PARAMETERS, "bytes": 4}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = torch_stream(lab, torch_module(), parameters["stream"])
    turn = Turn()
    return Trial(lambda: snippet.uploaded(turn.value, stream), gate=handle_of(stream), reset=turn.reset)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab_stream(lab, parameters["stream"])
    turn = Turn()
    return Trial(lambda: snippet.uploaded(turn.value, stream), gate=stream.ptr, reset=turn.reset)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab_stream(lab, parameters["stream"])
    target = floats(lab, 1)
    uploaded = function(library, "uploaded", ctypes.c_float, ctypes.c_float, POINTER, POINTER)
    turn = Turn(copies=1)
    return Trial(lambda: uploaded(turn.value, target.data.ptr, stream.ptr), gate=stream.ptr, reset=turn.reset)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda = numba_cuda()
    stream, handle = numba_stream(lab, cuda, parameters["stream"])
    target = lab.keep(cuda.device_array(COUNT, dtype="float32"))
    turn = Turn()
    return Trial(lambda: snippet.uploaded(target, turn.value, stream), gate=handle, reset=turn.reset)


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab_stream(lab, parameters["stream"])
    target = floats(lab, 1)
    message = [b""]

    def reset(number: int) -> object:
        message[0] = number.to_bytes(4, "little")
        return message[0]

    return Trial(lambda: snippet.uploaded(target.data.ptr, message[0], stream.ptr), gate=stream.ptr, reset=reset)


CASES = (
    Case(RULE, "refilled_staging_buffer", "torch", Experiment.DATA_RACE, _SECOND, "sl008_torch", _torch, _PARAMETERS, takes=_TAKES),
    Case(RULE, "refilled_staging_buffer", "cupy", Experiment.DATA_RACE, _SECOND, "sl008_cupy", _cupy, _PARAMETERS, takes=_TAKES),
    Case(RULE, "refilled_staging_buffer", "numba", Experiment.DATA_RACE, _SECOND, "sl008_numba", _numba, _PARAMETERS, takes=_TAKES),
    Case(
        RULE,
        "refilled_staging_buffer",
        "cuda-python",
        Experiment.DATA_RACE,
        _SECOND,
        "sl008_cuda_python",
        _cuda_python,
        _ONE,
        takes=_TAKES,
    ),
    Case(
        RULE,
        "refilled_staging_buffer",
        "cuda",
        Experiment.DATA_RACE,
        _SECOND,
        "sl008_cuda",
        _cuda,
        _ONE,
        takes=_TAKES,
    ),
)
