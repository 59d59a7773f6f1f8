"""torch-points-kernels 0.7.0: sizes that are read on the default stream, and launches on it (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from . import busy, wrong_of
from .streams import KINDS, Extension, both_ways

PACKAGE, VERSION = "torch-points-kernels", "0.7.0"
STANDS_IN = "the three operators are built by themselves, behind a binding of our own"
SOURCES = ("ball_query.cpp", "ball_query_gpu.cu", "chamfer_dist.cpp", "chamfer_dist_gpu.cu", "metrics.cpp", "metrics_gpu.cu")
BINDING = """
#include "ball_query.h"
#include "chamfer_dist.h"
#include "metrics.h"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("ball_query_partial_dense", &ball_query_partial_dense);
  m.def("chamfer_dist", &chamfer_dist);
  m.def("chamfer_dist_grad", &chamfer_dist_grad);
  m.def("instance_iou_cuda", &instance_iou_cuda);
}
"""
EXTENSION = Extension(
    "points_cuda",
    [f"cuda/src/{name}" for name in SOURCES],
    ["torch-points-kernels-ball-query", "torch-points-kernels-chamfer", "torch-points-kernels-instance-iou"],
    binding=BINDING,
    include=["cuda/include"],
    flags=["-DVERSION_GE_1_3"],
)
CLOUDS, POINTS = 8, 1024


def neighbours(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """Up to 16 neighbours within 0.2 of each point, in eight clouds. The batch vectors stand there before the side stream is busy."""
    batch = torch.arange(CLOUDS, device="cuda").repeat_interleave(POINTS)
    points = torch.rand(CLOUDS * POINTS, 3, device="cuda")
    operators = {
        kind: lambda x, module=module: module.ball_query_partial_dense(x, points, batch, batch, 0.2, 16) for kind, module in built.items()
    }
    return both_ways(torch, "cuda/src/ball_query_gpu.cu:114", operators, [points], graph=False)


def distances(torch: Any, built: dict[str, Any]) -> dict[str, Any]:
    """The chamfer distance of 8 pairs of clouds."""
    first, second = (torch.rand(CLOUDS, POINTS, 3, device="cuda") + offset for offset in (1, 3))
    operators = {kind: lambda x, module=module: module.chamfer_dist(x, second)[:2] for kind, module in built.items()}
    return both_ways(torch, "cuda/src/chamfer_dist_gpu.cu:169", operators, [first])


def overlaps(torch: Any, module: Any) -> dict[str, Any]:
    """64 proposals against 40 true instances in 8 scenes: is the table as wide as it must be? The memory held 80s just before."""
    per_scene = POINTS // 8
    proposals = torch.arange(CLOUDS * POINTS, device="cuda")
    offsets = torch.arange(65, device="cuda") * per_scene
    batch = torch.arange(CLOUDS, device="cuda").repeat_interleave(POINTS)
    labels = torch.randint(1, 6, (CLOUDS * POINTS,), device="cuda")
    few = torch.full((CLOUDS,), 5, device="cuda")
    sizes = torch.full((CLOUDS * 10,), per_scene, device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()

    def trial() -> bool:
        with torch.cuda.stream(side):
            torch.full((64,), CLOUDS * 10, device="cuda")
            side.synchronize()
            busy(torch)
            shape = module.instance_iou_cuda(proposals, offsets, labels, sizes, few, batch).shape
            torch.cuda.synchronize()
        return tuple(shape) != (64, CLOUDS * 5)

    return wrong_of(trial)


def run(tree: Path) -> dict[str, Any]:
    """The three operators on a side stream that has work to do; the one that reads nothing back also in a captured graph."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        built = EXTENSION.build(tree, Path(scratch))
        return {
            **neighbours(torch, built),
            **distances(torch, built),
            "cuda/src/metrics.cpp:31 on a side stream": {kind: overlaps(torch, built[kind]) for kind in KINDS},
        }
