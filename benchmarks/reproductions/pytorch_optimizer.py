"""pytorch-optimizer 4.1.0: RACS fetches two numbers for each parameter in each step (SL020)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from .optimizers import compared

PACKAGE, VERSION = "pytorch-optimizer", "4.1.0"
STANDS_IN = ""
ALONE = True
PATH = "pytorch_optimizer/optimizer/racs.py"


def run(tree: Path) -> dict[str, Any]:
    """With the optimizer's defaults."""
    sys.path.insert(0, str(tree))
    return compared(tree, PATH, "RACS", "pytorch-optimizer-racs", f"{PATH}:210", package="pytorch_optimizer.optimizer")
