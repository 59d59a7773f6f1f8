"""The Python front end: what code becomes, where it stands, and what is refused."""

from __future__ import annotations

import random
import re
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from streamlint.frontends import UnreadableSource
from streamlint.frontends.python import lower
from streamlint.program import (
    NOWHERE,
    Arg,
    Attr,
    Call,
    Case,
    Class,
    Clause,
    Const,
    Expression,
    Field,
    Function,
    Handler,
    Index,
    Loop,
    Module,
    Name,
    Node,
    Param,
    Pattern,
    Statement,
    walk,
)


def dump(node: object) -> str:
    """A short text of a lowered node: names, constants, calls and attributes as code, anything else as ``Kind(fields that are set)``."""
    match node:
        case Name():
            return node.id
        case Const():
            return repr(node.value)
        case Attr():
            return f"{dump(node.value)}.{node.name}"
        case Call():
            return f"{dump(node.function)}({', '.join(map(dump, node.args))})"
        case Arg():
            return "*" * node.stars + (f"{node.keyword}=" if node.keyword else "") + dump(node.value)
        case Function():
            return f"{node.qualname}({', '.join(map(dump, node.params))}): {dump(node.body)}"
        case Param():
            star = {"plain": "", "star": "*", "double": "**", "keyword": "kw "}[node.kind]
            return star + node.name + (f": {dump(node.annotation)}" if node.annotation else "") + default(node)
        case list() | tuple():
            return f"[{', '.join(map(dump, node))}]"
        case Node() | Clause() | Handler() | Field() | Case() | Pattern():
            values = (getattr(node, item.name) for item in fields(node) if item.name != "at")
            return f"{type(node).__name__}({', '.join(dump(value) for value in values if value not in (None, [], (), {}, '', False, -1))})"
    return str(node)


def default(param: Param) -> str:
    return f"={dump(param.default)}" if param.default else ""


def lowered(source: str) -> str:
    return "; ".join(map(dump, lower("sample.py", source).body))


def everything(module: Module) -> Iterator[object]:
    """All nodes, values of class fields and nested classes included."""
    pending: list[object] = list(module.body)
    while pending:
        for node in walk(pending.pop()):
            yield node
            if isinstance(node, Class):
                pending += [value for item in node.fields for value in (item.value, item.annotation) if value]
                pending += node.classes.values()


EXPRESSIONS = {
    "torch.cuda.Stream()": "torch.cuda.Stream()",
    "f(*a, b, k=1, **kw)": "f(*a, b, k=1, **kw)",
    "f(x for x in y)": "f(Comprehension(generator, x, [Clause(x, y)]))",
    "k[grid, block, s](x)": "Index(k, [grid, block, s])(x)",
    "x[1:n, ::2, ..., *i]": "Index(x, [Slice(1, n), Slice(2), Ellipsis, Starred(i)])",
    "x[:]": "Index(x, [Slice()])",
    "-x ** ~2": "Unary(-, Binary(**, x, Unary(~, 2)))",
    "a @ b // c << 1": "Binary(<<, Binary(//, Binary(@, a, b), c), 1)",
    "not a and b and c or d": "Bool(or, [Bool(and, [Unary(not, a), b, c]), d])",
    "a is not b": "Compare(is not, a, b)",
    "a not in b": "Compare(not in, a, b)",
    "0 <= i < n": "Bool(and, [Compare(<=, 0, i), Compare(<, i, n)])",
    "x if c else y": "Conditional(c, x, y)",
    "(n := f())": "AssignExpr(n, f())",
    "[1, *xs]": "Collection(list, [1, Starred(xs)])",
    "(1,)": "Collection(tuple, [1])",
    "()": "Collection(tuple)",
    "{1, 2}": "Collection(set, [1, 2])",
    "{'a': 1, **rest}": "Mapping([['a', 1], [None, rest]])",
    "[x.to(d) for x in xs if x if y for z in x]": "Comprehension(list, x.to(d), [Clause(x, xs, [x, y]), Clause(z, x)])",
    "{x for x in y}": "Comprehension(set, x, [Clause(x, y)])",
    "{k: v for k, v in d.items()}": "Comprehension(dict, Mapping([[k, v]]), [Clause(Collection(tuple, [k, v]), d.items())])",
    "lambda a, *b, c=1, **d: a": "Lambda(<lambda>(a, *b, kw c=1, **d): [Return(a)])",
    "f'{a!r:>{w}} {b():{c}.{d}}'": "Format([a, w, b(), c, d])",
    "f'plain'": "Format([plain])",
    "'a' f'{x}' 'b'": "Format([x], [a, b])",
    "True, None": "Collection(tuple, [True, None])",
    "...": "Ellipsis",
}
CONSTANTS = {
    "0x_ff": 255,
    "1_000": 1000,
    "0b11": 3,
    "0o17": 15,
    "00": 0,
    "1e3": 1000.0,
    ".5_0": 0.5,
    "2.5J": 2.5j,
    "0xe": 14,
    r"'a\n\x41\u00e9\101\q'": "a\nA\u00e9A\\q",
    r"'\N{BULLET}'": "\u2022",
    r"r'\n'": r"\n",
    r"b'\xff\u1234'": b"\xff\\u1234",
    "'''a\r\nb\\\r\nc'''": "a\nbc",
    "('a' \"b\" r'\\c')": "ab\\c",
    "(b'a' b'b')": b"ab",
}


