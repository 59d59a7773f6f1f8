"""super-gradients 3.7.1: a batch is given back to the loader's stream while the model still reads it (SL007)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import busy, wrong_of
from .reports import module_of

PACKAGE, VERSION = "super-gradients", "3.7.1"
STANDS_IN = "the module is loaded by itself, not through the package, whose other parts need more than this one"
PATH = "super_gradients/training/legacy/utils.py"
PLACE = f"{PATH}:45"
BATCHES, NUMBERS = 6, 4 << 20


def run(tree: Path) -> dict[str, Any]:
    """Six batches of 16 MiB from pinned memory, each read behind work that is still queued: are the sums those of the batches?"""
    import torch

    batches = [torch.full((NUMBERS,), float(index + 1)).pin_memory() for index in range(BATCHES)]
    expected = [float(index + 1) for index in range(BATCHES)]

    def trial(module: Any) -> bool:
        means = []
        for batch in module.PrefetchDataLoader(batches, torch.device("cuda")):
            busy(torch, 5)
            means.append(batch.mean())
            del batch
        return any(abs(found - right) > 0.01 for found, right in zip(torch.stack(means).tolist(), expected, strict=True))

    outcomes = {}
    for kind, names in (("released", ()), ("repaired", ("super-gradients-prefetch",))):
        module = module_of(tree, PATH, *names)
        outcomes[kind] = wrong_of(lambda module=module: trial(module))  # type: ignore[misc]
    return {PLACE: outcomes}
