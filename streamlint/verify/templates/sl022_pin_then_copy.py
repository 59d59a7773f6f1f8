"""SL022: a small tensor is pinned for a single copy. PyTorch's tutorial calls it up to twice as slow; for large tensors it was faster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL022", "pin-then-copy"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    rows = [[number] * 16 for number in range(200)]
    return Trial(lambda: lab.keep(snippet.upload(rows)))


CASES = (Case(RULE, "small_fresh_tensors", "torch", Experiment.COSTS, "costs more than a plain copy", "sl022_torch", _torch),)