@pytest.mark.parametrize("source", EXPRESSIONS)
def test_expression(source: str) -> None:
    assert lowered(f"v = {source}\n") == f"Assign([v], {EXPRESSIONS[source]})"


@pytest.mark.parametrize("source", CONSTANTS)
def test_constant(source: str) -> None:
    value = lower("sample.py", f"v = {source}\n").body[0].value  # type: ignore[attr-defined]
    assert value.value == CONSTANTS[source]
    assert type(value.value) is type(CONSTANTS[source])


STATEMENTS = {
    "a = b = 1": "Assign([a, b], 1)",
    "a, *b = c": "Assign([Collection(tuple, [a, Starred(b)])], c)",
    "a: int = 1": "Assign([a], 1, int)",
    "a: int": "Assign([a], int)",
    "a.x //= 2": "Assign([a.x], 2, //)",
    "a @= b; c >>= d": "Assign([a], b, @); Assign([c], d, >>)",
    "pass": "",
    "'text on its own'": "",
    "del a, b[0]": "Delete([a, Index(b, [0])])",
    "del a": "Delete([a])",
    "assert x, 'message'": "Assert(x)",
    "raise": "Raise()",
    "raise E(1) from e": "Raise(E(1))",
    "global a, b": "Scope([a, b], True)",
    "nonlocal a": "Scope([a])",
    "if a: b()\nelif c: d()\nelse: e()": ("If(a, [ExprStatement(b())], [If(c, [ExprStatement(d())], [ExprStatement(e())])])"),
    "while a:\n  break\nelse:\n  b()": "Loop(while, [Break()], a, [ExprStatement(b())])",
    "for i, x in f():\n  continue": "Loop(for, [Continue()], Collection(tuple, [i, x]), f())",
    "with a as b, c: d()": "With([[a, b], [c, None]], [ExprStatement(d())])",
    "with (a() as b, c(),): d": "With([[a(), b], [c(), None]], [ExprStatement(d)])",
    "try: a\nexcept E as e: b\nexcept: c\nelse: d\nfinally: f": (
        "Try([ExprStatement(a)], [Handler(E, e, [ExprStatement(b)]), Handler([ExprStatement(c)])], [ExprStatement(d)], [ExprStatement(f)])"
    ),
    "try: a\nexcept* (E, F): b": "Try([ExprStatement(a)], [Handler(Collection(tuple, [E, F]), [ExprStatement(b)])], True)",
    "import numpy as np, torch.cuda": "Import([[np, numpy, None], [torch, torch, None]])",
    "from a.b import c as d, e": "Import([[d, a.b, c], [e, a.b, e]])",
    "from ..a import (b,)": "Import([[b, ..a, b]])",
    "from . import *": "Import([[*, ., *]])",
    "type Pair[T] = tuple[T, T]": "Assign([Pair], Index(tuple, [T, T]))",
    "match x:\n  case 1 | 'a': b\n  case None: c\n  case m.A: d\n  case _: e": (
        "Switch(x, [[[1, 'a'], [ExprStatement(b)]], [[None], [ExprStatement(c)]], [[m.A], [ExprStatement(d)]], [[], [ExprStatement(e)]]],"
        " [Case(Pattern(or, [Pattern(value, 1), Pattern(value, 'a')])), Case(Pattern(single, None)), Case(Pattern(value, m.A)),"
        " Case(Pattern(any))])"
    ),
    "match x:\n  case y if y > 1: pass\n  case [A(k=1), *rest] as z: pass\n  case {K.a: b, **c}: pass": (
        "Switch(x, [[[Unknown([Compare(>, y, 1)])], [Assign([y], x)]],"
        " [[Unknown([A, 1])], [Assign([rest], Unknown()), Assign([z], x)]],"
        " [[Unknown([K.a])], [Assign([b], Unknown()), Assign([c], Unknown())]]],"
        " [Case(Pattern(any, y), Compare(>, y, 1), 1),"
        " Case(Pattern(sequence, [Pattern(class, A, [Pattern(value, 1)], [k]), Pattern(any, rest)], z, 1), 2),"
        " Case(Pattern(mapping, [Pattern(any, b)], [K.a], c), 2)])"
    ),
    "match f():\n  case y: pass": "Switch(f(), [[[], [Assign([y], Unknown())]]], [Case(Pattern(any, y), 1)])",
}


