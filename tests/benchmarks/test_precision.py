"""The ledger of findings on released packages: what it refuses, how verdicts are counted, and how a run is held against it."""

from __future__ import annotations

import importlib
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")

CODE = """import torch


def f(x):
    y = torch.cat([x.cpu(), torch.zeros(1 << 20)])
    return y.to("cuda", non_blocking=True)
"""
MARK, OTHER, THIRD = "0" * 32, "1" * 32, "2" * 32


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("ledger")


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("precision")


def said(ledger: Any, verdict: str, reader: str = "A") -> Any:
    return ledger.Judgment(reader, "2026-11-20", verdict, 'a "reason"', "a wait" if verdict == "real" else "")


def found(ledger: Any, *judged: Any, mark: str = MARK, line: int = 6) -> Any:
    return ledger.Entry("m.py", line, "SL001", mark, judged)


def test_the_ledger_that_is_kept_is_right(ledger: Any, measure: Any) -> None:
    pins = {pin.name: pin for pin in measure.pins()}
    packages = ledger.read()
    assert packages
    for package in packages:
        pin = pins[package.name]
        assert (package.version, package.sha256) == (pin.version, pin.sha256)


def test_what_is_written_is_read_again(ledger: Any, tmp_path: Path) -> None:
    entries = [found(ledger, said(ledger, "real"), said(ledger, "unclear", "B")), replace(found(ledger, mark=OTHER), gone="2026-11-21")]
    package = ledger.Package("name", "1.0", "ab", 3, 40, entries)
    ledger.write(package, tmp_path)
    assert ledger.read(tmp_path) == [package]
    assert [one.fingerprint for one in package.standing] == [MARK]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "E501"}, "no code"),
        ({"fingerprint": "abc"}, "no fingerprint"),
        ({"verdict": "maybe"}, "'maybe' is no verdict"),
        ({"reason": ""}, "needs a reader, a day and a reason"),
        ({"date": "today"}, "needs a reader, a day and a reason"),
        ({"cost": ""}, "needs what it costs"),
        ({"colour": "red"}, "unexpected keyword"),
    ],
)
def test_a_wrong_entry_is_refused(ledger: Any, tmp_path: Path, change: dict[str, str], message: str) -> None:
    entry = {"path": "m.py", "line": 6, "rule": "SL001", "fingerprint": MARK}
    judged = {"reader": "A", "date": "2026-11-20", "verdict": "real", "reason": "so", "cost": "a wait"}
    for key, value in change.items():
        (entry if key in entry or key == "colour" else judged)[key] = value
    rows = [f"{key} = {json.dumps(value)}" for key, value in entry.items()]
    inner = [f"{key} = {json.dumps(value)}" for key, value in judged.items()]
    text = ["name = 'n'", "version = '1'", "sha256 = 'ab'", "[[findings]]", *rows, "[[findings.judged]]", *inner]
    (tmp_path / "n.toml").write_text("\n".join(text), encoding="utf-8")
    with pytest.raises(ledger.LedgerError, match=message):
        ledger.read(tmp_path)


def test_a_finding_or_a_reader_that_stands_twice_is_refused(ledger: Any, tmp_path: Path) -> None:
    ledger.write(ledger.Package("n", "1", "ab", findings=[found(ledger), found(ledger, line=9)]), tmp_path)
    with pytest.raises(ledger.LedgerError, match="stands there twice"):
        ledger.read(tmp_path)
    ledger.write(ledger.Package("n", "1", "ab", findings=[found(ledger, said(ledger, "real"), said(ledger, "unclear"))]), tmp_path)
    with pytest.raises(ledger.LedgerError, match="A judged it twice"):
        ledger.read(tmp_path)


def test_readers_agree_differ_and_settle(ledger: Any) -> None:
    real, false = said(ledger, "real"), said(ledger, "not real", "B")
    assert found(ledger).verdict == ""
    assert found(ledger, real, said(ledger, "real", "B")).verdict == "real"
    assert (found(ledger, real, false).verdict, found(ledger, real, false).disputed) == ("unclear", True)
    settled = found(ledger, real, false, said(ledger, "not real", "settled"))
    assert (settled.verdict, settled.disputed) == ("not real", False)


def test_the_interval_is_wilson_s(ledger: Any) -> None:
    low, high = ledger.wilson(8, 10)
    assert (round(low, 4), round(high, 4)) == (0.4902, 0.9433)
    assert ledger.wilson(0, 0) == (0.0, 1.0)
    assert ledger.wilson(5, 5)[1] == 1.0
    assert round(ledger.lower(ledger.Tally(real=20)), 4) == 0.9241


