"""SL016: the macro for per-thread default streams in a ``.cu`` file.

nvcc has read ``cuda_runtime_api.h`` before the macro is defined, so a launch without a stream is one on the legacy null stream: it waits
for blocking streams, and they wait for it. A per-thread default stream is a barrier for none of them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, floats, function

RULE, NAME = "SL016", "ptds-macro-ineffective"
_SERIALISES = "the default stream is the legacy one: streams serialise around a launch on it"
_COUNT = 1024


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    left, right = lab.stream(blocking=True), lab.stream(blocking=True)
    x = floats(lab, _COUNT)
    step = function(library, "step", None, POINTER, ctypes.c_int)
    return Trial(lambda: step(x.data.ptr, _COUNT), gate=left.ptr, watch=right.ptr)


CASES = (Case(RULE, "macro_in_cuda_source", "cuda", Experiment.STREAMS_SERIALISE, _SERIALISES, "sl016_cuda", _cuda),)
