"""What the engine sees of other files and of types: streams of classes in headers, extensions, constructors that wrap their own kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.engine import analyse
from streamlint.findings import Report
from streamlint.options import Options, Source

HEADER = """#pragma once
#include <cuda_runtime.h>

class Lane {
public:
    void work(float* data);
private:
    cudaStream_t stream_;
};
"""

BODY = """#include "lane.cuh"

__global__ void blur(float* image);

void Lane::work(float* data) { blur<<<1, 32>>>(data); }
"""

STABLE = """#include <cuda_runtime.h>
{include}

__global__ void blur(float* image);

void run(float* data{more}) {{ blur<<<1, 32>>>(data); }}
"""

WRAPS = """import torch


class Wrap(torch.nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return self.inner(x.cuda(non_blocking=True))


def patch(m, blocks):
    for block in blocks:
        m.a.fc1 = Wrap(m.a.fc1)
        m.a.fc1 = Wrap(m.a.fc1)
"""


def linted(folder: Path, files: dict[str, str]) -> Report:
    sources = []
    for name, text in files.items():
        (folder / name).write_text(text)
        sources.append(Source(str(folder / name), text, "python" if name.endswith(".py") else "cuda"))
    return analyse(sources, Options())


def codes(report: Report) -> list[str]:
    return [finding.code for finding in report.findings]


def test_a_class_of_a_header_has_a_stream(tmp_path: Path) -> None:
    assert codes(linted(tmp_path, {"lane.cuh": HEADER, "lane.cu": BODY})) == ["SL002"]
    assert codes(linted(tmp_path, {"lane.cuh": HEADER.replace("cudaStream_t", "int"), "lane.cu": BODY})) == []


@pytest.mark.parametrize(
    ("include", "more"), [("#include <torch/csrc/stable/tensor.h>", ""), ("", ", const torch::stable::Tensor& like"), ("", "")]
)
def test_the_stable_interface_makes_an_extension(include: str, more: str, tmp_path: Path) -> None:
    report = linted(tmp_path, {"run.cu": STABLE.format(include=include, more=more)})
    assert ("SL002" in codes(report)) is bool(include or more)


def test_a_constructor_that_is_given_its_own_kind_ends(tmp_path: Path) -> None:
    report = linted(tmp_path, {"wrap.py": WRAPS})
    assert not report.problems
