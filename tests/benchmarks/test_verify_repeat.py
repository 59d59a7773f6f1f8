"""The table of repeated runs, from made-up ones."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "verify_repeat.py"
pytestmark = pytest.mark.skipif(not FILE.is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture(scope="module")
def repeat() -> Any:
    spec = importlib.util.spec_from_file_location("verify_repeat", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["verify_repeat"] = module
    spec.loader.exec_module(module)
    return module


def _run(*verdicts: str, cold: bool = False, seconds: float = 1.0, wall: float = 60.0) -> dict[str, Any]:
    cases = [
        {"rule": f"SL00{number}", "case": "c", "api": "cupy", "verdict": verdict, "reason": f"why {verdict}", "seconds": seconds}
        for number, verdict in enumerate(verdicts, start=1)
    ]
    platform = {"gpu": "Fake GPU", "driver": "1.2", "cuda_runtime": "13.0", "python": "3.12", "packages": {"cupy": "14.2"}}
    return {"platform": platform, "cases": cases, "cold": cold, "wall_s": wall}


def test_the_same_each_time(repeat: Any) -> None:
    text = repeat.page([_run("CONFIRMED", "NOT OBSERVED", cold=True, wall=200.0), _run("CONFIRMED", "NOT OBSERVED", seconds=2.0)])
    assert "2 cases, the same verdict in each of 2 runs" in text
    assert "| SL001 | c | cupy | CONFIRMED 2/2 | 1.5 | 2.0 |" in text
    assert "| cold: templates are compiled: 1 | 200 | SL002, 1.0 s |" in text
    assert "| warm: 1 | 60 | SL002, 2.0 s |" in text
    assert "What differed" not in text


def test_what_changed_is_told(repeat: Any) -> None:
    runs = [_run("CONFIRMED"), _run("CONFIRMED"), _run("INCONCLUSIVE")]
    assert repeat.changed(runs) == [("SL001", "c", "cupy")]
    text = repeat.page(runs)
    assert "1 of 1 cases changed their verdict" in text
    assert "* SL001 · c · cupy: INCONCLUSIVE: why INCONCLUSIVE" in text


def test_runs_that_lie_there_count(repeat: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import json

    for number, verdict in enumerate(("CONFIRMED", "REFUTED"), start=1):
        (tmp_path / f"run-{number:03}.json").write_text(json.dumps(_run(verdict)), encoding="utf-8")
    assert repeat.main(["--runs", "0", "--keep", str(tmp_path)]) == 1
    assert "CONFIRMED 1/2, REFUTED 1/2" in capsys.readouterr().out
