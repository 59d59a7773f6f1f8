"""The work for a file grows with the number of its functions, and not faster: function calls are counted, which no other load changes."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver, Settings
from streamlint.runner import linter
from streamlint.runner.engine import analyse

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "many_functions.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.mark.parametrize("kind", ["many_functions", "many_fixes"])
def test_twice_the_functions_take_twice_the_work(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    source = importlib.import_module(kind).source
    _calls(source(4))  # what is imported and kept once
    few, more, most = (_calls(source(count)) for count in (100, 200, 400))
    assert (most - more) / (more - few) < 2.1


def test_twice_the_fixes_take_twice_the_work(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    source = importlib.import_module("many_fixes").source
    path = tmp_path / "made.py"

    def mend(count: int) -> None:
        path.write_text(source(count), encoding="utf-8")
        report = linter.run([path], Resolver(Settings(), []), linter.How(fixes=True))
        assert len(report.findings) == count
        assert all(finding.fix is not None for finding in report.findings)

    mend(4)
    few, more, most = (_counted(functools.partial(mend, count)) for count in (50, 100, 200))
    assert (most - more) / (more - few) < 2.02


def _calls(text: str) -> int:
    """How many functions are called while a file is linted."""
    return _counted(lambda: _lint(text))


def _lint(text: str) -> None:
    assert not analyse([Source("made.py", text, "python")], Options()).problems


def _counted(work: Callable[[], None]) -> int:
    number = 0

    def count(_frame: FrameType, _event: str, _arg: Any) -> None:
        nonlocal number
        number += 1

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return number
