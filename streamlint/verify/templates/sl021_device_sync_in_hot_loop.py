"""SL021: the whole device is waited for in each step of training, work on other streams included.

The gate stands on a non-blocking stream that the step does not use: only a wait for the device can be held by it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import ANY_KIND, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, floats, function, torch_module

RULE, NAME = "SL021", "device-sync-in-hot-loop"
_WAITS = "host waits for the device"
_KINDS = ("device", ANY_KIND)
_ROUNDS: dict[str, Any] = {"count": 4096, "rounds": 2}
_FACTS: dict[str, Any] = {"width": 64, "rows": 32, "steps": 2}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    busy = lab.stream(blocking=False)
    width, rows = parameters["width"], parameters["rows"]
    model = lab.keep(torch.nn.Linear(width, width).cuda())
    optimizer = lab.keep(torch.optim.SGD(model.parameters(), lr=0.01))
    batch = (torch.ones(rows, width, device="cuda"), torch.zeros(rows, width, device="cuda"))
    batches = lab.keep([batch] * parameters["steps"])
    return Trial(lambda: snippet.train(model, optimizer, batches), gate=busy.ptr)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    busy = lab.stream(blocking=False)
    field, mixed = floats(lab, parameters["count"]), floats(lab, parameters["count"])
    return Trial(lambda: snippet.relax(field, mixed, parameters["rounds"]), gate=busy.ptr)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    busy, stream = lab.stream(blocking=False), lab.stream(blocking=False)
    field = floats(lab, parameters["count"])
    solve = function(library, "solve", None, POINTER, ctypes.c_int, ctypes.c_int, POINTER)
    return Trial(lambda: solve(field.data.ptr, parameters["count"], parameters["rounds"], stream.ptr), gate=busy.ptr)


CASES = (
    Case(RULE, "synchronize_each_step", "torch", Experiment.HOST_WAITS, _WAITS, "sl021_torch", _torch, _FACTS, kinds=_KINDS),
    Case(RULE, "synchronize_each_round", "cupy", Experiment.HOST_WAITS, _WAITS, "sl021_cupy", _cupy, _ROUNDS, kinds=_KINDS),
    Case(RULE, "synchronize_each_round", "cuda", Experiment.HOST_WAITS, _WAITS, "sl021_cuda", _cuda, _ROUNDS, kinds=_KINDS),
)
