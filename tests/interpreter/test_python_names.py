"""Names that C++ at hand makes known too, and that mean Python's own where they stand."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint import program as p
from streamlint.frontends.cuda import lower as lower_cuda
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program

BOUND = """#include <torch/extension.h>
void fill(at::Tensor x) { cudaMemset(x.data_ptr(), 0, 4); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("init", &fill); m.def("norm", &fill); }
"""
HEAD = """import torch
import _ext
from .weights import uniform
from . import weights as init
from .ops import norm as normed
"""
WEIGHTS = "def uniform(x):\n    return x\n"
OPS = "from _ext import norm\n"


def reached(text: str, name: str = "f") -> bool:
    """Whether a function may come by the C++."""
    program, rows = Program(), models.builtin("python")
    program.add(lower("app/weights.py", WEIGHTS), rows)
    program.add(lower("app/ops.py", OPS), rows)
    program.add(lower_cuda("app/bound.cpp", BOUND), models.builtin("cuda"))
    file = program.add(lower("app/a.py", HEAD + text), rows)
    function = next(function for function, _ in p.functions_of(file.module) if function.name == name)
    return file.relevance.holds((function,), frozenset({"cudaM"}))


MODEL = """class Model(torch.nn.Module):
    def __init__(self, norm):
        self.norm = {}
    def f(self, x):
        return self.norm(x)
"""


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    _ext.init(x)\n",
        "def f(x):\n    lib().init(x)\n",
        "def f(x):\n    normed(x)\n",  # a module of Python hands it on
        "try:\n    from _ext import norm\nexcept ImportError:\n    def norm(x): return x\ndef f(x):\n    norm(x)\n",
        "def f(x, norm):\n    norm(x)\n",
        MODEL.format("norm"),
        MODEL.format("_ext.norm"),
        MODEL.format("norm if norm else torch.nn.LayerNorm(4)"),
        "def f(self, x):\n    self.norm(x)\n",
        "def g(x):\n    return init.uniform(x)\ndef f(x):\n    return g(_ext.init(x))\n",
    ],
)
def test_it_may_be_cpp(text: str) -> None:
    assert reached(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f(x):\n    init.uniform(x)\n",
        "def f(x):\n    uniform(x)\n",
        "def norm(x): return x\ndef f(x):\n    norm(x)\n",
        "class init: pass\ndef f(x):\n    init()\n",
        MODEL.format("torch.nn.LayerNorm(4)"),
        MODEL.format("uniform(4)"),
        MODEL.format("None"),
    ],
)
def test_it_is_pythons(text: str) -> None:
    assert not reached(text)


LAUNCH = "def f(x):\n    kernel[2, 64](x)\n"


@pytest.mark.parametrize(
    ("text", "launches"),
    [
        ("from numba import cuda\n" + LAUNCH, True),
        ("import os, numba\n" + LAUNCH, True),
        ("import numpy\n" + LAUNCH, False),
    ],
)
def test_what_is_subscripted_is_launched_where_a_file_at_hand_imports_numba(text: str, launches: bool) -> None:
    program, rows = Program(), models.builtin("python")
    file = program.add(lower("a.py", "from b import kernel\n" + LAUNCH), rows)
    program.add(lower("b.py", text), rows)
    (function,) = file.module.functions["f"]
    assert file.relevance.holds((function,), frozenset({"]("})) == launches
