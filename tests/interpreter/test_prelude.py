"""Decisions of constructors: flipped where the body can notice, left alone where it cannot."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.explore import Explorer
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of
from streamlint.interpreter.run import Coverage, Settings

SENDER = """
import torch

class Base:
    def __init__(self, pinned):
        if pinned:
            self.base = torch.empty(8, pin_memory=True)
        else:
            self.base = torch.empty(8)

class Sender(Base):
    def __init__(self, pin, log, early, pinned):
        super().__init__(pinned)
        if pin:
            kind = torch.empty(8, pin_memory=True)
        else:
            kind = torch.empty(8)
        self.buffer = kind
        if log:
            self.record = torch.empty(8, pin_memory=True)
        self.pin = pin
        self.size = self._size(early)

    def _size(self, early):
        if early:
            return torch.empty(8, pin_memory=True).numel()
        self.late = torch.empty(8).to("cuda")
        return 0

    def quiet(self):
        return torch.cuda.current_stream()

    def send(self):
        return self.buffer.to("cuda", non_blocking=True)

    def asks(self):
        return torch.zeros(1).cuda() if self.pin else None

    def sized(self):
        return torch.zeros(self.size).cuda()

    def based(self):
        return self.base.to("cuda", non_blocking=True)
"""


def flipped(method: str) -> set[str]:
    """The parameters of the constructor that some path of a method decides the other way."""
    program = Program()
    file = program.add(lower("sender.py", SENDER), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == f"Sender.{method}")
    explorer = Explorer(program, root, Coverage(), Settings())
    runs = list(explorer.paths())
    return {atom.rpartition(":")[2] for run in runs for atom in run.forced}


@pytest.mark.parametrize(
    ("method", "noticed"),
    [
        ("quiet", set()),
        ("send", {"pin"}),  # through a local variable
        ("asks", {"pin"}),  # the same condition again
        ("sized", {"early"}),  # through what a method returns
        ("based", {"pinned"}),  # in the constructor of the base
    ],
)
def test_a_constructor_takes_another_way_only_where_the_method_can_tell(method: str, noticed: set[str]) -> None:
    assert flipped(method) == noticed


def test_the_constructor_itself_takes_all_its_ways() -> None:
    assert {"pin", "log", "early", "pinned"} <= flipped("__init__")
