"""A grammar that is newer than the running Python's is read all the same, in its rows and columns."""

from __future__ import annotations

import ast

import pytest

from streamlint.frontends import UnreadableSource
from streamlint.frontends.python import lower
from streamlint.frontends.python_newer import in_older_grammar

NEWER = {
    "def f[T: (int, str) = int](x: T) -> T: pass": "def f                     (x: T) -> T: pass",
    "class A[T, *Ts](B): pass": "class A        (B): pass",
    "async def f[T](): pass": "async def f   (): pass",
    "type X[T] = list[T]": "X         = list[T]",
    "type X = int": "X      = int",
    "try: pass\nexcept* E as e: pass": "try: pass\nexcept  E as e: pass",
    "try: pass\nexcept A, B: pass": "try: pass\nexcept(A,B): pass",
    't"{x}" + rt\'{y}\' + "t\'s"': 'f"{x}" + rf\'{y}\' + "t\'s"',
    'f"{x["a"]} {", ".join(y)!r:>{w}}"': "f\"{x['a']} {', '.join(y)!r:>{w}}\"",
    'f"{"\\n".join(x)}"': "f\"{' n'.join(x)}\"",
    'f"{f"{x}"}"': "f\"{f'{x}'}\"",
}
ALIKE = [
    "type = 3\ntype[0] = 4\ntype: int = 1",
    'x = "def f[T]()"  # class A[b]\n',
    "x = 't' + \"{x}\" + rb'\\t'",
    "try: pass\nexcept (A, B): pass\nexcept E: pass",
    'f\'{x["a"]} {{y}}\' "\'"',
]


@pytest.mark.parametrize("text", NEWER)
def test_newer_grammar(text: str) -> None:
    older = in_older_grammar(text)
    assert older == NEWER[text]
    ast.parse(older)
    assert lower("sample.py", text).body


@pytest.mark.parametrize("text", ALIKE)
def test_what_each_python_reads_stays(text: str) -> None:
    assert in_older_grammar(text) == text


def test_groups_of_exceptions_are_told_apart_by_the_text() -> None:
    body = lower("sample.py", "try: a()\nexcept* E: pass\ntry: a()\nexcept E: pass\ntry: a()\nfinally: pass\n").body
    assert [getattr(statement, "group", None) for statement in body] == [True, False, False]


def test_an_error_is_that_of_the_text_as_it_is() -> None:
    with pytest.raises(UnreadableSource) as caught:
        lower("sample.py", "class A[T]: pass\ndef g(:\n    pass\n")
    assert caught.value.message.startswith("syntax error: ")


def test_names_that_python_spells_anew_and_byte_order_marks() -> None:
    module = lower("sample.py", "\ufeffdef f(µ):\n    return µ.ﬁ\n")
    assert module.functions["f"][0].at[:2] == (1, 2)
