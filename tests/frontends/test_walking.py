"""Walking over a program: the quick ways find what the full one finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.frontends.python import lower
from streamlint.program import Lambda, Statement, functions_of, statements_of, walk

STREAMLINT = Path(__file__).parents[2] / "streamlint"
NESTED = """
def f(x):
    for a in x:
        while a:
            break
        else:
            def g():
                for b in x:
                    pass
    try:
        with x:
            for c in x:
                pass
    except* E:
        for d in x:
            pass
    finally:
        for e in x:
            pass
    match x:
        case [y, *_]:
            for g in y:
                pass
        case {"k": z} if z:
            for h in z:
                pass
    if x:
        pass
    elif (lambda: [i for i in x])():
        class C(B):
            for j in x:
                pass
            def m(self):
                for k in x:
                    pass
                class D:
                    def n(self):
                        for l in x:
                            pass
"""
SOURCES = {"nested": NESTED} | {path.stem: path.read_text(encoding="utf-8") for path in sorted((STREAMLINT / "interpreter").glob("*.py"))}


@pytest.mark.parametrize("name", SOURCES)
def test_statements_are_those_among_all_nodes(name: str) -> None:
    for function, _ in functions_of(lower("a.py", SOURCES[name])):
        nodes = list(walk(function))
        of_lambdas = {id(inside) for node in nodes if isinstance(node, Lambda) for inside in walk(node)}
        among_all = [id(node) for node in nodes if isinstance(node, Statement) and id(node) not in of_lambdas]
        assert sorted(map(id, statements_of(function))) == sorted(among_all), function.qualname
