"""Python's own parser and libcst's give the same module; what only one of them reads is left to libcst."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import documents
import pytest

from streamlint.frontends import UnreadableSource, python
from streamlint.frontends.python_comments import without_comments
from streamlint.support.records import is_record, names_of

SINCE_3_12 = sys.version_info >= (3, 12)

ALIKE = r"""
x = (a, b); y = (a, b,); z = ( a,
 ); v = ((a), (b)); w = (a), (b); u = a, b,; t = (); s = ((a, b), c), ((d))
f(x for x in y)((i) for (i) in (j) if (k)).g( (m) for m in n if p if (q) )
one[a, b], one[(a, b)], one[a,], one[(a,)], one[(a):(b), ::2], one[*a, *b], one[()], one[((a, b))], one[(a), b]
a and b and c or d; (a and b) and c; a and (b and c); not a < b <= (c) != d; a is not b; a not in (b)
-x ** ~y @ z // +w % 3 << 1 >> 2 & 3 | 4 ^ 5
f(a, *b, c, k=1, *d, **e, l=2)(*(a), )[1](**{**m, 'n': 1}).last
del a, b; del (a, b); del [a, b]; del (a), b.c, d[0]
print(1 if a else (2, 3), lambda q, /, r=1, *s, t, u=2, **v: (yield q), [*a, *(b)], {*a, 1}, {**a})
'a' "b" 'c'; x = 'a' 'b'; y = b'\x00' b'\377'; z = f'{w!r:>{width}}' 'plain' f"{x=} {{}} {y:{z}.{q}f}", f'', f'a'; r'\d' '\d'
n = 0xff, 1_000, 1e9, 1j, 1_0.0_1j, 0b1, 0o7, ..., None, True, 99999999999999999999999999999999
é = 'ü'; ö(é, 'ä', (é, 'ß'), f'é{é}ü{ö}', x='ä').ü.get(é); (é, ö, ); (ü for ü in 'ä')
for a, (b, *c) in *d, e: continue
else: break
with a() as b, (c): pass
with (a, b): pass
with (a as x, b as (y, z)): pass;
with (a, b) as c: global g, h; x = 1 ;
@wrapped(1)
@other . dotted
class A(B, *C, metaclass=D, **E):
    'doc'
    x: int = 1; y: 'List["int"] | None'; z: Literal['a'] = None if u else t; w = v = 1
    def f(self, *args: *Ts, key: "torch.Tensor" = 1, **rest: "not code(") -> "Tuple[(a, b), c]":
        'doc'
        yield; x = yield a, b; z = yield from b; (yield)
        return a, b
    async def g(self): await a; [x async for x in y if await z]; return {k: v for k, v in (a) for b in c}
    class C: pass
class G[T: int](Base): type Alias[U] = list[U]
def k(a: 'A' 'B', b: 'Sequence[(int, str)]', c: b'x' b'y', d: 'not code' 'x'): ...
P = namedtuple('P', 'a b'); Q = NamedTuple("Q", [("a", int), ('b', str)]); R = S = namedtuple('R', 'a')
async def h[T](a, /, b: int, c=1, *, d, e=2) -> T:
    async with a as b, c: pass
    async for x in y: x += 1; y @= 2; z //= 3
import a.b.c, d as e, f.g as h
from . import a; from ..b import (c as d, e,); from .f import *; from g.h import i
try: raise E from None
except (A, B) as e: raise
except C: assert x, 'y'
else: nonlocal_ = 1
finally: pass
try: pass
except* E: pass
if (n := -a) < b: x = 1
elif c: y = 2;
elif d:
    z = 3 ;
else: pass
while a: pass
else: x
assert (a, \
  b), c
"""


def plain(node: object) -> Iterator[object]:
    """A module as a row of plain values, with all positions."""
    if is_record(node):
        yield type(node).__name__
        for name in names_of(type(node)):
            yield from plain(getattr(node, name))
    elif isinstance(node, list | tuple):
        yield len(node)
        for item in node:
            yield from plain(item)
    elif isinstance(node, dict):
        yield from plain([*node.items()])
    else:
        yield type(node), repr(node)


def compare(text: str) -> bool:
    """Whether Python's tree is enough; it says what libcst's says."""
    ours = python._plainly("sample.py", text)
    if ours is None:
        return False
    assert list(plain(ours)) == list(plain(python._by_libcst("sample.py", text)))
    return True


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["lf", "crlf"])
def test_all_of_the_language(ends: str) -> None:
    assert compare(ALIKE.replace("\n", ends)) or not SINCE_3_12  # all of it at once is Python 3.12


@pytest.mark.parametrize("line", [line for line in ALIKE.splitlines() if line[:1] not in ("", " ")], ids=lambda line: line[:20])
def test_line_by_line(line: str) -> None:
    compare(f"{line}\n")
    compare(line)


@pytest.mark.parametrize(
    "text",
    [
        "f'{a}{b.c(d)!r:>{e.f}.{g}}{{{h}}}'",
        "f'{a=}{b = !s}{c=:{d}}{e!=f}{g<=h}{(lambda i: i)}'",
        "f'{j[\"k\"]}' rf'\\{l}' F\"{m['n']}\" f'\\N{BULLET}{o}\\t{p}'",
        "(f'é{é.ü(a)}'  # {no}\n  'ö' f'''ä{\n  ü}''')",
        "f'''\n  {a +\n   b.c}\n{d(\n e)}'''",
        "f'{a, b}{ c, d }{*e,}{(f, g)}'",
        "f'{f\"{a.b}{c}\"}{d}' + f'{ {e: f}[g] }'",
        "x[f'{a:{b}}'] = f'{yield_}', f'{await_(a)[1:2]}' if f'{c}' else d",
    ],
)
def test_f_strings(text: str) -> None:
    assert compare(f"{text}\n")


def test_the_rules_documents() -> None:
    texts = [
        file.text for one in documents.DOCUMENTS for section in documents.read(one) for file in section.files if file.language == "python"
    ]
    assert len(texts) > 800
    assert sum(compare(without_comments(text)) for text in texts) > 0.98 * len(texts)


def test_our_own_files() -> None:
    for path in sorted((Path(__file__).parents[2] / "streamlint").glob("*.py")):
        text = without_comments(path.read_text(encoding="utf-8"))
        assert compare(text), path


@pytest.mark.parametrize(
    "text",
    [
        "match a:\n    case 1: pass\n",
        "\ufeffx = 1\n",
        "print 'a'\n",
        "x = '\udcff'\n",
        "x = " + "-" * 2000 + "1\n",
        "\u00b5 = 1\n",
        "e\u0301 = 1\n",
    ],
)
def test_what_is_left_to_libcst(text: str) -> None:
    assert python._plainly("sample.py", text) is None


def test_names_are_looked_at_and_no_other_text() -> None:
    assert compare("x = '\u00bd \ufb01'  # \u00b5\n")
    assert python._plainly("sample.py", "def f(x\u00b5y): pass\n") is None
    assert python._plainly("sample.py", "import a.\ufb01x\n") is None


def test_what_libcst_cannot_hold_is_read() -> None:
    text = "def f():\n    return.5\n"
    assert python.lower("sample.py", text).body
    with pytest.raises(UnreadableSource, match="libcst cannot hold this code"):
        python._by_libcst("sample.py", text)
