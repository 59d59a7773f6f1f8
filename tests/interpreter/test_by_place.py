"""Flags that are given by their place are marked where words are looked for."""

from __future__ import annotations

import pytest

from streamlint.interpreter.by_place import marked
from streamlint.operations import BY_PLACE

FLAGS = [
    "x.copy_(y, True)",
    "x.copy_(y, wait_not)",
    "x.copy_(y, not blocks)",
    "x.to(device, torch.float16, True)",
    "x.to(like, flags[0])",
    "x.to(\n    device,\n    dtype,\n    True,\n)",
    "x.to(f(a, b), True)",
    "x.to('a)', True)",
    "x.to(device, *rest)",
    "x.cuda(0, True)",
    "copy_(dst, src, true)",
    "x->to(options, true)",
    "x.to(torch::kCPU, torch::kFloat, true)",
    "x.to(device, kind == 1)",
]
NONE = [
    "x.copy_(y)",
    "x.copy_(y, non_blocking=True)",
    "x.to(device, torch.float16)",
    "x.to(device, self.dtype)",
    "x.to(device, x.dtype, copy=True)",
    "x.to(device, weight_type)",
    "x.to(torch::kCUDA, torch::kHalf)",
    "x.to(kCPU, x.scalar_type())",
    "x.to(device, **options)",
    "x.to(device,)",
    "x.to(pick(a, True))",
    "x.to(device, dtype",
    "goto(a, True)",
    "x.index_copy_(0, places, y)",
]


@pytest.mark.parametrize("code", FLAGS)
def test_a_flag_is_marked(code: str) -> None:
    found = marked(f"a, b\n{code}\nc, d")
    assert BY_PLACE in found
    assert found.replace(BY_PLACE, ",") == f"a, b\n{code}\nc, d"


@pytest.mark.parametrize("code", NONE)
def test_what_is_no_flag_is_left(code: str) -> None:
    assert marked(code) == code
