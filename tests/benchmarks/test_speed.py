"""The script that measures speed: medians, failures that are told, files that are really changed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "speed.py"


@pytest.fixture(scope="module")
def speed() -> ModuleType:
    if not FILE.is_file():
        pytest.skip("benchmarks are not in the source distribution")
    spec = importlib.util.spec_from_file_location("benchmarks_speed", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["benchmarks_speed"] = module
    spec.loader.exec_module(module)
    return module


def test_a_row_is_the_median_or_a_reason(speed: ModuleType, tmp_path: Path) -> None:
    quick = speed.Row("quick", [sys.executable, "-c", "pass"])
    slow = speed.Row("slow", [sys.executable, "-c", "import time; time.sleep(60)"])
    broken = speed.Row("broken", [sys.executable, "-c", "raise SystemExit(2)"])
    speed.measure([quick, slow, broken], tmp_path, tmp_path / "cache", 3, 3.0)
    assert len(quick.runs) == 3
    assert quick.summary()["peak_mib"] > 1
    assert slow.summary() == {"name": "slow", "failure": "did not end in 3 s"}
    assert broken.summary() == {"name": "broken", "failure": "ended with status 2"}


def test_the_page_holds_ratios(speed: ModuleType) -> None:
    rows = [{"name": "ruff", "wall": 2.0, "cpu": 3.0, "peak_mib": 50.0}, {"name": "other", "wall": 1.0, "cpu": 1.0, "peak_mib": 9.0}]
    page = speed.page({"files": 7, "machine": "2 cores", "python": "3.12"}, [*rows, {"name": "gone", "failure": "did not end in 3 s"}])
    assert "| other | 1.0 | 0.50 | 1.0 | 9.0 |" in page
    assert "| gone | did not end in 3 s | | | |" in page


def test_each_edit_changes_a_file(speed: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("pass\n")
    (tmp_path / "streams.py").write_text("torch.cuda.Stream()\n")
    speed.edited(tmp_path)()
    assert (tmp_path / "plain.py").read_text() == "pass\n"
    assert (tmp_path / "streams.py").read_text() == "torch.cuda.Stream()\n\n# one line more\n"
