"""monai 1.6.1: the Gaussian mixture model's kernels and its copy are all on the default stream (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "monai", "1.6.1"
STANDS_IN = ""
FOLDER = "monai/_extensions/gmm"
EXTENSION = Extension(
    "gmm",
    [f"{FOLDER}/{name}" for name in ("gmm.cpp", "gmm_cpu.cpp", "gmm_cuda.cu")],
    ["monai-gmm"],
    flags=["-DCHANNEL_COUNT=1", "-DMIXTURE_COUNT=2", "-DMIXTURE_SIZE=3"],
)
SIDE = 96


def run(tree: Path) -> dict[str, Any]:
    """Two mixtures of three for an image of 96 by 96 by 96 with one channel: learned, and applied."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = EXTENSION.build(tree, Path(scratch))
        labels = torch.randint(0, 2, (1, 1, SIDE, SIDE, SIDE), device="cuda", dtype=torch.int)
        image = torch.rand(1, 1, SIDE, SIDE, SIDE, device="cuda") + labels * 3
        mixture, scratch_memory = built["repaired"].init()
        built["repaired"].learn(mixture, scratch_memory, image, labels)

        def learned(module: Any) -> Any:
            def call(given: Any) -> Any:
                made, memory = module.init()
                module.learn(made, memory, given, labels)
                return module.apply(made, image)

            return call

        applied = {kind: lambda given, module=module: module.apply(mixture, given) for kind, module in built.items()}
        return {
            **both_ways(torch, f"{FOLDER}/gmm_cuda.cu:490 apply", applied, [image]),
            **both_ways(
                torch, f"{FOLDER}/gmm_cuda.cu:445 learn", {kind: learned(each) for kind, each in built.items()}, [image], graph=False
            ),
        }
