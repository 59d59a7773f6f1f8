"""deepspeed 0.19.8: the linear layers of inference v2 run on cuBLAS's default stream, whatever the current stream is (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "deepspeed", "0.19.8"
STANDS_IN = "blas.h is built by itself, behind a binding of our own"
FOLDER = "deepspeed/inference/v2/kernels/core_ops/blas_kernels"
BINDING = '#include "blas.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("blas_linear", &blas_linear); }\n'
EXTENSION = Extension("core_ops", [f"{FOLDER}/blas.h", f"{FOLDER}/blas_utils.h"], ["deepspeed-blas-linear"], binding=BINDING)
TOKENS, WIDTH = 256, 2048


def run(tree: Path) -> dict[str, Any]:
    """256 tokens through a layer of 2,048 by 2,048, as ``BlasLibLinear`` calls it."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = EXTENSION.build(tree, Path(scratch))
        weights = torch.rand(WIDTH, WIDTH, device="cuda", dtype=torch.half) * 0.1
        tokens = torch.rand(TOKENS, WIDTH, device="cuda", dtype=torch.half) * 0.1

        def linear(module: Any) -> Any:
            def call(given: Any) -> Any:
                out = torch.empty(TOKENS, WIDTH, device="cuda", dtype=torch.half)
                module.blas_linear(out, given, weights)
                return out

            return call

        return both_ways(torch, f"{FOLDER}/blas_utils.h:146", {kind: linear(module) for kind, module in built.items()}, [tokens])
