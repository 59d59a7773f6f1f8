"""mmcv 2.2.0: RoIAlignRotated launches on the default stream, whatever the current stream is (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from . import busy, replaced, wrong_of

PACKAGE, VERSION = "mmcv", "2.2.0"
STANDS_IN = (
    "the source is built by itself, behind a binding of our own; THC/THCAtomics.cuh, which PyTorch no longer has, is ATen/cuda/Atomic.cuh"
)
PLACE = "mmcv/ops/csrc/pytorch/cuda/roi_align_rotated_cuda.cu:17"

BINDING = """
#include <torch/extension.h>
void ROIAlignRotatedForwardCUDAKernelLauncher(
    const at::Tensor input, const at::Tensor rois, const float spatial_scale, const int sampling_ratio, const bool aligned,
    const bool clockwise, const int channels, const int height, const int width, const int num_rois, const int pooled_height,
    const int pooled_width, at::Tensor output);
void run(at::Tensor input, at::Tensor rois, at::Tensor output) {
  ROIAlignRotatedForwardCUDAKernelLauncher(input, rois, 1.0f, 2, true, false, input.size(1), input.size(2), input.size(3), rois.size(0),
                                           output.size(2), output.size(3), output);
}
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("run", &run); }
"""
REPAIR = {
    "<<<GET_BLOCKS(output_size), THREADS_PER_BLOCK>>>": (
        "<<<GET_BLOCKS(output_size), THREADS_PER_BLOCK, 0, at::cuda::getCurrentCUDAStream()>>>"
    )
}


def build(tree: Path, kind: str, scratch: Path) -> Any:
    """The launcher, built from its own source."""
    from torch.utils import cpp_extension

    sources = tree / "mmcv" / "ops" / "csrc"
    text = (sources / "pytorch" / "cuda" / "roi_align_rotated_cuda.cu").read_text(encoding="utf-8")
    source, binding = scratch / f"roi_{kind}.cu", scratch / f"roi_{kind}_binding.cpp"
    source.write_text(replaced(text, REPAIR) if kind == "repaired" else text, encoding="utf-8")
    binding.write_text(BINDING, encoding="utf-8")
    (scratch / "THC").mkdir(exist_ok=True)
    (scratch / "THC" / "THCAtomics.cuh").write_text("#include <ATen/cuda/Atomic.cuh>\n", encoding="utf-8")
    paths = [str(scratch), str(sources / "common"), str(sources / "common" / "cuda")]
    flags = ["-DMMCV_WITH_CUDA"]
    files = [str(binding), str(source)]
    return cpp_extension.load(f"roi_{kind}", files, extra_include_paths=paths, extra_cflags=flags, extra_cuda_cflags=flags).run


def inputs(torch: Any) -> tuple[Any, Any]:
    """512 boxes on a map of 256 by 128 by 128."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    features = torch.rand(1, 256, 128, 128, device="cuda", generator=generator)
    boxes = torch.rand(512, 6, device="cuda", generator=generator) * 100
    boxes[:, 0] = 0
    return features, boxes


def beside_side_stream(torch: Any, align: Any) -> dict[str, Any]:
    """The features are made on a side stream that is busy; the operator is called on the same stream."""
    features, boxes = inputs(torch)
    expected, out = (torch.empty(512, 256, 7, 7, device="cuda") for _ in range(2))
    align(features, boxes, expected)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()

    def trial() -> bool:
        out.zero_()
        made = torch.zeros_like(features)
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            busy(torch)
            made.copy_(features)
            align(made, boxes, out)
            torch.cuda.synchronize()
        return not torch.equal(out, expected)

    return wrong_of(trial)


def in_a_graph(torch: Any, align: Any) -> dict[str, Any]:
    """The operator is captured, and replayed with other features: is the result theirs?"""
    features, boxes = inputs(torch)
    given = torch.zeros_like(features)
    expected, out = (torch.empty(512, 256, 7, 7, device="cuda") for _ in range(2))
    align(features, boxes, expected)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        given + 0  # a graph with nothing in it cannot be replayed
        align(given, boxes, out)

    def trial() -> bool:
        out.zero_()
        given.copy_(features)
        graph.replay()
        torch.cuda.synchronize()
        return not torch.equal(out, expected)

    return wrong_of(trial)


def run(tree: Path) -> dict[str, Any]:
    """The operator on a side stream, and in a captured graph."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = {kind: build(tree, kind, Path(scratch)) for kind in ("released", "repaired")}
        torch.cuda.synchronize()
        return {
            f"{PLACE} on a side stream": {kind: beside_side_stream(torch, align) for kind, align in built.items()},
            f"{PLACE} in a captured graph": {kind: in_a_graph(torch, align) for kind, align in built.items()},
        }