@pytest.mark.parametrize("source", STATEMENTS)
def test_statement(source: str) -> None:
    assert lowered(source) == STATEMENTS[source]


def test_async_statements() -> None:
    source = "async def f():\n  async with a() as b: await b.c()\n  async for x in y: yield x\n  return [z async for z in w]\n"
    (function,) = lower("sample.py", source).functions["f"]
    assert function.is_async
    assert function.is_generator
    assert dump(function.body) == (
        "[With([[a(), b]], [ExprStatement(Await(b.c()))], True), Loop(for, [ExprStatement(Yield(x))], x, y, True),"
        " Return(Comprehension(list, z, [Clause(z, w, True)]))]"
    )


SIGNATURES = {
    "def f(a, /, b: int = 1, *c: str, d, e=2, **g): ...": "a, b: int=1, *c: str, kw d, kw e=2, **g",
    "def f(a, *, b): ...": "a, kw b",
    "def f[T](a: T): ...": "a: T",
    "def f(a: 'torch.Tensor'): ...": "a: torch.Tensor",
    "def f(a: 'not a type'): ...": "a: 'not a type'",
    "def f(a: \"Optional['T']\"): ...": "a: Index(Optional, [T])",
    "def f(a: 'A' | None): ...": "a: Binary(|, A, None)",
    "def f(a: Literal['x']): ...": "a: Index(Literal, ['x'])",
}


@pytest.mark.parametrize("source", SIGNATURES)
def test_signature(source: str) -> None:
    (function,) = lower("sample.py", source).functions["f"]
    assert ", ".join(map(dump, function.params)) == SIGNATURES[source]


def test_return_annotation_and_decorators() -> None:
    (function,) = lower("sample.py", "@torch.no_grad()\n@cache\ndef f() -> 'T':  # why\n  '''doc'''\n").functions["f"]
    assert dump(function.annotation) == "T"
    assert dump(function.decorators) == "[torch.no_grad(), cache]"
    assert function.at[:2] == (3, 1)
    assert function.body == []


def test_generator_is_decided_by_own_yields() -> None:
    source = "def outer():\n  def inner():\n    yield from x\n  g = lambda: (yield)\n  return inner\n"
    functions = [node for node in everything(lower("sample.py", source)) if isinstance(node, Function)]
    assert {function.qualname: function.is_generator for function in functions} == {
        "outer": False,
        "outer.inner": True,
        "outer.<lambda>": True,
    }


CLASS = '''
@dataclass
class Outer(Base, Generic[T], metaclass=M):
    """Text."""
    slots = other = ()
    size: int = 4
    name: "str"
    a, b = 1, 2
    register(1)

    class Inner:
        def method(self): pass

    @property
    def value(self): return self._value
    @value.setter
    def value(self, new): self._value = new

    if FAST:
        def step(self):
            def helper(): pass
            class Local: pass
'''


def test_class() -> None:
    module = lower("sample.py", CLASS)
    outer = module.classes["Outer"]
    assert list(module.classes) == ["Outer", "Outer.Inner", "Outer.step.Local"]
    assert module.functions == {}
    assert dump(outer.bases) == "[Base, Index(Generic, [T])]"
    assert dump(outer.decorators) == "[dataclass]"
    assert dump(outer.fields) == "[Field(slots, Collection(tuple)), Field(other, Collection(tuple)), Field(size, 4, int), Field(name, str)]"
    assert [type(statement).__name__ for statement in outer.body] == ["Assign", "ExprStatement", "If"]
    assert {name: len(methods) for name, methods in outer.methods.items()} == {"value": 2, "step": 1}
    assert outer.methods["step"][0].class_name == "Outer"
    assert outer.classes["Inner"].methods["method"][0].qualname == "Outer.Inner.method"
    helpers = [node for node in everything(module) if isinstance(node, Function) and node.name == "helper"]
    assert [(helper.qualname, helper.class_name) for helper in helpers] == [("Outer.step.helper", "")]


