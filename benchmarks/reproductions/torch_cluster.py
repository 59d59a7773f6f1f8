"""torch-cluster 1.6.3: a size and a flag that are read on the default stream while the current stream makes them (SL002)."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from . import busy, replaced, wrong_of

PACKAGE, VERSION = "torch-cluster", "1.6.3"
STANDS_IN = "the two sources are built by themselves, behind a binding of our own"

BINDING = """
#include <torch/extension.h>
#include "{header}"
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {{ m.def("run", &{function}); }}
"""
REPAIRS = {
    "fps": {
        "auto out = torch::empty({out_size[0]}, out_ptr.options());": (
            "auto out = torch::empty({out_ptr[-1].item<int64_t>()}, out_ptr.options());"
        )
    },
    "graclus": {
        """cudaMemcpyFromSymbol(&done_h, done_d, sizeof(done_h), 0,
                       cudaMemcpyDeviceToHost);""": """cudaMemcpyFromSymbolAsync(&done_h, done_d, sizeof(done_h), 0,
                            cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);"""
    },
}
PLACES = {"fps": "csrc/cuda/fps_cuda.cu:96", "graclus": "csrc/cuda/graclus_cuda.cu:36"}


def build(tree: Path, name: str, mended: bool, scratch: Path) -> Any:
    """The operator, built from its own source."""
    from torch.utils import cpp_extension

    folder = tree / "csrc" / "cuda"
    text = (folder / f"{name}_cuda.cu").read_text(encoding="utf-8")
    kind = "repaired" if mended else "released"
    source, binding = scratch / f"{name}_{kind}.cu", scratch / f"{name}_{kind}_binding.cpp"
    source.write_text(replaced(text, REPAIRS[name]) if mended else text, encoding="utf-8")
    binding.write_text(BINDING.format(header=f"{name}_cuda.h", function=f"{name}_cuda"), encoding="utf-8")
    return cpp_extension.load(
        f"{name}_{kind}", [str(binding), str(source)], extra_include_paths=[str(folder), str(tree / "csrc")], extra_cflags=["-DWITH_CUDA"]
    ).run


def sampled(torch: Any, fps: Any) -> dict[str, Any]:
    """A quarter of 4,096 points in each of 8 clouds: is the result as long as it must be? A half was asked for just before."""
    points = torch.rand(8 * 4096, 3, device="cuda")
    ptr = torch.arange(9, device="cuda") * 4096
    half, quarter = (torch.full((8,), share, device="cuda") for share in (0.5, 0.25))
    side = torch.cuda.Stream()
    torch.cuda.synchronize()

    def trial() -> bool:
        with torch.cuda.stream(side):
            fps(points, ptr, half, False)
            side.synchronize()
            busy(torch)
            size = fps(points, ptr, quarter, False).numel()
            torch.cuda.synchronize()
        return size != 8 * 1024

    return wrong_of(trial)


def clustered(torch: Any, graclus: Any) -> dict[str, Any]:
    """A ring of 10,000 nodes: is each node in a cluster at the end? Unmatched ones stay below 0."""
    count = 10_000
    rowptr = torch.arange(count + 1, device="cuda") * 2
    nodes = torch.arange(count, device="cuda")
    col = torch.stack([(nodes - 1) % count, (nodes + 1) % count], dim=1).flatten().contiguous()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()

    def trial() -> bool:
        with torch.cuda.stream(side):
            graclus(rowptr, col, None)
            torch.cuda.synchronize()
            busy(torch)
            clusters = graclus(rowptr, col, None)
            torch.cuda.synchronize()
        return bool((clusters < 0).any())

    return wrong_of(trial)


def run(tree: Path) -> dict[str, Any]:
    """Both operators on a side stream that has work to do."""
    import torch

    with tempfile.TemporaryDirectory() as scratch:
        trials = {"fps": sampled, "graclus": clustered}
        return {
            PLACES[name]: {kind: trial(torch, build(tree, name, kind == "repaired", Path(scratch))) for kind in ("released", "repaired")}
            for name, trial in trials.items()
        }
