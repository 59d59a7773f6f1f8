"""audiocraft 1.3.0: DAdaptAdam reads three sums for each parameter in each step (SL020)."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from .optimizers import compared

PACKAGE, VERSION = "audiocraft", "1.3.0"
STANDS_IN = "the optimizer is loaded by itself; the function that it asks whether FSDP is in use says no"
ALONE = True
PATH = "audiocraft/optim/dadam.py"


def run(tree: Path) -> dict[str, Any]:
    """With the optimizer's defaults, as MusicGen's configurations have them."""
    asked = ModuleType("audiocraft_optim.fsdp")
    asked.is_fsdp_used = lambda: False  # type: ignore[attr-defined]
    package = ModuleType("audiocraft_optim")
    package.__path__ = []
    sys.modules |= {"audiocraft_optim": package, "audiocraft_optim.fsdp": asked}
    return compared(tree, PATH, "DAdaptAdam", "audiocraft-dadapt-adam", f"{PATH}:175", package="audiocraft_optim")
