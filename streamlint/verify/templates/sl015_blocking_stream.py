"""SL015: a blocking stream beside work on the null stream.

In C++ the program makes the stream itself, so that no gate can be put on it: it measures how long the null stream's work takes beside a
kernel of some milliseconds.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, floats, function

RULE, NAME = "SL015", "blocking-stream"
_SERIALISES = "the default stream's work does not start while the stream is shut"
_DEARER = "the default stream's work takes longer beside a blocking stream"
_FACTS: dict[str, Any] = {"stream": "blocking"}
_COUNT = 1024
_ROUNDS = 1_000_000


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    a, b = floats(lab, _COUNT), floats(lab, _COUNT)
    return Trial(lambda: snippet.step(a, b), gate=handle_of(snippet.side), watch=0)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    a, b = floats(lab, _COUNT), floats(lab, _COUNT)
    step = function(library, "step", ctypes.c_double, POINTER, POINTER, ctypes.c_int)
    return Trial(lambda: step(a.data.ptr, b.data.ptr, _ROUNDS))


CASES = (
    Case(RULE, "work_on_null_stream", "cupy", Experiment.STREAMS_SERIALISE, _SERIALISES, "sl015_cupy", _cupy, _FACTS),
    Case(RULE, "work_on_null_stream", "cuda", Experiment.COSTS, _DEARER, "sl015_cuda", _cuda, _FACTS),
)
