"""The clock at each root: every root is there, and the figures are those of the list."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "roots.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def roots(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("roots")


CODE = """import torch


def f(x):
    return x.cpu().to("cuda", non_blocking=True)


def g(x):
    return x.to("cuda", non_blocking=True).cpu()
"""


def test_each_root_has_its_time(roots: Any, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    measured = roots.measure(tmp_path)
    assert {name.rpartition(":")[2] for _, name in measured.roots} == {"f", "g"}
    assert measured.runs >= 2
    assert measured.cpu >= sum(seconds for seconds, _ in measured.roots) > 0


def test_shares_and_the_slowest(roots: Any) -> None:
    measured = roots.Measured("p", roots=[(i / 1000, f"a.py:f{i}") for i in range(1, 101)])
    assert (measured.at(0.5), measured.at(0.99)) == (pytest.approx(51), pytest.approx(100))
    assert [line.split(":")[-1] for line in list(roots.told(measured, 2))[2:]] == ["f100", "f99"]
    assert roots.Measured("p").at(0.5) == 0
