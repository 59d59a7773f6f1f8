"""The points behind ``--confidence``: that the table is what the judged findings give, and how it is fitted."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def confidence(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("confidence")


def row(confidence: Any, is_real: bool, package: str = "a/b", **terms: float) -> Any:
    return confidence.Row(package, "SL020", {"any": 1.0, **terms}, is_real)


def test_the_table_is_what_the_judged_findings_give(confidence: Any) -> None:
    assert confidence.TABLE.read_text(encoding="utf-8") == confidence.written()


def test_each_judged_finding_is_kept_once(confidence: Any) -> None:
    kept = json.loads(confidence.ROWS.read_text(encoding="utf-8"))
    assert len({(one["draw"], one["package"], one["fingerprint"]) for one in kept}) == len(kept) == len(confidence.rows(kept))


def test_each_draw_is_shown_by_points_of_the_others(confidence: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = [{"draw": draw} for draw in (1, 1, 2, 3)]
    monkeypatch.setattr(confidence, "of_fit", lambda: kept)
    monkeypatch.setattr(confidence, "rows", lambda mine: [one["draw"] for one in mine])
    monkeypatch.setattr(confidence, "fit", set)
    assert list(confidence.folds()) == [(1, [1, 1], {2, 3}), (2, [2], {1, 3}), (3, [3], {1, 2})]


def test_each_term_is_told_on_the_page(confidence: Any) -> None:
    assert {name for name in confidence.stored() if name[:2] != "SL"} <= confidence.MEANS.keys()
    assert {*confidence.WORSE, *confidence.BETTER} - {confidence.RECORD} <= confidence.MEANS.keys()


def test_points_have_the_signs_that_they_must_have(confidence: Any) -> None:
    points = confidence.stored()
    assert all(points.get(name, 0.0) <= 0 for name in confidence.WORSE)
    assert all(points.get(name, 0.0) >= 0 for name in confidence.BETTER)


def test_what_speaks_against_its_sign_gets_no_points(confidence: Any) -> None:
    for_it = [row(confidence, True, behind_wait=1.0)] * 30 + [row(confidence, False)] * 30
    against = [row(confidence, False, behind_wait=1.0)] * 30 + [row(confidence, True)] * 30
    assert "behind_wait" not in confidence.fit(for_it)
    assert confidence.fit(against)["behind_wait"] < -1


def test_what_all_findings_share_is_their_mean(confidence: Any) -> None:
    found = [row(confidence, True)] * 30 + [row(confidence, False)] * 10
    assert confidence.chance(confidence.fit(found), found[0]) == pytest.approx(0.75, abs=0.01)


def test_the_area(confidence: Any) -> None:
    assert confidence.area([(0.7, True), (0.3, False)]) == 1.0
    assert confidence.area([(0.3, True), (0.7, False)]) == 0.0
    assert confidence.area([(0.5, True), (0.5, False)]) == 0.5


def test_each_finding_is_in_one_bin(confidence: Any) -> None:
    found = confidence.shown_by({"loss": 0.5}, [row(confidence, number % 2 == 0, loss=float(number)) for number in range(-20, 21)])
    assert sum(told for _, told, _ in confidence.bins(found)) == len(found) == 41


def test_what_is_collected(confidence: Any) -> None:
    kept = json.loads(confidence.ROWS.read_text(encoding="utf-8"))[0]
    judged = {one.fingerprint: one for one in confidence.first_sight.read(confidence.first_sight.FOLDER / f"{kept['draw']}.toml")}
    place = judged[kept["fingerprint"]]
    told = {"filename": place.file, "location": {"row": place.row}, "facts": {**kept["facts"], "api": "x"}, "grounds": kept["grounds"]}
    other = {**told, "filename": "other.py", "fingerprint": kept["fingerprint"]}
    report = {"a": {"findings": [{**told, "fingerprint": kept["fingerprint"]}, other]}, "b": {"findings": []}}
    assert confidence.collect(kept["draw"], report) == [kept]
