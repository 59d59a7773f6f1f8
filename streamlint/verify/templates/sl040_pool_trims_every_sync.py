"""SL040: what a round of a loop gives back to the default pool goes back to the driver when the round synchronizes.

The pool's own figure decides: after the last round it holds no memory (status 1), or it still does (status 0).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, function

RULE, NAME = "SL040", "pool-trims-every-sync"
_GIVEN_BACK = "the pool holds no memory after the synchronization of a round"
_DEARER = "a round that maps its memory anew costs more than the work"
_FACTS: dict[str, Any] = {"bytes": 64 << 20, "rounds": 3}
_THRESHOLD, _RESERVED = 4, 5  # cudaMemPoolAttrReleaseThreshold, cudaMemPoolAttrReservedMemCurrent
_TAKES = ("bytes",)


def _asked(lab: Lab, process: Callable[[Any], object]) -> Trial:
    """Run the loop; whether the default pool is empty behind it. The pool begins with the driver's own threshold each time."""
    runtime, stream = lab.runtime, lab.stream(blocking=False)
    pool = runtime.deviceGetDefaultMemPool(0)

    def reset(_round: int) -> object:
        runtime.deviceSynchronize()
        runtime.memPoolSetAttribute(pool, _THRESHOLD, 0)
        runtime.memPoolTrimTo(pool, 0)
        return None

    def call() -> object:
        process(stream)
        return int(runtime.memPoolGetAttribute(pool, _RESERVED) == 0)

    return Trial(call, reset=reset, expected=1)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    process = function(library, "process", None, ctypes.c_int, SIZE, POINTER)
    return _asked(lab, lambda stream: process(parameters["rounds"], parameters["bytes"], stream.ptr))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return _asked(lab, lambda stream: snippet.process(parameters["rounds"], parameters["bytes"], stream))


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return _asked(lab, lambda stream: snippet.run(parameters["rounds"], parameters["bytes"], stream.ptr))


_MANY = {**_FACTS, "rounds": 20}
CASES = (
    Case(RULE, "loop_synchronizes", "cuda", Experiment.ERROR, _GIVEN_BACK, "sl040_cuda", _cuda, _FACTS, takes=_TAKES),
    Case(RULE, "loop_synchronizes", "cupy", Experiment.ERROR, _GIVEN_BACK, "sl040_cupy", _cupy, _FACTS, takes=_TAKES),
    Case(RULE, "loop_synchronizes", "cuda-python", Experiment.ERROR, _GIVEN_BACK, "sl040_cuda_python", _cuda_python, _FACTS, takes=_TAKES),
    Case(RULE, "loop_maps_anew", "cuda", Experiment.COSTS, _DEARER, "sl040_cuda", _cuda, _MANY, takes=_TAKES, kinds=(OTHER_CLAIM,)),
)
