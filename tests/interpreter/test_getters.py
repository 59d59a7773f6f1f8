"""Functions that only hand something back are no roots; whatever may run code is one."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of

CLASS = """
import torch

class Trainer:
    def __init__(self, config, loss):
        self._config = config
        self._loss = loss

    @property
    def loss(self):
        return self._loss.item()

    {method}
"""


@pytest.mark.parametrize(
    ("method", "is_root"),
    [
        ("def size(self): return self._config.size", False),
        ('def size(self):\n        """The size."""\n        return self._config.size, 1', False),
        ("@property\n    def config(self): return self._config", False),
        ("def nothing(self): pass", False),
        ("def last(self): return self.loss", True),  # a property, which runs code
        ("def last(self): return self._loss.item()", True),
        ("def first(self): return self._loss[0]", True),  # an item may be fetched from the device
        ("def twice(self): return self._loss * 2", True),
        ("def known(self): return not self._loss", True),  # the truth of a tensor is
        ("def text(self): return f'{self._loss}'", True),
        ("@torch.compile\n    def size(self): return self._config.size", True),
        ("def let_go(self): self._loss = None", True),  # the last reference, perhaps
    ],
)
def test_only_what_does_something_is_a_root(method: str, is_root: bool) -> None:
    program = Program()
    file = program.add(lower("trainer.py", CLASS.replace("{method}", method)), models.builtin("python"))
    names = {root.qualname for root in roots_of(file)}
    assert "Trainer.loss" in names
    assert (len(names - {"Trainer.__init__", "Trainer.loss", "<module>"}) == 1) == is_root
