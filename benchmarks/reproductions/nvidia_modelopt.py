"""nvidia-modelopt 0.47.0: INT4, NF4 and implicit-GEMM operators launch on the default stream (SL002)."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from .streams import Extension, both_ways

PACKAGE, VERSION = "nvidia-modelopt", "0.47.0"
STANDS_IN = ""
FOLDER = "modelopt/torch/kernels/quantization"
QUANTIZE = Extension(
    "modelopt_cuda_ext",
    [f"{FOLDER}/gemm/tensor_quant.cpp", f"{FOLDER}/gemm/tensor_quant_gpu.cu", f"{FOLDER}/gemm/tensor_quant.h"],
    ["nvidia-modelopt-int4-nf4"],
)
CONVOLVE = Extension(
    "conv3d_implicit_gemm_cuda",
    [f"{FOLDER}/conv/implicit_gemm_binding.cpp", f"{FOLDER}/conv/implicit_gemm_kernel.cu"],
    ["nvidia-modelopt-conv3d"],
)
BLOCK, NUMBERS = 128, 4096 * 4096


def quantized(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """A matrix of 4,096 by 4,096 in blocks of 128: packed INT4 and NF4 to numbers, and numbers to INT4."""
    packed = torch.randint(0, 256, (NUMBERS // 2,), device="cuda", dtype=torch.uint8)
    numbers = torch.rand(NUMBERS, device="cuda", dtype=torch.half) + 0.5
    scales = torch.rand(NUMBERS // BLOCK, device="cuda", dtype=torch.half) + 1
    file = f"{FOLDER}/gemm/tensor_quant_gpu.cu"
    outcomes: dict[str, Any] = {}
    for place, name, given in (
        (f"{file}:302", "INT4_dequantize", [packed]),
        (f"{file}:189", "NF4_dequantize", [packed]),
        (f"{file}:361", "INT4_quantize", [numbers]),
    ):
        found = {kind: getattr(module, name) for kind, module in built.items()}
        operators = {kind: lambda values, operator=operator: operator(values, scales, BLOCK) for kind, operator in found.items()}
        outcomes |= both_ways(torch, place, operators, given)
    return outcomes


def convolved(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """A convolution of 3 by 3 by 3 over 16 channels of 18 by 18 by 18, to 32 channels, with a bias and no quantized activations."""
    size, out, channels, filters = 18, 16, 16, 32
    rows, width = out**3, channels * 27
    image = torch.rand(1, channels, size, size, size, device="cuda") + 0.5
    weights = torch.rand(width, filters, device="cuda")
    bias, none = torch.rand(filters, device="cuda"), torch.empty(0, device="cuda")
    shape = (1, channels, size, size, size, filters, out, out, out, 3, 3, 3, 1, 1, 1, 1, 1, 1, rows, width)
    operators = {
        kind: lambda values, module=module: module.conv3d_implicit_gemm_cuda(values, weights, bias, none, *shape, False, True, 16)
        for kind, module in built.items()
    }
    return both_ways(torch, f"{FOLDER}/conv/implicit_gemm_kernel.cu:594", operators, [image])


def run(tree: Path) -> dict[str, Any]:
    """The two extensions, with the package's own bindings."""
    import torch

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        quantize, convolve = pool.map(lambda each: each.build(tree, Path(scratch)), (QUANTIZE, CONVOLVE))
        return {**quantized(torch, quantize), **convolved(torch, convolve)}
