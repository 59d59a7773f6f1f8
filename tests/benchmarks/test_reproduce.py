"""The field notes show the committed evidence, and each reproduction's repair changes what it says."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The two scripts as modules, and the committed evidence."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    reproduce, reproductions = importlib.import_module("reproduce"), importlib.import_module("reproductions")
    evidence = json.loads(reproduce.EVIDENCE.read_text(encoding="utf-8"))
    return SimpleNamespace(reproduce=reproduce, reproductions=reproductions, evidence=evidence)


def test_the_field_notes_show_the_evidence(scripts: Any) -> None:
    page = scripts.reproduce.PAGE.read_text(encoding="utf-8")
    assert scripts.reproduce.with_table(page, scripts.evidence) == page


def test_each_reproduction_has_evidence_with_its_platform(scripts: Any) -> None:
    assert sorted(scripts.evidence) == sorted(scripts.reproductions.MODULES)
    assert all(set(entry["platform"]) == {"gpu", "driver", "torch", "cuda", "date"} for entry in scripts.evidence.values())


def test_a_page_without_a_place_for_the_table_is_an_error(scripts: Any) -> None:
    with pytest.raises(ValueError, match="reproduced"):
        scripts.reproduce.with_table("# Field notes\n", scripts.evidence)


def test_a_repair_is_refused_where_the_release_has_other_lines(scripts: Any) -> None:
    assert scripts.reproductions.replaced("a b", {"a": "c"}) == "c b"
    with pytest.raises(ValueError, match="not in this release"):
        scripts.reproductions.replaced("a b", {"d": "c"})


def test_wrong_results_are_counted_and_errors_are_kept(scripts: Any) -> None:
    answers = iter([True, False, True])
    assert scripts.reproductions.wrong_of(lambda: next(answers), 3) == {"wrong": 2, "trials": 3}

    def raising() -> bool:
        raise RuntimeError("no memory\nsecond line")

    assert scripts.reproductions.wrong_of(raising, 2) == {"wrong": 2, "trials": 2, "errors": ["no memory"]}
