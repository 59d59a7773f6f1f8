"""colbert-ai 0.2.22: both CUDA operators of the residual codec launch on the default stream (SL002)."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "colbert-ai", "0.2.22"
STANDS_IN = ""
FOLDER = "colbert/indexing/codecs"
DECOMPRESS = Extension(
    "decompress_residuals", [f"{FOLDER}/decompress_residuals.cpp", f"{FOLDER}/decompress_residuals.cu"], ["colbert-decompress-residuals"]
)
PACK = Extension("packbits", [f"{FOLDER}/packbits.cpp", f"{FOLDER}/packbits.cu"], ["colbert-packbits"])
DIM, BITS, ROWS, CENTROIDS = 128, 2, 20_000, 1024


def tables(torch: Any) -> list[Any]:
    """The codec's two tables for two bits: bit patterns of a byte, reversed in groups, and the weights that a byte stands for."""
    values = torch.arange(256)
    groups = torch.stack([values >> shift & 3 for shift in (6, 4, 2, 0)], dim=1)
    swapped = (groups >> 1) | (groups & 1) << 1
    reverse = (swapped * torch.tensor([64, 16, 4, 1])).sum(dim=1)
    return [reverse.to(torch.uint8).cuda(), groups.to(torch.uint8).cuda()]


def run(tree: Path) -> dict[str, Any]:
    """20,000 passages' vectors of 128 numbers with two bits each, decompressed and packed."""
    import torch

    reverse, combinations = tables(torch)
    weights = torch.tensor([-0.5, -0.1, 0.1, 0.5], device="cuda", dtype=torch.half)
    centroids = torch.rand(CENTROIDS, DIM, device="cuda", dtype=torch.half) + 1
    residuals = torch.randint(0, 256, (ROWS, DIM * BITS // 8), device="cuda", dtype=torch.uint8)
    codes = torch.randint(0, CENTROIDS, (ROWS,), device="cuda", dtype=torch.int)
    bits = torch.randint(0, 2, (ROWS * 32,), device="cuda", dtype=torch.uint8)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        decompress, pack = pool.map(lambda each: each.build(tree, Path(scratch)), (DECOMPRESS, PACK))
        decompressed = {
            kind: lambda rows, ids, module=module: module.decompress_residuals_cpp(
                rows, weights, reverse, combinations, ids, centroids, DIM, BITS
            )
            for kind, module in decompress.items()
        }
        packed = {kind: module.packbits_cpp for kind, module in pack.items()}
        return {
            **both_ways(torch, f"{FOLDER}/decompress_residuals.cu:61", decompressed, [residuals, codes]),
            **both_ways(torch, f"{FOLDER}/packbits.cu:50", packed, [bits]),
        }
