"""SL041: a kernel that may start before its predecessor has ended reads what the predecessor writes, and does not wait for it.

The first kernel lets its dependent start at once (``cudaTriggerProgrammaticLaunchCompletion``) and writes a while later: without the
wait the second one reads what was there before. Hopper or newer: older devices start the second kernel behind the first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, floats, function, host_floats
from streamlint.verify.templates._trials import COUNT, refilled

RULE, NAME = "SL041", "dependent-launch-without-wait"
_STALE = "data race: the dependent kernel reads before its predecessor has written"
_CYCLES = 2_000_000  # about a millisecond


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    if lab.runtime.getDeviceProperties(0)["major"] < 9:
        raise UnsupportedError("needs compute capability 9.0 for programmatic dependent launch")
    stream = lab.stream(blocking=False)
    source, between, out = (floats(lab, COUNT) for _ in range(3))
    host = host_floats(lab, COUNT, "pinned")
    arguments = (POINTER, POINTER, POINTER, POINTER, ctypes.c_int, ctypes.c_longlong, POINTER)
    pass_on = function(library, "pass_on", ctypes.c_float, *arguments)

    def call() -> object:
        return pass_on(source.data.ptr, between.data.ptr, out.data.ptr, host.ctypes.data, COUNT, _CYCLES, stream.ptr)

    return Trial(call, gate=stream.ptr, reset=refilled(source.fill, 2, between, more=1.0))


CASES = (Case(RULE, "predecessor_triggers_early", "cuda", Experiment.DATA_RACE, _STALE, "sl041_cuda", _cuda),)