def test_functions_of_a_name_are_listed_in_order() -> None:
    module = lower("sample.py", "try:\n  def f(a): pass\nexcept E:\n  def f(b): pass\ndef g():\n  def f(c): pass\n")
    assert [function.params[0].name for function in module.functions["f"]] == ["a", "b"]
    assert set(module.functions) == {"f", "g"}


def test_imports_of_the_whole_file() -> None:
    source = """
import torch.cuda, numpy as np
from torch.utils.data import DataLoader as D
from .x import y
from .. import z
from m import *
try:
    import cupy as xp
except ImportError:
    import numpy as xp
def f():
    import numba
    import other as np
"""
    assert lower("sample.py", source).imports == {
        "torch": "torch",
        "np": "numpy",
        "D": "torch.utils.data.DataLoader",
        "y": ".x.y",
        "z": "..z",
        "xp": "cupy",
        "numba": "numba",
    }


# --- positions ---------------------------------------------------------------------------------------------------------------------

AWKWARD = [
    'x = "é𝄞" + f(1) + g("ü").h(2)',
    "if x:\n\ty = a.b(\n\t\tc(1),  # comment (with) calls()\n\t\td . e ( 2 ),\n\t)",
    "kernel[grid, block, stream](x, f(y))",
    "torch.compile(model)(x)",
    "value = (\n    a\n    .to('cuda')\n    .cpu ()\n)",
    "z = f'{a.b(1):>{w(2)}} {c(f\"{d(3)}\")}'",
    "t = '''\nmany\nlines''' + f(1); g(2)",
    "@deco.rate(1)\nclass C(base(2)):\n    field: T(3) = make(4)\n    @wrap(5)\n    async def m(self, a=d(6)) -> r(7): await self.x(8)",
    "q = [u(v) for v in w() if k(v)]  # é()\nr = lambda é: é(1)",
    "with a() as b, (c()) as d:\n    pass",
    "x = 1 \\\n  + f(2)",
    "match a():\n    case B(1) if c(2):\n        d(3)\n    case _: e(4)",
    "((f))(1); (g.h)(2)",
    "try: f(1)\nexcept (A, b(2).C) : g(3)\nexcept d(4) as e : g(5)",
]


def source_at(text: str, at: tuple[int, int, int, int]) -> str:
    row, column, end_row, end_column = at
    lines = re.split("\r\n?|\n", text)
    if row == end_row:
        return lines[row - 1][column - 1 : end_column - 1]
    return "\n".join([lines[row - 1][column - 1 :], *lines[row : end_row - 1], lines[end_row - 1][: end_column - 1]])


def called_name(call: Call) -> str | None:
    function: Expression = call.function
    while isinstance(function, Index | Call):
        function = function.value if isinstance(function, Index) else function.function
    if isinstance(function, Name):
        return function.id
    return function.name if isinstance(function, Attr) else None


def check_positions(module: Module) -> int:
    """Every call's name is what its position shows, and everything has a position. Returns the number of calls."""
    calls = 0
    for node in everything(module):
        if isinstance(node, Expression | Statement):
            assert node.at != NOWHERE, node
            assert node.at[:2] < node.at[2:], node
        if isinstance(node, Call):
            calls += 1
            name = called_name(node)
            if name is not None:
                assert source_at(module.text, node.name_at) == name, (module.path, node.name_at)
    return calls


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("prefix", ["", "\ufeff", "\x0c", "\n\x0c\n\x0c", "# é\n\n"], ids=repr)
def test_call_names(newline: str, prefix: str) -> None:
    text = (prefix + "\n".join(AWKWARD) + "\n").replace("\n", newline)
    assert check_positions(lower("sample.py", text)) == 44


@pytest.mark.parametrize("source", ["f(1)", "f(1)\n", "\tx", "if a:\n  f(1)", "if a:\n  f(1)\n\n# end", "f(1) # end"])
def test_end_of_file(source: str) -> None:
    source = source.lstrip("\t")
    assert check_positions(lower("sample.py", source)) == source.count("f(")


