"""Fingerprints outlive what does not matter, and nothing else."""

from __future__ import annotations

import pytest

from streamlint.findings import Category, Finding, Span, Step
from streamlint.triage.fingerprint import Statements, fingerprints


def marks(text, path="a.py", qualname="f", code="SL001", trail=()):
    rows = [number for number, line in enumerate(text.splitlines(), 1) if "MISUSE" in line]
    found = [Finding(code, "x", Category.STALL, "m", Span(path, row, 1, row, 2), trail=trail, qualname=qualname) for row in rows]
    return fingerprints(found, Statements({path: text}))


BASE = "def f():\n    g(MISUSE,\n      2)\n"


@pytest.mark.parametrize(
    "text",
    [
        "import os\n\n" + BASE,
        BASE.replace("MISUSE,", "MISUSE,  # why"),
        "if True:\n" + "".join(f"    {line}\n" for line in BASE.splitlines()),
        BASE.replace("\n", "\r\n"),
    ],
)
def test_the_same(text):
    assert marks(text) == marks(BASE)


def test_the_trail_does_not_count():
    assert marks(BASE, trail=(Step("x", Span("b.py", 1, 1, 1, 2)),)) == marks(BASE)


def test_different():
    others = [marks(BASE.replace("2)", "3)")), marks(BASE, path="b.py"), marks(BASE, qualname="h"), marks(BASE, code="SL005")]
    assert len({mark for (mark,) in [*others, marks(BASE)]}) == 5


def test_equal_statements_are_counted():
    first, second = marks("MISUSE()\nMISUSE()\n")
    assert first != second
    assert marks("MISUSE()\n") == [first]


def test_the_folder_of_the_run_does_not_count(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path)
    above = marks(BASE, path="sub/a.py")
    monkeypatch.chdir("sub")
    assert marks(BASE) == above
