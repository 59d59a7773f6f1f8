"""fairscale 0.4.13: OffloadModel computes with parameters that are still on their way to the GPU (SL006)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from . import wrong_of
from .reports import module_of

PACKAGE, VERSION = "fairscale", "0.4.13"
STANDS_IN = "offload.py is loaded by itself, not through the package, whose other parts need an older PyTorch"
PATH = "fairscale/experimental/nn/offload.py"
PLACE = f"{PATH}:119"
WIDTH, LAYERS = 4096, 6


def run(tree: Path) -> dict[str, Any]:
    """Six layers of 4,096 by 4,096 in three shards. The weights change on the host between two passes, as in a step of an optimizer."""
    import torch

    torch.manual_seed(0)
    given = torch.rand(256, WIDTH, device="cuda") - 0.5

    def model() -> Any:
        return torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))

    def trial(offloaded: Any) -> bool:
        with torch.no_grad():
            for parameter in offloaded.parameters():
                parameter.copy_((torch.rand(WIDTH, 1) - 0.5) * (torch.rand(1, WIDTH) - 0.5) * 0.1)  # cheap to make, and another each time
            expected = given
            for parameter in offloaded.parameters():
                expected = expected @ parameter.cuda().t()
            torch.cuda.synchronize()
            found = offloaded(given)
            torch.cuda.synchronize()
            return not bool((found - expected).abs().max() <= 0.01 * expected.abs().max())

    outcomes = {}
    for kind, names in (("released", ()), ("repaired", ("fairscale-offload",))):
        offloaded = module_of(tree, PATH, *names).OffloadModel(model(), torch.device("cuda"), num_slices=3)
        trial(offloaded)
        outcomes[kind] = wrong_of(lambda offloaded=offloaded: trial(offloaded))  # type: ignore[misc]
    return {PLACE: outcomes}
