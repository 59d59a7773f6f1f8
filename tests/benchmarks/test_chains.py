"""Chains of helpers: what is counted, and where."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from generated.judging import Outcome
from generated.texts import Spec

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not (FOLDER / "chains.py").is_file(), reason="benchmarks are not in the source distribution")


@pytest.fixture
def chains(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("chains")


def outcome(reported: bool, harmless: bool = False, links: tuple[str, ...] = ("function", "method"), *others: str) -> Outcome:
    return Outcome(Spec("sl005-passed", links, "files", harmless), "SL005", reported, others)


def test_counts(chains: Any) -> None:
    told = chains.summary(
        [outcome(True), outcome(False, False, ("method",)), outcome(False, True), outcome(True, True, ("method",), "SL006")]
    )
    assert told["all"] == [1, 2, 1, 2]
    assert told["by"]["depth"] == {"1": [0, 1, 1, 1], "2": [1, 1, 0, 1]}
    assert told["by"]["kind of link"] == {"python function": [1, 1, 0, 1], "python method": [1, 2, 1, 2]}
    assert told["by"]["kind of link, alone"] == {"python method": [0, 1, 1, 1]}
    assert told["other findings"] == {"SL006 beside SL005": 1}
    assert told["wrong"] == ["sl005-passed 1 method files neutral 0", "harmless sl005-passed 1 method files neutral 0"]


def test_one_rule_in_one_file(chains: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The run is the linter's own: what is in one file and near is found, and the counts are written."""
    monkeypatch.setattr(sys, "argv", ["chains.py", "--only", "SL005", "--count", "12", "--read-all", "--json", str(tmp_path / "told")])
    assert chains.main() == 0
    told = json.loads((tmp_path / "told").read_text())
    found, hazards, flagged, alike = told["all"]
    assert (hazards, flagged, alike) == (6, 0, 6)
    assert 0 < found <= 6
    assert set(told["by"]["rule"]) == {"SL005 python", "SL005 cuda"}
    assert f"{found:4} of    6 found" in capsys.readouterr().out
