"""Which classes' methods a root may come by: those whose class something on its way names, so that an object of it may be there."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint import program as p
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program

CACHES = """
import torch

class Cache:
    def put(self, x):
        return x.to("cuda", non_blocking=True)

class Dynamic(Cache):
    pass
"""
HEAD = """
import torch
import dataclasses
import nowhere as shared
from typing import Optional, Union
from caches import Cache, Dynamic
from tables import KINDS, MORE, make, setup

LOCAL = {"a": Dynamic}
OTHER = wrap(LOCAL)
SIZES = {"a": 4}

@dataclasses.dataclass
class Out:
    cache: Cache | None = None

class Holder:
    kinds = LOCAL

class Given:
    cache: Cache

class Own:
    def __init__(self):
        self.cache = KINDS["a"]()

    def own(self, x):
        return self.cache.put(x)

"""
TABLES = """
from caches import Dynamic
KINDS = {"a": Dynamic}
MORE = dict(KINDS)
shared = KINDS

def make(kind):
    return KINDS[kind]()

def setup(x):
    return x
"""


def is_reached(function: str, name: str = "f", tables: str = TABLES) -> bool:
    program, rows = Program(), models.builtin("python")
    program.add(lower("caches.py", CACHES), rows)
    program.add(lower("tables.py", tables), rows)
    file = program.add(lower("a.py", HEAD + function), rows)
    found = next(function for function, _ in p.functions_of(file.module) if function.name == name)
    return "non_blocking" in file.relevance.found(found, frozenset({"non_blocking"}))


@pytest.mark.parametrize(
    "function",
    [
        "def f(cache: Cache, x):\n    cache.put(x)\n",
        "def f(caches: list[Cache], x):\n    caches[0].put(x)\n",
        "def f(cache: Cache | None, x):\n    cache = cache or Cache()\n    cache.put(x)\n",
        "def f(cache, x):\n    isinstance(cache, Dynamic) and cache.put(x)\n",
        "def f(kind, x):\n    LOCAL[kind]().put(x)\n",
        "def f(kind, x):\n    OTHER[kind]().put(x)\n",
        "def f(kind, x):\n    KINDS[kind]().put(x)\n",
        "def f(kind, x):\n    MORE[kind]().put(x)\n",
        "def f(kind, x):\n    make(kind).put(x)\n",
        "def f(kind, x):\n    Holder.kinds[kind]().put(x)\n",
        "def f(given: Given, x):\n    given.cache.put(x)\n",
    ],
)
def test_it_may_be_there(function: str) -> None:
    assert is_reached(function)


@pytest.mark.parametrize(
    "function",
    [
        "def f(cache, x):\n    cache.put(x)\n",
        "def f(cache: Cache | None, x):\n    cache.put(x)\n",  # it is None or not: no object is made of it
        "def f(cache: Optional[Cache], x):\n    cache.put(x)\n",
        "def f(cache: Union[Cache, Dynamic], x):\n    cache.put(x)\n",
        "def f(out: Out, x):\n    out.cache.put(x)\n",
        "def f(cache, x):\n    cache.put(x, SIZES)\n",
        "def f(cache, x):\n    setup(cache).put(x)\n",
        "def f(cache, x):\n    shared.of(cache).put(x)\n",  # a library's, and no name of another file
    ],
)
def test_it_cannot(function: str) -> None:
    assert not is_reached(function)


def test_what_the_object_holds_counts() -> None:
    assert is_reached("", "own")


def test_a_statement_that_gives_no_name_counts_for_all() -> None:
    assert is_reached("def f(cache, x):\n    cache.put(x)\n", tables=TABLES + "register(Dynamic)\n")
