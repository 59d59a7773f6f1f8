"""SL021: the whole device is waited for in each step of training, work on other streams included.

The gate stands on a non-blocking stream that the step does not use: only a wait for the device can be held by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL021", "device-sync-in-hot-loop"
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


CASES = (Case(RULE, "synchronize_each_step", "torch", Experiment.HOST_WAITS, "host waits for the device", "sl021_torch", _torch, _FACTS),)