@pytest.mark.parametrize(
    ("tally", "on"),
    [
        ((12, 0, 0), True),
        ((11, 1, 0), False),  # 0.76
        ((11, 0, 1), False),  # what is unclear counts as wrong
        ((28, 2, 0), True),  # 0.85
        ((27, 4, 0), False),  # 0.77
        ((10, 1, 0), True),  # too few to tell, and one may be wrong
        ((9, 2, 0), False),
        ((9, 1, 1), False),
        ((0, 0, 0), True),
    ],
)
def test_what_may_be_on_by_default(ledger: Any, tally: tuple[int, int, int], on: bool) -> None:
    assert ledger.may_be_on(ledger.Tally(*tally)) is on


def test_a_run_is_held_against_the_ledger(ledger: Any, measure: Any) -> None:
    pin = measure.corpus.Pin("n", "1", "wheel", "ab", "")
    rows = [{"filename": "m.py", "location": {"row": row}, "code": "SL001", "fingerprint": mark} for row, mark in ((8, MARK), (20, OTHER))]
    rows.append({"filename": "m.py", "location": {"row": 1}, "code": "SL000", "fingerprint": "3" * 32})
    known = ledger.Package("n", "1", "ab", findings=[found(ledger, said(ledger, "real")), found(ledger, mark=THIRD, line=30)])
    change = measure.compare(measure.Run(pin, rows, 1, 40), known, "2026-11-21")
    assert [one.fingerprint for one in change.new] == [OTHER]
    assert [one.fingerprint for one in change.gone] == [THIRD]
    assert [(one.line, one.verdict, one.gone) for one in change.package.findings] == [(8, "real", ""), (20, "", ""), (30, "", "2026-11-21")]
    again = measure.compare(measure.Run(pin, rows, 1, 40), change.package, "2026-11-22")
    assert (again.new, again.gone) == ([], [])
    assert again.package.findings[2].gone == "2026-11-21"
    other = measure.compare(measure.Run(replace(pin, sha256="cd"), rows, 1, 40), known, "2026-11-21")
    assert len(other.new) == 2


def test_a_tree_is_linted_as_a_user_does_and_told(ledger: Any, measure: Any, tmp_path: Path) -> None:
    tree = tmp_path / "n-1"
    tree.mkdir()
    (tree / "m.py").write_text(CODE, encoding="utf-8")
    (tree / "pyproject.toml").write_text("[tool.streamlint]\nignore = ['SL001']\n", encoding="utf-8")
    run = measure.lint(measure.corpus.Pin("n", "1", "wheel", "ab", ""), tmp_path, None, 120)
    assert [(row["code"], row["filename"], row["location"]["row"]) for row in run.findings] == [("SL001", "m.py", 6)]
    assert (run.files, run.lines) == (1, 6)
    change = measure.compare(run, None, "2026-11-21")
    lines = list(measure.report([change.package], [change], []))
    assert lines[1].split() == ["SL001", "1", "0", "0", "0", "0", "-", "0.00"]
    assert any(line.startswith("SL001 n-1 m.py:6 ") for line in lines[lines.index("\nnew: 1") :])


def test_the_table_counts_what_stands(ledger: Any, measure: Any) -> None:
    entries = [found(ledger, said(ledger, "real"), mark=f"{number:032x}") for number in range(11)]
    entries.append(found(ledger, said(ledger, "not real"), mark="a" * 32))
    entries.append(replace(found(ledger, said(ledger, "not real"), mark="b" * 32), gone="2026-11-21"))
    lines = list(measure.table([ledger.Package("n", "1", "ab", 1, 1, entries)]))
    assert lines[1].split() == "SL001 12 12 11 1 0 92 % [65, 99] 0.76 may not be on by default".split()


@pytest.fixture
def accuracy(monkeypatch: pytest.MonkeyPatch, ledger: Any) -> Any:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("accuracy")


def test_the_page_and_the_rules_are_what_the_records_give(accuracy: Any) -> None:
    assert accuracy.main(["--check"]) == 0


