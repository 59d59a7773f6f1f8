"""What a method's own body may come by: a check is asked of it only where that may do what a finding begins with."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.analysis import Analysis
from streamlint.frontends.python import lower
from streamlint.interpreter import snapshots
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Settings
from streamlint.interpreter.stakes import Stake, Stakes
from streamlint.options import Options

MODEL = """
import threading
import torch
from parts import Copier, Copies, build

class Base:
    inherited = torch.nn.Identity()

    def keep(self, copier):
        self.lent = Copier()

class Model(Base):
    def __init__(self, copier, fast):
        self.side = torch.cuda.Stream()
        self.staging = torch.empty(4).pin_memory()
        self.copier = Copier()
        self.copies = Copies()
        self.built = build()
        self.move = self.over
        self.given = copier
        self.options = dict(non_blocking=True)
        self.width = 4

    def over(self, x):
        return x.to("cuda", non_blocking=True)

    def f(self, x):
        {}
"""
PARTS = """
import torch

class Copier:
    def __call__(self, x):
        return x.to("cuda", non_blocking=True)

    def width(self):
        return 4

class Copies:
    def __iter__(self):
        yield torch.ones(4).to("cuda", non_blocking=True)

    def __enter__(self):
        torch.ones(4).to("cuda", non_blocking=True)

    def __exit__(self, *args):
        pass

class Adder:
    def __call__(self, x):
        return x + 1

def build():
    return Copier() if torch.cuda.is_available() else Adder()
"""


def _program(body: str) -> tuple[Program, str]:
    program, rows = Program(), models.builtin("python")
    program.add(lower("parts.py", PARTS), rows)
    return program, program.add(lower("a.py", MODEL.format(body)), rows).path


def is_root(body: str) -> bool:
    program, path = _program(body)
    names = {root.qualname for root in Analysis(program, Options(codes=frozenset({"SL001"}))).roots(program.files[path])}
    return "Model.f" in names


@pytest.mark.parametrize(
    "body",
    [
        "return x.to('cuda', non_blocking=True)",
        "return self.over(x)",
        "return self.move(x)",  # the method that it holds
        "return run(self.move, x)",
        "return self.copier(x)",
        "call = self.copier\n        return call(x)",
        "return list(map(self.copier, x))",
        "return self.lent(x)",  # what another method of its base gives it
        "return self.built(x)",
        "return [y + 1 for y in self.copies]",
        "with self.copies:\n            return x + 1",
        "return x.to('cuda', **self.options)",
        "return self.staging.sum()",
        "return torch.ones(4, device='cuda')",
    ],
)
def test_a_body_that_may_copy_is_run(body: str) -> None:
    assert is_root(body)


@pytest.mark.parametrize(
    "body",
    [
        "return x + 1",
        "return self.width + x",
        "self.width = x",
        "return self.copier.width()",
        "return self.copier is None",
        "return self.given(x)",
        "return self.inherited(x)",
    ],
)
def test_one_that_cannot_is_not_whatever_makes_its_object(body: str) -> None:
    assert not is_root(body)


THREAD = """
import threading
import torch

class Model:
    def __init__(self, fast, other):
        if fast:
            self.size = torch.empty(3).pin_memory()
        else:
            self.size = torch.empty(4).pin_memory()
            threading.{}
        self.other = other

    def f(self, x):
        return self.size + x
"""


@pytest.mark.parametrize(("does", "ended"), [("Thread(target=print).start()", 0), ("stack_size(4)", 1)])
def test_a_path_whose_object_starts_no_thread_ends_before_such_a_body(does: str, ended: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "FEWEST_STEPS", 0)
    program = Program()
    file = program.add(lower("a.py", THREAD.format(does)), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == "Model.f")
    met: list[snapshots.Made] = []
    real = snapshots.Unnoticed.__init__
    monkeypatch.setattr(snapshots.Unnoticed, "__init__", lambda self, kept: (met.append(kept), real(self, kept))[1])
    stake = Stake(lambda operation: False, ("hread",), only_threads=True)
    list(Explorer(program, root, Coverage(), Settings(), Stakes(lambda: (stake,))).paths())
    assert len(met) == ended
