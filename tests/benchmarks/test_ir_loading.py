"""What intermediate representations cost: which files are taken, and that the table is of what was loaded."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "ir_loading.py").is_file(), reason="benchmarks are not in the source distribution")
TEXTS = {"a.py": "def f(a):\n    return a\n", "b.py": "def f(a):\n    return a\n", "c.py": "x = 1\n", "d.py": "def f(:\n", "e.txt": "1"}


@pytest.fixture
def ir_loading(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("ir_loading")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in TEXTS.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_each_content_counts_once_and_no_more_are_taken_than_asked_for(ir_loading: Any, folder: Path) -> None:
    assert [Path(path).name for path, _ in ir_loading.collect([folder], 1000)] == ["a.py", "c.py", "d.py"]
    assert [Path(path).name for path, _ in ir_loading.collect([folder], 10)] == ["a.py"]


def test_the_table_is_of_what_was_loaded(ir_loading: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ir_loading.measure(ir_loading.collect([folder], 1000), rounds=1) > 0
    assert capsys.readouterr().out.startswith("2 files, 0.0 MB of source, 3 functions, 9 instructions\n")
