"""Which loops are hot, asked of the lowered program without a run, and where a piece of code stands in them."""

from __future__ import annotations

import textwrap

import pytest

from streamlint import program as p
from streamlint.findings import Span
from streamlint.frontends.python import lower
from streamlint.interpreter.at_hand import enclosing
from streamlint.interpreter.hot import is_hot
from streamlint.interpreter.index import File, Program, walk_module
from streamlint.interpreter.standing import Stand, each_round, way_to
from streamlint.interpreter.uses import is_avoidable
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


def stand_of(file: File) -> Stand:
    """Where ``READ()`` stands in the first loop."""
    loop = loops(file)[0]
    call = next(n for n in p.walk(loop) if isinstance(n, p.Call) and isinstance(n.function, p.Name) and n.function.id == "READ")
    function, owner = enclosing(file, loop)
    return Stand(file, function, owner, tuple(loop.body), loop, way_to(tuple(loop.body), Span("case.py", *call.name_at)))


@pytest.mark.parametrize(
    ("body", "each"),
    [
        ("READ()", True),
        ("if interval > 0: READ()", True),
        ("if i % 50 == 0: READ()", False),
        ("if verbose: READ()", False),
        ("if x is not None: READ()", True),
        ("if i % n: continue\n    READ()", False),
        ("if i % n: continue\n    opt.step(); opt.zero_grad()\n    READ()", True),
        ("if (i + 1) % n == 0:\n      opt.step(); opt.zero_grad(); READ()", True),
        ("if (i + 1) % n == 0: opt.step(); opt.zero_grad()\n    if (i + 1) % n == 0: READ()", True),
        ("y = i % n == 0\n    if y: READ()", False),
        ("y = READ() if i % n else 0", False),
        ("y = i % n == 0 and READ()", False),
        ("try:\n      pass\n    except ValueError:\n      READ()", False),
        ("for k in x: READ()", True),
    ],
)
def test_each_round(body: str, each: bool) -> None:
    stand = stand_of(file_of(f"def f(xs, opt, n, interval, verbose, x):\n  for i in xs:\n    {body}"))
    assert stand.loop is not None
    assert each_round(stand, stand.loop) is each


@pytest.mark.parametrize(
    ("body", "avoidable"),
    [
        ("READ()", True),
        ("total += READ()", True),
        ("rows.append(READ())", True),
        ("print(f'{READ()}')", True),
        ("write('loss', float(READ()), i)", True),
        ("shown = READ()\n    if i % 9 == 0: print(shown)", True),
        ("shown = READ()\n    if shown > 3: break", False),
        ("if READ() > 3: break", False),
        ("while READ(): pass", False),
        ("y = x[: READ()]", False),
        ("y = range(READ())", False),
        ("for k in READ(): pass", False),
        ("group['lr'] = READ()", False),
        ("stats['loss'] = READ()", True),
        ("return READ()", False),
    ],
)
def test_is_avoidable(body: str, avoidable: bool) -> None:
    stand = stand_of(file_of(f"def f(xs, rows, group, stats, x, write):\n  for i in xs:\n    {body}"))
    assert is_avoidable((stand,)) is avoidable
