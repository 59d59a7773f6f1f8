"""What the linting process does before it is asked for something: it imports its modules, and fills their caches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from streamlint.config.settings import Resolver, Settings
from streamlint.server import records
from streamlint.server.memory import Memory
from streamlint.server.project import Project

PYTHON, CUDA = "warm.py", "warm.cu"  # no files: nothing is read
SAMPLE = """\
import torch


class Loader:
    def __init__(self, n):
        self.host = torch.empty(n)

    def load(self):
        return self.host.to("cuda", non_blocking=True)


def read(x):
    host = x.cuda().to("cpu", non_blocking=True)
    for row in range(3):
        if row > 1:
            print(host.numpy(), torch.cuda.current_stream())
"""
KERNEL = """\
#include <cuda_runtime.h>

__global__ void fill(float* out) { out[0] = 1; }

void run(float* out, size_t n, cudaStream_t s) {
    for (int i = 0; i < 2; ++i) fill<<<1, 1, 0, s>>>(out);
    cudaMemcpyAsync(out, out, n, cudaMemcpyDeviceToDevice, s);
}
"""


def steps() -> Iterator[Callable[[], object]]:
    """The work in parts, what is needed first at the beginning; a job waits for one part at most."""
    project = Project(Path.cwd(), Resolver(Settings()), Memory(lambda: None), alone=True)
    project.put(PYTHON, SAMPLE, "python")
    project.put(CUDA, KERNEL, "cuda")

    def look(path: str) -> None:
        for report in project.lint(path).values():
            records.reported(report, project.open[path].text, "utf-16", str)

    def mend(path: str) -> None:
        report = project.open[path].report
        for finding in report.findings if report else ():
            project.repaired(path, finding)
            project.ignored(path, finding)

    yield lambda: look(PYTHON)
    yield lambda: mend(PYTHON)
    yield lambda: look(CUDA)
