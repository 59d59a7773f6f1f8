"""SL022: a small tensor is pinned for a single copy.

Measured on an H200 (driver 580.159, PyTorch 2.11), host time of a copy with the pinning and without, medians of 25 runs in turns: 64 B to
16 KB 11.2 to 13.0 us against 5.6 to 6.6 us (twice as much), 64 KB 15.7 against 11.5 us, 256 KB 39.5 against 35.5 us, 1 MB 44 against
78 us, 4 MB 100 against 458 us: from 1 MB on it is faster.
"""

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


_DEARER = "costs more than a plain copy"
CASES = (Case(RULE, "small_fresh_tensors", "torch", Experiment.COSTS, _DEARER, "sl022_torch", _torch, {"bytes": 128}),)
