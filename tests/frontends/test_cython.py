"""Cython through its front end: places stay, what Python cannot say is kept beside, and a line that cannot be read costs itself."""

from __future__ import annotations

import ast

import pytest

from streamlint import program as p
from streamlint.frontends.cython import lower
from streamlint.frontends.cython_text import Declared, translate


@pytest.mark.parametrize(
    ("cython", "python"),
    [
        ("cimport numpy as np", "import  numpy as np"),
        ("from libc.stdint cimport intptr_t", "from libc.stdint  import intptr_t"),
        ("cdef int x", "0"),
        ("cdef int x = 5", "0;       x = 5"),
        ("cdef int a, b = 2, *c = NULL", "0;          b = 2;  c = NULL"),
        ("cdef double[:, ::1] view = array", "0;                  view = array"),
        ("x = <int>y", "x =      y"),
        ("x = <const float* const*>y", "x = " + 21 * " " + "y"),
        ("f(<void*>&x[0, 1], a & b)", "f(       ~x[0, 1], a & b)"),
        ("x = a <b> c", "x = a <b> c"),
        ("if a < b and c > d: pass", "if a < b and c > d: pass"),
        ("p = new Vector[int](len(x), &x[0])", "p =     Vector     (len(x), ~x[0])"),
        ("n = sizeof(float*) * 4", "n = sizeof(0     ) * 4"),
        ("m = 0xffffffffUL", "m = 0xffffffff"),
        ("DEF SIZE = 3", "0;  SIZE = 3"),
        ("s = '<int>x'  # cdef int y", "s = '<int>x'  # cdef int y"),
        ("def f(int a, double* b=NULL, *rest, Lane lane not None): pass", "def f(    a,         b=NULL, *rest,      lane         ): pass"),
        ("cdef inline int f(float x) except -1 nogil: return 1", "def             f(      x)                : return 1"),
        ("cpdef f(x: int = 3): pass", "def   f(x: int = 3): pass"),
        ("for i from 0 <= i < n: pass", "for i in _           : pass"),
    ],
)
def test_statements_keep_their_length(cython: str, python: str) -> None:
    made = translate(cython)
    assert len(made.text) == len(cython)
    assert made.text.rstrip() == python
    ast.parse(made.text)


BLOCKS = """
cdef extern from "pool.h" namespace "pools" nogil:
    ctypedef void* handle_t
    enum Kind:
        ONE
        TWO
    cdef cppclass Pool[T] "CPool":
        Pool(int size) except +
        void trim()
    int drain(handle_t h)
    int flush "pool_flush" (handle_t h)

cdef struct Pair:
    int a
    int b

cdef class Lane(object):
    cdef:
        Pool[int]* pool
        readonly int size
    cdef public str name

    def __cinit__(self, int size):
        cdef Pool[int] *made = NULL
        self.size = size

    cdef void drain(self, handle_t h) noexcept nogil:
        drain(h)

    cpdef int flush(self) except -1:
        return 0


cdef api int told(void* data) with gil:
    return 1
"""


def test_blocks() -> None:
    module = lower("lane.pyx", BLOCKS)
    assert not module.problems
    assert module.includes == ("pool.h",)
    lane = module.classes["Lane"]
    assert [(f.name, f.type and f.type.name, f.type and f.type.pointers) for f in lane.fields] == [
        ("pool", "Pool", 1),
        ("size", "int", 0),
        ("name", "str", 0),
    ]
    assert lane.methods["__init__"] == lane.methods["__cinit__"]
    hidden = {f.name for f, _ in p.functions_of(module) if any(isinstance(d, p.Name) and d.id == "cfunc" for d in f.decorators)}
    assert hidden == {"drain", "told"}
    (told,) = module.functions["told"]
    assert isinstance(told.body[0], p.With)
    assert isinstance(told.body[0].items[0][0], p.Name)


def test_places_and_types() -> None:
    module = lower("f.pyx", "def f(Lane lane, int* p, x):\n    g(<long>&p[0], NULL)\n")
    (function,) = module.functions["f"]
    assert [a.id if isinstance(a := param.annotation, p.Name) else None for param in function.params] == ["Lane", "int", None]
    (statement,) = function.body
    assert isinstance(statement, p.ExprStatement)
    call = statement.value
    assert isinstance(call, p.Call)
    assert call.name_at == (2, 5, 2, 6)
    first, second = (arg.value for arg in call.args)
    assert isinstance(first, p.AddressOf)
    assert first.at == (2, 13, 2, 18)
    assert isinstance(second, p.Const)
    assert second.value is None


def test_types_are_told_by_pointers() -> None:
    made = translate("cdef void f(const char* name, unsigned int n, Vec[int]& v): pass\n")
    assert made.headers[1].types == {"name": Declared("char", 1), "n": Declared("int", 0), "v": Declared("Vec", 1)}


def test_an_error_costs_its_statement() -> None:
    module = lower("f.pyx", "def f(x):\n    print x,\n    g(x)\n\ndef h(x):\n    exec \\\n      x\n    return x\n")
    assert [at[0] for at, _ in module.problems] == [2, 6]
    assert len(module.functions["f"][0].body) == 2
    assert len(module.functions["h"][0].body) == 2


def test_parallel_loops_run_without_the_gil() -> None:
    module = lower("f.pyx", "def f(int n):\n    for i in prange(n, nogil=True):\n        g(i)\n    for i in prange(n):\n        g(i)\n")
    assert [type(s) for s in module.functions["f"][0].body] == [p.With, p.Loop]


@pytest.mark.parametrize("word", ["readonly", "public"])
def test_sections_are_nested(word: str) -> None:
    text = f"cdef class Lane:\n    cdef:\n        int x\n        {word}:\n            int y\n        int z\n"
    lower("lane.pxd", text)
    assert translate(text).members["Lane"] == {name: Declared("int") for name in "xyz"}
