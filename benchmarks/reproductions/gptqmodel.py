"""gptqmodel 7.7.0: AWQ and ExLlamaV2 kernels launch on the default stream, between work on the current one (SL002)."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from . import busy, wrong_of
from .streams import KINDS, Extension, both_ways, differ, results

PACKAGE, VERSION = "gptqmodel", "7.7.0"
STANDS_IN = "the sources are built by themselves, behind bindings of our own; weights and scales are random"
ROOT = "gptqmodel_ext"
HALVES = [f"-U__CUDA_NO_{name}__" for name in ("HALF_OPERATORS", "HALF_CONVERSIONS", "HALF2_OPERATORS", "BFLOAT16_CONVERSIONS")]
AWQ = Extension(
    "gptqmodel_awq",
    [f"{ROOT}/awq/quantization/gemm_cuda_gen.cu", f"{ROOT}/awq/quantization/dequantize.cuh", f"{ROOT}/awq/quantization/gemm_cuda.h"],
    ["gptqmodel-awq-dequantize"],
    binding='#include "gemm_cuda.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("dequantize", &dequantize_weights_cuda); }\n',
    flags=["-DENABLE_BF16"],
    cuda_flags=HALVES,
)
GEMV = Extension(
    "gptqmodel_gemv",
    [f"{ROOT}/awq/quantization_new/gemv/gemv_cuda.cu"],
    ["gptqmodel-awq-gemv"],
    binding='#include "gemv_cuda.h"\nPYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("decode", &gemv_forward_cuda_decode); }\n',
    include=[f"{ROOT}/awq/quantization_new"],
    cuda_flags=HALVES,
)
REGISTRATION = "TORCH_LIBRARY("
MODULE = """PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("make_q_matrix", &make_q_matrix);
  m.def("gemm_half_q_half", &gemm_half_q_half);
}
"""
WIDTH, GROUP = 2048, 128


def exllama(tree: Path) -> Extension:
    """The extension behind its own functions, which are bound by pybind: two copies cannot register one operator."""
    return Extension(
        "gptqmodel_exllamav2",
        [f"{ROOT}/exllamav2/cuda/{name}" for name in ("q_matrix.cu", "q_gemm.cu")],
        ["gptqmodel-exllamav2-gemm", "gptqmodel-exllamav2-reconstruct"],
        binding=(tree / ROOT / "exllamav2" / "ext_gptq.cpp").read_text(encoding="utf-8").partition(REGISTRATION)[0] + MODULE,
        include=[f"{ROOT}/exllamav2"],
        flags=["-DENABLE_BF16"],
        cuda_flags=HALVES,
    )


def dequantized(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """The 4-bit weights of a layer of 2,048 by 2,048, made 16-bit ones as for a prompt of more than 1,024 tokens."""
    packed = torch.randint(1, 2**31 - 1, (WIDTH, WIDTH // 8), device="cuda", dtype=torch.int)
    zeros = torch.zeros(WIDTH // GROUP, WIDTH // 8, device="cuda", dtype=torch.int)
    scales = torch.rand(WIDTH // GROUP, WIDTH, device="cuda", dtype=torch.half) + 1
    operators = {
        kind: lambda given, module=module: module.dequantize(given, scales, zeros, 0, 0, 0, False) for kind, module in built.items()
    }
    return both_ways(torch, f"{ROOT}/awq/quantization/gemm_cuda_gen.cu:1228", operators, [packed])


def decoded(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """One token through a layer of 2,048 by 2,048, as in each step of decoding."""
    token = torch.rand(1, WIDTH, device="cuda", dtype=torch.half) + 0.5
    packed = torch.randint(1, 2**31 - 1, (WIDTH, WIDTH // 8), device="cuda", dtype=torch.int)
    scales = torch.rand(WIDTH // GROUP, WIDTH, device="cuda", dtype=torch.half) * 0.01 + 0.01
    zeros = -scales * 8
    operators = {
        kind: lambda given, module=module: module.decode(given, packed, scales, zeros, 1, WIDTH, WIDTH, GROUP)
        for kind, module in built.items()
    }
    return both_ways(torch, f"{ROOT}/awq/quantization_new/gemv/gemv_cuda.cu:288", operators, [token])


class Layer:
    """A matrix of the ExLlamaV2 kernels, with random weights. The scratch memory is shared, as it is between the layers of a model."""

    def __init__(self, torch: Any, module: Any, shared: Any, seed: int) -> None:
        draw = torch.Generator(device="cuda").manual_seed(seed)
        ints = {"device": "cuda", "dtype": torch.int, "generator": draw}
        self.torch, self.module = torch, module
        self.weight = torch.randint(1, 2**31 - 1, (WIDTH // 8, WIDTH), **ints)
        self.zeros = torch.randint(1, 2**31 - 1, (WIDTH // GROUP, WIDTH // 8), **ints)
        self.scales = torch.rand(WIDTH // GROUP, WIDTH, device="cuda", dtype=torch.half, generator=draw) * 0.01 + 0.01
        self.handle = module.make_q_matrix(self.weight, *[None] * 5, self.zeros, self.scales, None, shared)
        torch.cuda.synchronize()

    def __call__(self, given: Any) -> Any:
        out = self.torch.zeros(given.shape[0], WIDTH, device="cuda", dtype=self.torch.half)
        self.module.gemm_half_q_half(given, self.handle, out, False)
        return out


def prompted(torch: Any, first: Layer, second: Layer) -> dict[str, Any]:
    """256 tokens through two layers of 2,048 by 2,048 on a busy side stream: is the result of the first that of its own weights?"""
    tokens = torch.rand(256, WIDTH, device="cuda", dtype=torch.half) * 0.1
    expected = results(torch, [first(tokens), second(tokens)])
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        first(tokens), second(tokens)
    torch.cuda.synchronize()

    def trial() -> bool:
        with torch.cuda.stream(side):
            busy(torch)
            out = [first(tokens), second(tokens)]
        return differ(torch, results(torch, out), expected)

    return wrong_of(trial)


def run(tree: Path) -> dict[str, Any]:
    """The three extensions."""
    import torch

    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor() as pool:
        extensions = (AWQ, GEMV, exllama(tree))
        awq, gemv, llama = pool.map(lambda each: each.build(tree, Path(scratch)), extensions)
        shared = torch.empty(WIDTH * WIDTH, device="cuda", dtype=torch.half)
        layers = {kind: [Layer(torch, llama[kind], shared, seed) for seed in (1, 2)] for kind in KINDS}
        token = torch.rand(1, WIDTH, device="cuda", dtype=torch.half) + 0.5
        return {
            **dequantized(torch, awq),
            **decoded(torch, gemv),
            **both_ways(torch, f"{ROOT}/exllamav2/cuda/q_gemm.cu:85", {kind: layers[kind][0] for kind in KINDS}, [token]),
            f"{ROOT}/exllamav2/cuda/q_matrix.cu:485 on a side stream": {kind: prompted(torch, *layers[kind]) for kind in KINDS},
        }
