"""espnet 202611: RWKV's attention kernel launches on the default stream (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "espnet", "202611"
STANDS_IN = "the kernels are bound by pybind alone: two copies cannot register one operator"
FOLDER = "espnet2/asr_transducer/decoder/modules/rwkv/cuda"
PLACE = f"{FOLDER}/wkv_cuda.cu:127"
REGISTRATION = "TORCH_LIBRARY("
LENGTH, WIDTH = 256, 512


def extension(tree: Path) -> Extension:
    """The kernels with the package's flags, and its binding without the registration of operators."""
    binding = (tree / FOLDER / "wkv_op.cpp").read_text(encoding="utf-8").partition(REGISTRATION)[0]
    flags = ["--maxrregcount", "60", "--use_fast_math", "-O3", "--extra-device-vectorization", f"-DTmax={LENGTH}"]
    return Extension("wkv", [f"{FOLDER}/wkv_cuda.cu"], ["espnet-rwkv-wkv"], binding=binding, cuda_flags=flags)


def run(tree: Path) -> dict[str, Any]:
    """Eight sequences of 256 steps and 512 channels through ``forward``, as ``WKVLinearAttention`` calls it."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = extension(tree).build(tree, Path(scratch))
        decay, first = -torch.rand(WIDTH, device="cuda") - 0.5, torch.rand(WIDTH, device="cuda")
        key, value = (torch.rand(8, LENGTH, WIDTH, device="cuda") + 0.5 for _ in range(2))

        def forward(module: Any) -> Any:
            def call(keys: Any, values: Any) -> Any:
                out = torch.empty_like(keys)
                module.forward(decay, first, keys, values, out)
                return out

            return call

        return both_ways(torch, PLACE, {kind: forward(module) for kind, module in built.items()}, [key, value])
