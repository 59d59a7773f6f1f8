"""SL029: a stream for each piece of work. Creating one is a call of the driver that takes its lock."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, floats, function, host_floats, numba_cuda

RULE, NAME = "SL029", "stream-churn"
_DEARER = "a new stream costs more than the work"
_FACTS: dict[str, Any] = {"rounds": 50}


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    blocks = [floats(lab, 256) for _ in range(parameters["rounds"])]
    return Trial(lambda: snippet.transform(blocks))


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda, rounds = numba_cuda(), parameters["rounds"]
    blocks = [host_floats(lab, 256, "pinned") for _ in range(rounds)]
    targets = lab.keep([cuda.device_array(256, dtype="float32") for _ in range(rounds)])
    return Trial(lambda: snippet.upload(blocks, targets))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    rounds = parameters["rounds"]
    blocks = floats(lab, 256 * rounds)
    transform = function(library, "transform", None, POINTER, ctypes.c_int, ctypes.c_int)
    return Trial(lambda: transform(blocks.data.ptr, 256, rounds))


CASES = (
    Case(RULE, "stream_in_loop", "cupy", Experiment.COSTS, _DEARER, "sl029_cupy", _cupy, _FACTS),
    Case(RULE, "stream_in_loop", "numba", Experiment.COSTS, _DEARER, "sl029_numba", _numba, _FACTS),
    Case(RULE, "stream_in_loop", "cuda", Experiment.COSTS, _DEARER, "sl029_cuda", _cuda, _FACTS),
)
