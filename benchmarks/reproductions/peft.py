"""peft 0.21.2: BOFT's block diagonal launches on the default stream, whatever the current stream is (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "peft", "0.21.2"
STANDS_IN = "`.type()` of a tensor, which PyTorch's dispatch no longer takes, is `.scalar_type()`"
PLACE = "peft/tuners/boft/fbd/fbd_cuda_kernel.cu:67"
FOLDER = "peft/tuners/boft/fbd"
EXTENSION = Extension(
    "fbd_cuda",
    [f"{FOLDER}/fbd_cuda.cpp", f"{FOLDER}/fbd_cuda_kernel.cu"],
    ["peft-boft-fbd"],
    substitutes={"(input.type()": "(input.scalar_type()", "(grad_output.type()": "(grad_output.scalar_type()"},
)


def run(tree: Path) -> dict[str, Any]:
    """Blocks of 8 by 8 for a layer of 1,024: the forward and the backward operator, as ``FastBlockDiag`` calls them."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = EXTENSION.build(tree, Path(scratch))
        blocks = torch.rand(4, 128, 8, 8, device="cuda") + 1
        gradient = torch.rand(4, 1024, 1024, device="cuda") + 1
        forward = {kind: module.forward for kind, module in built.items()}
        backward = {kind: lambda given, module=module: module.backward(given, blocks) for kind, module in built.items()}
        return {
            **both_ways(torch, f"{PLACE} forward", forward, [blocks]),
            **both_ways(torch, f"{PLACE} backward", backward, [gradient]),
        }
