"""anomalib 2.7.0: StableAdamW fetches a norm for each parameter in each step (SL020)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .optimizers import compared

PACKAGE, VERSION = "anomalib", "2.7.0"
STANDS_IN = "the optimizer is loaded by itself"
ALONE = True
PATH = "anomalib/models/image/dinomaly/components/optimizer.py"


def run(tree: Path) -> dict[str, Any]:
    """With the options of Dinomaly."""
    options: dict[str, Any] = {"lr": 2e-3, "betas": (0.9, 0.999), "weight_decay": 1e-4, "amsgrad": True, "eps": 1e-10}
    return compared(tree, PATH, "StableAdamW", "anomalib-stable-adamw", f"{PATH}:206", **options)
