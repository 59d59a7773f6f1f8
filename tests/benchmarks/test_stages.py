"""The clock of the stages of a run: each second counts once."""

from __future__ import annotations

import importlib
import time
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "stages.py").is_file(), reason="benchmarks are not in the source distribution")

CODE = """import torch


def shows(x):
    return x.cpu().to("cuda", non_blocking=True)


def silent(x, non_blocking=False):
    return x + 1
"""


@pytest.fixture
def stages(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("stages")


def test_the_stages_of_a_run_are_told_apart(stages: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(CODE)
    (tmp_path / "b.py").write_text("x = 1\n")
    start = time.process_time()
    taken = stages.take(tmp_path)
    assert (taken["files"], taken["relevant"]) == (2, 1)
    assert list(taken["seconds"]) == list(stages.STAGES)
    assert sum(taken["seconds"].values()) <= time.process_time() - start + 0.1
    assert min(taken["seconds"].values()) >= 0
    assert taken["seconds"][stages.HAZARDS] > 0


def test_what_is_inside_a_stage_is_not_counted_to_it(stages: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(stages.time, "process_time", lambda: float(next(seconds)))
    clock = stages.Clock()
    with clock.at(stages.LOWER), clock.at(stages.PARSER):
        pass
    assert clock.stop() == dict.fromkeys(stages.STAGES, 0.0) | {stages.REST: 2.0, stages.LOWER: 2.0, stages.PARSER: 1.0}
