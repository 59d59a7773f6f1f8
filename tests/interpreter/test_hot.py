"""Which loops are hot, asked of the lowered program without a run."""

from __future__ import annotations

import textwrap

import pytest

from streamlint import program as p
from streamlint.frontends.python import lower
from streamlint.interpreter.hot import is_hot
from streamlint.interpreter.index import File, Program, walk_module
from streamlint.models import Models


def file_of(text: str) -> File:
    return Program().add(lower("case.py", "import torch\n" + textwrap.dedent(text)), Models())


def loops(file: File) -> list[p.Loop]:
    """In the order of their heads."""
    found = {id(n): n for n in walk_module(file.module) if isinstance(n, p.Loop)}
    return sorted(found.values(), key=lambda loop: loop.at)


STEP = "loss.backward(); opt.step(); opt.zero_grad()"


@pytest.mark.parametrize(
    ("text", "hot"),
    [
        (f"def f(xs, opt):\n  for loss in xs:\n    {STEP}", [True]),
        (f"def f(xs, opt):\n  for e in range(9):\n    for loss in xs:\n      {STEP}", [False, True]),
        (
            "def f(xs, opt):\n  for part in xs:\n    for loss in part:\n      loss.backward()\n    opt.step()\n    opt.zero_grad()",
            [True, True],
        ),
        ("def f(xs, opt):\n  while True:\n    scaler.scale(xs()).backward()", [True]),
        ("def f(xs, engine):\n  for x in xs:\n    engine.backward(engine(x))", [True]),
        ("def f(xs, scheduler):\n  for x in xs:\n    scheduler.step()", [False]),
        ("def f(xs, scaler, opt):\n  opt.zero_grad()\n  for x in xs:\n    scaler.step(opt)", [True]),
        ("def g(x):\n  x.backward()\ndef f(xs):\n  for x in xs:\n    g(x)", [True]),
        ("def g(xs):\n  for x in xs:\n    x.backward()\ndef f(xs):\n  for e in xs:\n    g(e)", [True, False]),
        ("class A:\n  def g(self, x):\n    x.backward()\n  def f(self, xs):\n    for x in xs:\n      self.g(x)", [True]),
        ("class A:\n  def backward(self, x):\n    return x + 1\n  def f(self, xs):\n    for x in xs:\n      self.backward(x)", [False]),
        (
            "import base\nclass S(base.Scheduler):\n  def step(self):\n    while self.left:\n      for x in self.xs:\n        x.go()",
            [False, False],
        ),
        ("class O(torch.optim.Optimizer):\n  def step(self):\n    for g in self.gs:\n      for q in g:\n        q.grad", [False, True]),
        ("class O:\n  def step(self):\n    for q in self.gs:\n      q.grad", [False]),
    ],
)
def test_is_hot(text: str, hot: list[bool]) -> None:
    file = file_of(text)
    assert [is_hot(loop, file) for loop in loops(file)] == hot
