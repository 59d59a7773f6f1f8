"""SL010: a thread that waits in a copy to pageable memory on the null stream holds every other thread's launches.

Measured on an H200 (driver 580.159): docs/cuda-model.md, "Who is held while one thread waits".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, floats, function, torch_module

RULE, NAME = "SL010", "pageable-d2h-stall"
_HELD = "another thread's launch on a stream of its own does not return before the copy has ended"
_COUNT = 4 << 20
_FACTS: dict[str, Any] = {"bytes": 4 * _COUNT, "direction": "d2h", "memory": "pageable", "stream": "null"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    field = lab.keep(torch_module().zeros(_COUNT, device="cuda"))
    return Trial(lambda: snippet.bring_home(field))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    field = floats(lab, _COUNT)
    return Trial(lambda: snippet.bring_home(field))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    field = floats(lab, _COUNT)
    bring_home = function(library, "bring_home", None, POINTER, SIZE)
    return Trial(lambda: bring_home(field.data.ptr, _COUNT))


CASES = (
    Case(RULE, "fetching_thread", "torch", Experiment.THREAD_HELD, _HELD, "sl010_torch", _torch, _FACTS),
    Case(RULE, "fetching_thread", "cupy", Experiment.THREAD_HELD, _HELD, "sl010_cupy", _cupy, _FACTS),
    Case(RULE, "fetching_thread", "cuda", Experiment.THREAD_HELD, _HELD, "sl010_cuda", _cuda, _FACTS),
)
