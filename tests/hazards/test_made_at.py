"""A thread that is made with a lambda over several rows is found where its making begins, not all over the lambda's body."""

from __future__ import annotations

import pytest

from streamlint.config.settings import Resolver, Settings
from streamlint.runner import linter

TEXT = """
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/torch.h>
#include <thread>

void blur(torch::Tensor field) {
  auto lane = c10::cuda::getStreamFromPool();
  c10::cuda::CUDAStreamGuard on(lane);
  auto soft = field.to(torch::kCUDA).mul(0.5);
  %s
  side.join();
}
"""
WORK = "soft.mul_(2);"


@pytest.mark.parametrize(
    ("making", "column", "end"),
    [
        (f"std::thread side([&] {{\n    {WORK}\n  }});", 3, "std::thread side([&] {"),
        (f"std::thread side{{[&] {{\n    {WORK}\n  }}}};", 3, "std::thread side{[&] {"),
        (f"std::thread side(\n      [&] {{ {WORK} }});", 3, "std::thread side("),
        (f"std::thread side([&] {{ {WORK} }});", 3, f"std::thread side([&] {{ {WORK} }});"),
        (f"auto side = std::thread{{[&] {{\n    {WORK}\n  }}}};", 15, "auto side = std::thread{[&] {"),
    ],
)
def test_the_first_row_is_told(making: str, column: int, end: str) -> None:
    report = linter.run_text((TEXT % making).encode(), "blur.cu", Resolver(Settings.of(select=["SL026"])))
    (finding,) = report.findings
    assert finding.span.at == (11, column, 11, 3 + len(end))
