"""The command with a made-up machine: exit codes, formats, self-test, evidence."""

from __future__ import annotations

import argparse
import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from fake_machine import NOT_SHOWN, SHOWN, FakeMachine, NoGpu, as_predicted

from streamlint.verify import command, templates
from streamlint.verify.criteria import Experiment
from streamlint.verify.options import add_arguments
from streamlint.verify.runner import Job


def _options(*arguments: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([*arguments])


def _json(capsys: pytest.CaptureFixture[str], *arguments: str, machine: FakeMachine | None = None) -> tuple[int, dict[str, Any]]:
    code = command.run(_options("--output-format", "json", "--no-save", *arguments), machine or FakeMachine())
    return code, json.loads(capsys.readouterr().out)


def _verdicts(report: dict[str, Any]) -> dict[tuple[str, str], str]:
    return {(case["case"], case["api"]): case["verdict"] for case in report["cases"]}


def test_no_cupy_is_one_message_with_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert command.run(_options()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "pip install 'streamlint[cuda13]'" in captured.err


def test_no_gpu_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(_options(), NoGpu()) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "no CUDA device" in captured.err


def test_unknown_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(_options("--rule", "SL999"), FakeMachine()) == 2
    assert "SL999" in capsys.readouterr().err


def test_json_shape(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _json(capsys, "--rule", "SL003")
    assert code == 0
    assert set(report) == {"platform", "cases"}
    assert set(report["platform"]) == {"gpu", "driver", "cuda_runtime", "python", "streamlint", "packages"}
    for case in report["cases"]:
        assert list(case) == ["rule", "case", "api", "prediction", "verdict", "reason", "misuse", "remedy", "seconds"]
        assert case["rule"] == "SL003"
    assert _verdicts(report)["cuda_free_in_loop", "cupy"] == "CONFIRMED"


def test_rules_by_name_and_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    _, report = _json(capsys, "--rule", "alloc-in-loop", "--rule", "sl005")
    assert {case["rule"] for case in report["cases"]} == {"SL003", "SL005"}


def test_all_rules_as_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _json(capsys)
    assert code == 0
    unlucky = {key for key, verdict in _verdicts(report).items() if verdict != "CONFIRMED"}
    assert unlucky == {("pageable_destination", api) for api in ("cupy", "numba", "cuda")}
    assert {case["verdict"] for case in report["cases"]} == {"CONFIRMED", "NOT OBSERVED"}


def test_refuted_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _json(capsys, "--rule", "SL003", machine=FakeMachine(lambda job: NOT_SHOWN[job.case.experiment]))
    assert code == 1
    assert set(_verdicts(report).values()) == {"REFUTED"}


def test_a_race_not_seen_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _json(capsys, "--rule", "SL005", machine=FakeMachine(lambda job: NOT_SHOWN[job.case.experiment]))
    assert code == 0
    assert set(_verdicts(report).values()) == {"NOT OBSERVED"}


def test_missing_libraries_are_unsupported_and_strict_minds(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(lacks={"torch": "torch is not installed"})
    code, report = _json(capsys, "--rule", "SL003", machine=machine)
    assert code == 0
    (torch,) = [case for case in report["cases"] if case["api"] == "torch"]
    assert (torch["verdict"], torch["reason"]) == ("UNSUPPORTED", "torch is not installed")
    assert _json(capsys, "--rule", "SL003", "--strict", machine=machine)[0] == 1


def test_nothing_that_could_run_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    lacks = dict.fromkeys(("torch", "numba", "cuda-python", "cuda", "cupy"), "not here")
    assert _json(capsys, machine=FakeMachine(lacks=lacks))[0] == 2


def test_a_snippet_that_does_not_compile_is_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine()
    case = next(case for case in templates.load()["SL003"].cases if case.api == "cuda")
    machine.failures = {str(case.path("remedy")): "nvcc: error"}
    _, report = _json(capsys, "--rule", "SL003", machine=machine)
    assert _verdicts(report)[case.name, "cuda"] == "INCONCLUSIVE"


def test_self_test_confirms_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    code, report = _json(capsys, "--self-test")
    assert code == 0
    assert set(_verdicts(report).values()) == {"REFUTED", "NOT OBSERVED"}


def test_self_test_fails_where_a_remedy_shows_the_prediction(capsys: pytest.CaptureFixture[str]) -> None:
    def backwards(job: Job) -> dict[str, Any]:
        return (SHOWN if job.variant == "remedy" else NOT_SHOWN)[job.case.experiment]

    assert _json(capsys, "--self-test", machine=FakeMachine(backwards))[0] == 1


def test_a_program_that_always_shows_it_is_not_confirmed_either_way(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ((), ("--self-test",)):
        _, report = _json(capsys, *arguments, machine=FakeMachine(lambda job: SHOWN[job.case.experiment]))
        costs = {case.key[1:] for template in templates.load().values() for case in template.cases if case.experiment is Experiment.COSTS}
        verdicts = _verdicts(report)
        assert {verdict for key, verdict in verdicts.items() if key not in costs} == {"INCONCLUSIVE"}
        assert {verdict for key, verdict in verdicts.items() if key in costs} <= {"REFUTED"}  # it is no dearer than its remedy


def test_full_has_a_line_a_case_and_the_counts_last(capsys: pytest.CaptureFixture[str]) -> None:
    command.run(_options("--rule", "SL005", "--no-save"), FakeMachine())
    lines = capsys.readouterr().out.splitlines()
    assert sum("d2h" in line or "SL005" in line for line in lines) == 8
    assert lines[-1] == "8 cases: 5 CONFIRMED, 3 NOT OBSERVED"


def test_markdown(capsys: pytest.CaptureFixture[str]) -> None:
    command.run(_options("--rule", "SL005", "--no-save", "--output-format", "markdown"), FakeMachine())
    assert capsys.readouterr().out.count("\n| SL005 |") == 8


def test_output_file_and_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, folder = tmp_path / "out.json", tmp_path / "evidence"
    arguments = ("--rule", "SL003", "--output-format", "json", "--output-file", str(target), "--evidence", str(folder))
    assert command.run(_options(*arguments), FakeMachine()) == 0
    assert capsys.readouterr().out == ""
    assert json.loads(target.read_text(encoding="utf-8"))["cases"]
    assert len(list(folder.glob("*.json"))) == 1


def test_self_test_is_no_evidence(tmp_path: Path) -> None:
    command.run(_options("--rule", "SL003", "--self-test", "--evidence", str(tmp_path)), FakeMachine())
    assert list(tmp_path.iterdir()) == []


def test_verify_needs_no_front_end_and_no_cuda_library_to_start() -> None:
    code = (
        "import sys; from streamlint.verify import command, child, device, templates, lab, experiments; templates.load();"
        "print([m for m in ('tree_sitter', 'cupy', 'torch', 'numba', 'rich') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_what_noise_left_open_is_run_again(capsys: pytest.CaptureFixture[str]) -> None:
    noisy = {"gate_ms": [20.0, 60.0, 120.0], "host_ms": [10.0, 30.0, 60.0]}
    ran: dict[tuple[object, ...], int] = {}

    def settles(job: Job) -> dict[str, Any]:
        ran[job.case.identity, job.variant] = ran.get((job.case.identity, job.variant), 0) + 1
        waits = job.case.experiment is Experiment.HOST_WAITS
        return noisy if waits and ran[job.case.identity, job.variant] == 1 else as_predicted(job)

    code, report = _json(capsys, "--rule", "SL003", machine=FakeMachine(settles))
    assert code == 0
    assert set(_verdicts(report).values()) == {"CONFIRMED"}
    assert max(ran.values()) == 2


def test_what_stays_noisy_is_inconclusive(capsys: pytest.CaptureFixture[str]) -> None:
    noisy = {"gate_ms": [20.0, 60.0, 120.0], "host_ms": [10.0, 30.0, 60.0]}
    runs: list[Job] = []
    machine = FakeMachine(lambda job: (runs.append(job), noisy)[1] if job.case.experiment is Experiment.HOST_WAITS else as_predicted(job))
    _, report = _json(capsys, "--rule", "SL020", machine=machine)
    assert set(_verdicts(report).values()) == {"INCONCLUSIVE"}
    assert len(runs) == 2 * 3 * len(report["cases"])
