"""Which words of a module's own statements a function is led to: those that the names which it says stand for."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program
from streamlint.interpreter.roots import roots_of

MODULE = """import torch.multiprocessing as mp
from other import Graph
from elsewhere import CUDAGraph as Kept
if True:
    queue = mp.Queue()
else:
    queue = None
if __name__ == "__main__":
    setup("capture_begin")

class Base(Graph):
    def quiet(self):
        self.held = Kept()

    def uses(self):
        return self.held

def plain(x):
    return x + 1

def puts(x):
    queue.put(x)

def names_part(x):
    return x.mp_rank

def calls(x):
    return puts(x)

@Kept.decorated
def decorated(x):
    return x
"""
WORDS = frozenset({"ultiprocessing", "CUDAGraph", "capture_begin"})


def found(name: str, text: str = MODULE) -> set[str]:
    program = Program()
    file = program.add(lower("a.py", text), models.builtin("python"))
    root = next(root for root in roots_of(file) if root.qualname == name)
    assert root.function is not None
    return set(file.relevance.found(root.function, WORDS))


REACHED = [
    ("plain", set()),
    ("puts", {"ultiprocessing"}),  # queue = mp.Queue()
    ("names_part", set()),  # a part of a word is no name
    ("calls", {"ultiprocessing"}),
    ("Base.uses", {"CUDAGraph"}),  # what another method assigns
    ("decorated", {"CUDAGraph"}),
]


@pytest.mark.parametrize(("name", "words"), REACHED)
def test_the_words_behind_the_names_that_a_function_says(name: str, words: set[str]) -> None:
    assert found(name) == words


def test_names_that_are_not_known_may_stand_for_all() -> None:
    assert found("plain", "from torch.multiprocessing import *\n" + MODULE) == {"ultiprocessing"}


def test_a_call_among_the_modules_statements_counts_for_all() -> None:
    assert found("plain", MODULE + 'begin("capture_begin")\n') == {"capture_begin"}
