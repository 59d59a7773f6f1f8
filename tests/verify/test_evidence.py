"""What is kept of a run, and how runs are merged."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from streamlint.verify import evidence, templates
from streamlint.verify.platforms import platform_facts

SHIPPED = evidence.SHIPPED
FACTS = {"gpu": "NVIDIA H200", "driver": "580.159.04", "cuda_runtime": "13.0", "python": "3.12.3", "streamlint": "0.1.0", "packages": {}}
NAME = "NVIDIA H200 · driver 580.159 · CUDA 13.0"


def _case(verdict: str = "CONFIRMED", name: str = "cuda_free_in_loop", **more: Any) -> dict[str, Any]:
    return {"rule": "SL003", "case": name, "api": "cupy", "prediction": "p", "verdict": verdict, "reason": "r"} | {
        "misuse": {"n": 1},
        "remedy": {},
        "seconds": 0.8,
        **more,
    }


@pytest.fixture(autouse=True)
def _nothing_shipped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(evidence, "SHIPPED", tmp_path / "shipped")


def test_platform_name_shortens_the_driver() -> None:
    assert evidence.platform_name(FACTS) == NAME


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = evidence.save([_case()], FACTS, tmp_path, "2026-11-20")
    assert path.name == "nvidia-h200-driver-580.159-cuda-13.0.json"
    assert evidence.load("SL003", tmp_path) == [
        {
            "case": "cuda_free_in_loop",
            "api": "cupy",
            "prediction": "p",
            "verdict": "CONFIRMED",
            "platform": NAME,
            "date": "2026-11-20",
            "summary": "r",
            "figures": {"misuse": {"n": 1}, "remedy": {}},
        }
    ]
    assert evidence.load("SL001", tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("CONFIRMED", "REFUTED", "REFUTED"),
        ("CONFIRMED", "INCONCLUSIVE", "CONFIRMED"),
        ("INCONCLUSIVE", "CONFIRMED", "CONFIRMED"),
        ("INCONCLUSIVE", "INCONCLUSIVE", "INCONCLUSIVE"),
        ("CONFIRMED", "UNSUPPORTED", "CONFIRMED"),
    ],
)
def test_the_last_decided_verdict_is_kept(tmp_path: Path, old: str, new: str, kept: str) -> None:
    evidence.save([_case(old)], FACTS, tmp_path, "2026-11-19")
    evidence.save([_case(new)], FACTS, tmp_path, "2026-11-20")
    assert [entry["verdict"] for entry in evidence.load("SL003", tmp_path)] == [kept]


def test_other_cases_and_platforms_stay(tmp_path: Path) -> None:
    evidence.save([_case()], FACTS, tmp_path)
    evidence.save([_case(name="other")], FACTS, tmp_path)
    evidence.save([_case("REFUTED")], {**FACTS, "gpu": "NVIDIA L4"}, tmp_path)
    found = [(entry["platform"].split(" ·")[0], entry["case"], entry["verdict"]) for entry in evidence.load("SL003", tmp_path)]
    assert found == [
        ("NVIDIA H200", "cuda_free_in_loop", "CONFIRMED"),
        ("NVIDIA H200", "other", "CONFIRMED"),
        ("NVIDIA L4", "cuda_free_in_loop", "REFUTED"),
    ]


def test_the_users_own_run_wins_over_the_shipped_one(tmp_path: Path) -> None:
    evidence.save([_case()], FACTS, evidence.SHIPPED, "2026-01-01")
    evidence.save([_case("REFUTED")], FACTS, tmp_path / "own", "2026-11-20")
    assert [entry["verdict"] for entry in evidence.load("SL003", tmp_path / "own")] == ["REFUTED"]


def test_foreign_files_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("not json", encoding="utf-8")
    (tmp_path / "b.json").write_text("[]", encoding="utf-8")
    (tmp_path / "c.json").write_text(json.dumps({"schema": 99, "entries": [_case()]}), encoding="utf-8")
    assert evidence.read(tmp_path) == []
    assert evidence.read(tmp_path / "absent") == []


def test_the_version_noted_is_the_one_that_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder, version in (("first", "2.4.6"), ("second", "2.5.2")):
        metadata = tmp_path / folder / f"numpy-{version}.dist-info"
        metadata.mkdir(parents=True)
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: numpy\nVersion: {version}\n", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "first"), str(tmp_path / "second")])
    assert platform_facts({})["packages"] == {"numpy": "2.4.6"}


@pytest.mark.parametrize("rule", ["SL001", "SL002", "SL003", "SL004", "SL005"])
def test_shipped_evidence_from_an_h200(rule: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "SHIPPED", SHIPPED)
    found = [entry for entry in evidence.load(rule, tmp_path) if "H200" in entry["platform"]]
    cases = {case.key: case for case in templates.load()[rule].cases}
    assert {(rule, entry["case"], entry["api"]) for entry in found} == set(cases)
    for entry in found:
        case = cases[rule, entry["case"], entry["api"]]
        pageable_race = case.parameters.get("memory") == "pageable"
        assert entry["verdict"] == ("NOT OBSERVED" if pageable_race else "CONFIRMED")
        assert entry["prediction"] == case.prediction
        assert entry["date"]


def test_shipped_evidence_names_its_platform_and_no_machine() -> None:
    for path in SHIPPED.glob("*.json"):
        text = path.read_text(encoding="utf-8")
        facts = json.loads(text)["platform"]
        assert set(facts) == {"gpu", "driver", "cuda_runtime", "python", "streamlint", "packages"}
        assert all(facts.values())
        assert not re.search(r'[\s":]/\w', text)


def test_the_versions_that_a_case_rests_on() -> None:
    installed = {"cupy-cuda13x": "14.2", "numba": "0.68", "numba-cuda": "0.30", "numpy": "2.5", "torch": "2.11", "cuda-bindings": "13.3"}
    assert evidence.packages_of({"api": "torch"}, installed) == {"cupy-cuda13x": "14.2", "torch": "2.11"}
    assert evidence.packages_of({"api": "numba"}, installed) == {"cupy-cuda13x": "14.2", "numba": "0.68", "numba-cuda": "0.30"}
    assert evidence.packages_of({"api": "cuda"}, installed) == {"cupy-cuda13x": "14.2"}
    (entry,) = evidence.entries([_case()], {**FACTS, "packages": installed})
    assert entry["packages"] == {"cupy-cuda13x": "14.2"}