def test_the_page_tells_what_is_wrong_and_what_was_mended(ledger: Any, accuracy: Any) -> None:
    entries = [found(ledger, said(ledger, "real")), found(ledger, said(ledger, "unclear"), mark=OTHER, line=7)]
    entries.append(replace(found(ledger, said(ledger, "not real"), mark=THIRD, line=8), gone="2026-11-21"))
    packages = [ledger.Package("n", "1", "ab", 1, 40, entries)]
    text = accuracy.page(packages, [])
    assert "| SL001 | 2 | 2 | 1 | 0 | 1 | 50 % [9, 91] | 1/2 50 % [9, 91] |  |" in text
    assert "* **On the 1 packages that it was mended on**, 50 % [9, 91] are." in text
    assert "## Recall" not in text
    text = accuracy.details(packages, [])
    assert '* SL001 n `m.py:7` (unclear): a "reason"' in text
    assert '* SL001 n `m.py:8` (not real): a "reason"' in text
    assert "| n 1 | 1 | 40 | 2 | 1 | 0 | 1 |" in text
    assert "## Missed" not in text
    assert accuracy.data(packages) == {"SL001": {"judged": 2, "real": 1, "not_real": 0, "unclear": 1}}


def test_the_page_tells_what_was_real_at_first_sight(ledger: Any, accuracy: Any) -> None:
    entries = [found(ledger, said(ledger, "real")), found(ledger, said(ledger, "real"), mark=OTHER, line=7)]
    entries.append(replace(found(ledger, said(ledger, "not real"), mark=THIRD, line=8), gone="2026-11-21"))
    sight = {"date": "2026-11-21", "packages": ["n"], "findings": [entries[1].fingerprint, THIRD]}
    draw = {"date": "2026-11-22", "seed": 7}
    marked = {"read": 2, "marked": 4, "found": 3, "scope": {"default": [1, 2], "all-loops": [1, 1], "outside": 1}}
    draws = [
        {**draw, "drawn": ["a", "b"], "told": 3, "real": 2},
        {**draw, "drawn": ["c"]},
        {**draw, "drawn": ["d"], "told": 1, "real": 1, **marked},
    ]
    text = accuracy.page([ledger.Package("n", "1", "ab", 1, 40, entries)], [], [sight], draws)
    assert "75 % of the default findings are real (3 of 4, 2 draws of 3 packages); in the last draw 100 % [21, 100]." in text
    assert "3 packages in 2 draws by a seed" in text
    assert "4 default findings, 3 of them real (75 % [30, 95])." in text
    assert "1 packages that nobody had looked at were linted on 2026-11-21: 2 default findings, 1 of them real (50 % [9, 91])." in text
    assert "3 of 4 marks are told (75 % [30, 95])" in text
    assert "50 % [9, 91] of 2 marks that are theirs by default are told, and 100 % [21, 100] of 1" in text
    text = accuracy.details([], [], draws)
    assert "| 7 | 2026-11-22 | 2 | 3 | 2 67 % [21, 94] | 1 |  |  |  |" in text
    assert "| 7 | 2026-11-22 | 1 | 1 | 1 100 % [21, 100] | 1 | 2 | 4 | 3 75 % [30, 95] |" in text


def test_the_picture_has_a_dot_for_each_judged_draw(accuracy: Any) -> None:
    draws = [{"date": "d", "drawn": ["a"], "told": 4, "real": 3}, {"date": "e", "drawn": ["b"]}]
    picture = accuracy.accuracy_picture.picture(draws)
    assert picture.count("<circle") == 1
    assert "<title>d: 3 of 4</title>" in picture
    assert "all 4 findings: 75 %" in picture


def test_recall_counts_what_was_measured(accuracy: Any) -> None:
    rows = [
        {"fix": {"rule": "SL005", "decidable": "function"}, "found": True, "silent": True, "failure": ""},
        {"fix": {"rule": "SL005", "decidable": "project"}, "found": False, "silent": True, "failure": ""},
        {"fix": {"rule": "SL005", "decidable": "file"}, "found": False, "silent": False, "failure": "no clone"},
    ]
    place = {"repository": "some/project", "commit": "0123456789abcdef", "path": "m.py", "before": [7, 9], "missed": "Nothing waits."}
    lost = [{**row, "fix": {**row["fix"], **place}, "others": ["SL006"]} for row in rows]
    told = "* SL005 some/project 0123456789 `m.py:7,9` (project, reported as SL006): Nothing waits."
    assert list(accuracy.missed(lost)) == [told]
    lines = list(accuracy.recall(rows))
    assert lines[2] == "| SL005 | 2 | 1/1 100 % [21, 100] | 1/2 50 % [9, 91] | 2/2 100 % [34, 100] |"
