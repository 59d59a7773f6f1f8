"""Which words of a module's own statements a function is led to: those that the names which it says stand for."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint import program as p
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program

MODULE = """import torch.multiprocessing as mp
from other import Graph
from torch.cuda import CUDAGraph as Kept, get_rng_state
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

def seeded():
    return get_rng_state()

@Kept.decorated
def decorated(x):
    return x
"""
WORDS = frozenset({"ultiprocessing", "CUDAGraph", "capture_begin", "set_allocator", "tream"})


def found(name: str, text: str = MODULE) -> set[str]:
    program = Program()
    file = program.add(lower("a.py", text), models.builtin("python"))
    function = next(function for function, _ in p.functions_of(file.module) if function.qualname == name)
    return set(file.relevance.found(function, WORDS))


REACHED = [
    ("plain", set()),
    ("puts", {"ultiprocessing"}),  # queue = mp.Queue()
    ("names_part", set()),  # a part of a word is no name
    ("calls", {"ultiprocessing"}),
    ("Base.uses", {"CUDAGraph"}),  # what another method assigns
    ("decorated", {"CUDAGraph"}),
    ("seeded", set()),  # what is imported beside it is another name
]


@pytest.mark.parametrize(("name", "words"), REACHED)
def test_the_words_behind_the_names_that_a_function_says(name: str, words: set[str]) -> None:
    assert found(name) == words


def test_names_that_are_not_known_may_stand_for_all() -> None:
    assert found("plain", "from torch.multiprocessing import *\n" + MODULE) == {"ultiprocessing"}


def test_a_call_among_the_modules_statements_counts_for_all() -> None:
    assert found("plain", MODULE + 'begin("capture_begin")\n') == {"capture_begin"}


def test_a_call_that_speaks_to_the_modules_own_names_counts_for_who_says_them() -> None:
    call = MODULE + 'queue.extend(["capture_begin"])\n'
    assert found("puts", call) == {"ultiprocessing", "capture_begin"}
    assert found("plain", call) == set()


def test_a_library_that_nothing_is_known_of_brings_nothing() -> None:
    use = "\n\ndef use(x):\n    return Thing(x)\n"
    assert found("use", "from pyscf.lib import StreamThing as Thing" + use) == set()
    assert found("use", "from .near import StreamThing as Thing" + use) == {"tream"}
    assert found("use", "from torch.cuda import Stream as Thing" + use) == {"tream"}
    assert found("use", "from torch.cuda import current_stream as Thing" + use) == set()


def test_an_allocator_counts_for_all_where_it_goes_to_the_driver() -> None:
    begin = "import cupy\n\ncupy.cuda.set_allocator({})\n\n\ndef plain(x):\n    return x\n"
    assert found("plain", begin.format("None")) == {"set_allocator"}
    assert found("plain", begin.format("cupy.get_default_memory_pool().malloc")) == set()
