"""SL020: a value is fetched in each step of training. The step that reads its loss cannot return before the GPU has done its work.

Measured on an H200 (driver 580.159, CUDA 13.0, PyTorch 2.11): ``item()`` and a blocking upload of a constant wait for the current stream.
The gate stands on the null stream, which is torch's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import ANY_KIND, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL020", "hidden-sync-in-hot-loop"
_WAITS = "host waits for the work of the step"
_READ, _UPLOAD = ("read", ANY_KIND), ("upload",)
_FACTS: dict[str, Any] = {"width": 64, "rows": 32, "steps": 2}


def _parts(lab: Lab, parameters: Mapping[str, Any], classes: bool) -> tuple[Any, Any, Any, list[Any]]:
    """torch, a model, its optimizer, and batches that are on the device already."""
    torch = torch_module()
    width, rows = parameters["width"], parameters["rows"]
    model = lab.keep(torch.nn.Linear(width, 2 if classes else width).cuda())
    optimizer = lab.keep(torch.optim.SGD(model.parameters(), lr=0.01))
    made = []
    for _ in range(parameters["steps"]):
        inputs = torch.ones(rows, width, device="cuda")
        targets = torch.zeros(rows, dtype=torch.long, device="cuda") if classes else torch.zeros(rows, width, device="cuda")
        made.append((inputs, targets))
    return torch, model, optimizer, lab.keep(made)


def _read(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    _, model, optimizer, batches = _parts(lab, parameters, classes=False)
    return Trial(lambda: snippet.train(model, optimizer, batches))


def _upload(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch, model, optimizer, batches = _parts(lab, parameters, classes=True)
    device = torch.device("cuda")
    return Trial(lambda: snippet.train(model, optimizer, batches, device))


CASES = (
    Case(RULE, "loss_read_each_step", "torch", Experiment.HOST_WAITS, _WAITS, "sl020_torch", _read, _FACTS, kinds=_READ),
    Case(
        RULE,
        "constant_uploaded_each_step",
        "torch",
        Experiment.HOST_WAITS,
        _WAITS,
        "sl020_torch_upload",
        _upload,
        _FACTS,
        kinds=_UPLOAD,
    ),
)
