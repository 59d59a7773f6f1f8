"""Places of the nodes of trees that are too deep for libcst's generator."""

from __future__ import annotations

import libcst
import pytest

from streamlint.frontends import python_positions
from streamlint.frontends.python_positions import positions

SOURCE = """\
import torch
@wrapped(1)
class A:
    def f(self, *args, key: int = 1, **rest) -> 'B':
        with a() as b, (c):
            for x in [((y)), *z, {'k': [f'{w!r:>{width}}']}]:
                if x.one[1:2, ...](2, *args, k=lambda q, /: q) and not (yield):
                    pass
                elif (n := -a) < b <= c: return a if b else (c, )
                else:
                    try: raise E from None
                    except (E, F) as e:
                        del a, b
                    finally: x += 'a' "b" 'c'
        while a: break
        match a:
            case {'k': [1, *b], **c} | D(e, f=2) if g: await h
"""
DEEP = {
    "calls": "a" + ".b()" * 600 + "\n",
    "sums": "+".join("a" * 600) + "\n",
    "elif": "if a:\n    b\n" + "elif a:\n    b\n" * 600,
    "elif-without-newline": "if a:\n    b\n" + "elif a:\n    b\n" * 600 + "else:\n    c",
    "brackets": "".join(" " * n + f"if a[{'[' * 150}{']' * 150}]:\n" for n in range(90)) + " " * 90 + "pass\n",
}


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 8])
@pytest.mark.parametrize(
    "text", [SOURCE, SOURCE.rstrip("\n"), "\ufeff" + SOURCE, SOURCE.replace("\n", "\r\n")], ids=["lf", "none", "bom", "crlf"]
)
def test_in_pieces_places_are_the_same(text: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    module = libcst.parse_module(text)
    at_once = python_positions._Marks(module, python_positions._PLAIN)
    module._codegen(at_once)
    monkeypatch.setattr(python_positions, "_PIECE", piece)
    assert python_positions._in_pieces(module, python_positions._PLAIN) == at_once.tokens  # nodes are equal to themselves alone
    assert module.code == text.removeprefix("\ufeff")  # the tree is as it was


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_deep_trees_have_places(text: str) -> None:
    module = libcst.parse_module(text)
    found = positions(module, text)
    lines = text.split("\n")
    names = [(node.value, at) for node, at in found.items() if isinstance(node, libcst.Name)]
    assert len(names) >= 90
    assert all(lines[row - 1][column - 1 : end - 1] == name for name, (row, column, _, end) in names)
    last = module.body[-1]
    assert isinstance(last, libcst.BaseStatement)
    assert found[last][:2] == (1, 1)
