"""What more files cost: which files are there twice, and how the share is told."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "doubling.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def doubling(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("doubling")


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    (folder / "inner").mkdir(parents=True)
    (folder / "inner" / "work.py").write_text("import torch\n\ntorch.cuda.synchronize()\n")
    (folder / "plain.py").write_text("print(1)\n")
    return folder


@pytest.mark.parametrize(("wanted", "twice"), [(True, "inner/work.py"), (False, "plain.py")])
def test_only_the_files_of_one_kind_are_there_twice(doubling: Any, package: Path, tmp_path: Path, wanted: bool, twice: str) -> None:
    made = doubling.twins(package, tmp_path / "made", wanted)
    found = {path.relative_to(made).as_posix() for path in made.rglob("*.py")}
    assert found == {"package/inner/work.py", "package/plain.py", f"twin/{twice}"}


def test_all_three_trees_are_measured(doubling: Any, package: Path) -> None:
    doubled = doubling.measure(package, rounds=1)
    assert min(doubled.plain, doubled.without, doubled.mentioning) > 0


def test_the_share_is_of_what_is_added(doubling: Any) -> None:
    assert doubling.told(doubling.Doubled("p", 10.0, 10.5, 20.0)) == (
        "p: 10.00 s; files without CUDA twice +0.50 s, with CUDA twice +10.00 s: 5 %"
    )
