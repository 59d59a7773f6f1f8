"""The field notes show the committed evidence, and each reproduction's repair changes what it says."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(BENCHMARKS))

import reproduce  # noqa: E402
import reproductions  # noqa: E402

EVIDENCE = json.loads(reproduce.EVIDENCE.read_text(encoding="utf-8"))


def test_the_field_notes_show_the_evidence() -> None:
    page = reproduce.PAGE.read_text(encoding="utf-8")
    assert reproduce.with_table(page, EVIDENCE) == page


def test_each_reproduction_has_evidence_with_its_platform() -> None:
    assert sorted(EVIDENCE) == sorted(reproductions.MODULES)
    assert all(set(entry["platform"]) == {"gpu", "driver", "torch", "cuda", "date"} for entry in EVIDENCE.values())


def test_a_page_without_a_place_for_the_table_is_an_error() -> None:
    with pytest.raises(ValueError, match="reproduced"):
        reproduce.with_table("# Field notes\n", EVIDENCE)


def test_a_repair_is_refused_where_the_release_has_other_lines() -> None:
    assert reproductions.replaced("a b", {"a": "c"}) == "c b"
    with pytest.raises(ValueError, match="not in this release"):
        reproductions.replaced("a b", {"d": "c"})


def test_wrong_results_are_counted_and_errors_are_kept() -> None:
    answers = iter([True, False, True])
    assert reproductions.wrong_of(lambda: next(answers), 3) == {"wrong": 2, "trials": 3}

    def raising() -> bool:
        raise RuntimeError("no memory\nsecond line")

    assert reproductions.wrong_of(raising, 2) == {"wrong": 2, "trials": 2, "errors": ["no memory"]}