SPANS = [
    ("a = (b + c) * d", "Binary", "(b + c) * d"),
    ("a = (b + c)", "Binary", "b + c"),
    ("a = (b), c", "Collection", "(b), c"),
    ("a[1, b:c ]", "Slice", "b:c"),
    ("a[:, b]", "Slice", ":"),
    ("a = ()", "Collection", "()"),
    ("a < b < c", "Compare", "a < b"),
    ("f(k = 1)  # why", "Call", "f(k = 1)"),
    ("x = 'a' \\\n  'b'", "Const", "'a' \\\n  'b'"),
    ("if a:\n  pass\nelse:\n  b()\n\nc", "If", "if a:\n  pass\nelse:\n  b()"),
    ("for a in b: c; d", "Loop", "for a in b: c; d"),
    ("@d\ndef f():\n  return 1\n\n# end", "FunctionDef", "def f():\n  return 1"),
    ("from a import (\n  b,\n)", "Import", "from a import (\n  b,\n)"),
    ("from a import *", "Import", "from a import *"),
    ("{a: b for a in c}", "Mapping", "a: b"),
    ("def f(a: 'B[c]'): pass", "Index", "'B[c]'"),
]


@pytest.mark.parametrize(("source", "kind", "span"), SPANS)
def test_span(source: str, kind: str, span: str) -> None:
    nodes = [node for node in everything(lower("sample.py", source)) if type(node).__name__ == kind]
    assert isinstance(nodes[0], Node)
    assert source_at(source, nodes[0].at) == span


def test_loop_begins_at_its_keyword() -> None:
    loops = [node for node in everything(lower("sample.py", "x\nif a:\n  while b:\n    c\n")) if isinstance(node, Loop)]
    assert [loop.at for loop in loops] == [(3, 3, 4, 6)]


# --- real code ---------------------------------------------------------------------------------------------------------------------


def library_files(count: int) -> list[Path]:
    files = sorted(path for path in Path(sysconfig.get_path("stdlib")).rglob("*.py") if "site-packages" not in path.parts)
    small = [path for path in files if path.stat().st_size < 20_000]
    return random.Random(1).sample(small, count)


def test_standard_library() -> None:
    calls = 0
    for path in library_files(150):
        try:
            text = path.read_bytes().decode()
        except UnicodeDecodeError:
            continue
        try:
            calls += check_positions(lower(str(path), text))
        except UnreadableSource:
            with pytest.raises(SyntaxError):
                compile(text, str(path), "exec")
    assert calls > 5_000


# --- errors ------------------------------------------------------------------------------------------------------------------------

REFUSED = {
    "x = 1\ny = (2,\n": (2, 5, "never closed"),
    "print 'a'\n": (1, 1, "syntax error"),
    "def f(:\n  pass\n": (1, 7, "syntax error"),
    "x = é $\n": (1, 7, "syntax error"),
    "x = 1\r\ny = 1 +\r\n": (2, 8, "syntax error"),
    "a\nb\0c": (2, 2, "null byte"),
    "a\nb = '\udcff'": (2, 6, "Unicode"),
    "x = " + "[" * 300 + "]" * 300: (1, 205, "too many nested parentheses"),
    "x = " + "[" * 5_000 + "]" * 5_000: (1, 205, "too many nested parentheses"),
    "x = " + "-" * 100_000 + "1": (1, 1, "too deep"),
}


@pytest.mark.parametrize("source", REFUSED, ids=lambda source: repr(source[:20]))
def test_refused(source: str) -> None:
    row, column, words = REFUSED[source]
    limit = sys.getrecursionlimit()
    with pytest.raises(UnreadableSource) as caught:
        lower("sample.py", source)
    assert (caught.value.row, caught.value.column) == (row, column)
    assert words in caught.value.message
    assert "expected one of" not in caught.value.message
    assert sys.getrecursionlimit() == limit


@pytest.mark.parametrize(
    "source",
    [
        "a" + ".b()" * 400,
        "+".join("a" * 500),
        "x = '((((('\n" * 100,
        "+".join("a" * 2_900),
        "x = (\n" + "a +\n" * 2_900 + "a)\n",
        "x = (" + "'a'\n" * 600 + ")",
    ],
    ids=len,
)
def test_long_is_not_deep(source: str) -> None:
    assert lower("sample.py", source).body


def test_empty() -> None:
    assert lower("sample.py", "").body == []
    assert lower("sample.py", "# nothing\n\n").body == []


@pytest.mark.parametrize("line", ["return 1", 'return f"{x}"'])
def test_tabs_that_python_accepts(line: str) -> None:
    module = lower("a.py", f"def f(x):\n\tif x:\n        \treturn 2\n\t{line}\n")
    assert [function.name for function in module.functions["f"]] == ["f"]
