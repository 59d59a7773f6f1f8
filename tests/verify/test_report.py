"""Verify's own formats: bars, JUnit, JSON by its schema; and progress on a terminal and off one."""

from __future__ import annotations

import io
import json
from typing import Any
from xml.etree import ElementTree

import pytest
from fake_machine import NOT_SHOWN, SHOWN, FakeMachine

from streamlint.commands import schema, verify
from streamlint.verify import report, templates
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment, Judgement, Verdict, shown_share
from streamlint.verify.options import size as size_of
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Result


def _result(experiment: Experiment, verdict: Verdict = Verdict.CONFIRMED, **figures: Any) -> Result:
    case: Case = next(case for template in templates.load().values() for case in template.cases if case.experiment is experiment)
    sides = figures or {"misuse": SHOWN[experiment], "remedy": NOT_SHOWN[experiment]}
    return Result(case, Judgement(verdict, "why"), sides["misuse"], sides["remedy"], 1.5)


@pytest.mark.parametrize("experiment", [experiment for experiment in Experiment if experiment is not Experiment.COSTS])
def test_what_is_shown_fills_the_bar(experiment: Experiment) -> None:
    assert report.bars(_result(experiment)) == "█████|░░░░░"
    assert shown_share(experiment, {}) is None


def test_bars_of_costs_and_of_nothing() -> None:
    assert report.bars(_result(Experiment.COSTS)) == "█████|██░░░"
    assert report.bars(_result(Experiment.COSTS, misuse={}, remedy={})) == "     |     "
    assert report.bars(_result(Experiment.DATA_RACE, misuse={"runs": 20, "wrong": 7}, remedy={"failure": "x"})) == "██░░░|     "


def test_junit() -> None:
    results = [_result(Experiment.DATA_RACE, verdict) for verdict in Verdict]
    suite = ElementTree.fromstring(report.junit("Fake GPU", results).encode())
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
    }
    assert [row[0].tag for row in suite] == ["system-out", "failure", "system-out", "error", "skipped"]
    assert suite[1][0].get("message") == "REFUTED: why"


def test_json_fits_its_schema(capsys: pytest.CaptureFixture[str]) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    machine = FakeMachine(lacks={"numba": "not here"})
    assert verify.main(["--output-format", "json", "--no-save", "--quiet"], machine) == 0
    jsonschema.validate(json.loads(capsys.readouterr().out), schema.verify())


def test_several_formats_each_in_a_file(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    words = [word for name in ("json", "junit", "markdown") for word in ("--output-format", f"{name}:{tmp_path / name}")]
    assert verify.main([*words, "--rule", "SL003", "--no-save", "--quiet"], FakeMachine()) == 0
    assert capsys.readouterr().out == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["json", "junit", "markdown"]
    assert verify.main(["--output-format", "json", "--output-format", "junit", "--no-save"], FakeMachine()) == 2


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_written_over_on_a_terminal() -> None:
    stream = _Terminal()
    progress = Progress(stream)
    progress.total = 2
    progress.step("first")
    progress.say("stays")
    progress.clear()
    text = stream.getvalue()
    assert "[1/2]" in text
    assert text.endswith("\r\x1b[Kstays\n")


def test_progress_off_a_terminal_is_lines_and_quiet_is_nothing() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.step("soon over")
    progress.say("stays")
    assert stream.getvalue() == "stays\n"
    quiet = Progress(stream, quiet=True)
    quiet.say("nothing")
    quiet.step("nothing")
    assert stream.getvalue() == "stays\n"


@pytest.mark.parametrize(("text", "size"), [("512", 512 << 20), ("512M", 512 << 20), ("1.5GiB", 3 << 29), ("64k", 64 << 10)])
def test_sizes(text: str, size: int) -> None:
    assert size_of(text) == size


def test_no_size(capsys: pytest.CaptureFixture[str]) -> None:
    from streamlint.cli import main

    assert main(["verify", "--memory", "much"]) == 2
    assert "'much' is no size" in capsys.readouterr().err
