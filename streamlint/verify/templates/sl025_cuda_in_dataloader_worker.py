"""SL025: the worker of a loader is forked from a process that has used CUDA, and uses it itself.

PyTorch raises "Cannot re-initialize CUDA in forked subprocess" in the worker, and the loader hands it on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import raised, torch_module

RULE, NAME = "SL025", "cuda-in-dataloader-worker"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    lab.keep(torch_module().zeros(1, device="cuda"))
    return Trial(lambda: raised(snippet.first, "forked subprocess"), expected=1)


CASES = (Case(RULE, "item_on_device", "torch", Experiment.ERROR, "the worker raises (1)", "sl025_torch", _torch),)
