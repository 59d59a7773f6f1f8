"""Flags that are given by their place are marked where words are looked for."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.by_place import marked, unmarked
from streamlint.interpreter.index import Program
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
    "def copy_(tensor, other): pass",
]


@pytest.mark.parametrize("code", FLAGS)
def test_a_flag_is_marked(code: str) -> None:
    found = marked(f"a, b\n{code}\nc, d")
    assert BY_PLACE in found
    assert found.replace(BY_PLACE, ",") == f"a, b\n{code}\nc, d"


@pytest.mark.parametrize("code", NONE)
def test_what_is_no_flag_is_left(code: str) -> None:
    assert marked(code) == code


@pytest.mark.parametrize(
    ("code", "left"),
    [
        ("init.copy_(x, y)", 0),
        ("init.copy_(x, f(a.copy_(y, True)))", 1),
        ("init.to(x, y, z)", 0),
        ("x.copy_(y, z)", 1),
        ("self.init.copy_(y, z)", 1),
        ("f().copy_(y, z)", 1),
        ("init.copy_(x, y)\nx.copy_(y, z)", 1),
    ],
)
def test_a_function_of_a_module_has_no_flag(code: str, left: int) -> None:
    assert unmarked(marked(code), lambda name: name == "init").count(BY_PLACE) == left


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ("from . import fill as init", False),
        ("import fill as init", False),
        ("from .fill import weight as init", True),
        ("import elsewhere as init", True),
        ("", True),
    ],
)
def test_only_what_is_a_module_at_hand_is_one(head: str, says: bool) -> None:
    program, rows = Program(), models.builtin("python")
    program.add(lower("fill.py", "weight = make()\ndef copy_(x, y):\n    x.data = y\n"), rows)
    file = program.add(lower("a.py", f"{head}\ndef f(x, y):\n    init.copy_(x, y)\n"), rows)
    (function,) = file.module.functions["f"]
    assert bool(file.relevance.said.by(function, frozenset({BY_PLACE}))) is says
