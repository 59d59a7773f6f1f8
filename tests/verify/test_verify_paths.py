"""``streamlint verify PATH``: findings with the verdicts of their own facts, on a made-up machine; and children that hang and crash."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_machine import NOT_SHOWN, FakeMachine, NoGpu

from streamlint.cli import main as cli
from streamlint.commands import verify
from streamlint.findings import measured
from streamlint.verify import evidence, runner, watchdog
from streamlint.verify.care import Plan
from streamlint.verify.criteria import Experiment
from streamlint.verify.runner import Job
from streamlint.verify.watchdog import Child

SOURCE = """\
import torch


def upload(device):
    first = torch.empty(1 << 20)
    second = torch.empty(1 << 20)
    third = torch.empty(1 << 10)
    return [x.to("cuda", non_blocking=True) for x in (first, second, third)]


def download(stream):
    with torch.cuda.stream(stream):
        scores = torch.ones(1 << 28, device="cuda")
        host = torch.empty(1 << 28)
        host.copy_(scores, non_blocking=True)
        return host, scores.sum()
"""
ROW = 15  # of the download


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a file to verify, and evidence in a folder of the test's own."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "loader.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    measured.records.cache_clear()
    yield tmp_path
    measured.records.cache_clear()


TRAINING = """\
import torch
from torch import nn


def train(model: nn.Module, batches, optimizer):
    total = 0.0
    for x, y in batches:
        loss = nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def _entries(capsys: pytest.CaptureFixture[str], *words: str, machine: FakeMachine | None = None) -> tuple[int, list[dict[str, Any]]]:
    code = verify.main(["src", "--output-format", "json", *words], machine or FakeMachine())
    return code, json.loads(capsys.readouterr().out)


def test_each_finding_has_the_verdict_of_its_own_facts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, entries = _entries(capsys)
    (download,) = [entry for entry in entries if entry["location"]["row"] == ROW]
    assert code == 0
    shown = download["evidence"]
    assert (shown["verdict"], shown["level"]) == ("CONFIRMED", "facts")
    assert shown["platform"].startswith("Fake GPU (tests) · ")
    assert "[pageable_download, torch, bytes 67108864" in shown["summary"]
    assert "1 GiB brought to 64 MiB" in shown["summary"]
    assert {entry["evidence"]["level"] for entry in entries} == {"facts"}


def test_a_case_that_takes_no_facts_says_that_it_is_the_template(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src" / "loader.py").write_text(TRAINING, encoding="utf-8")
    _, (entry,) = _entries(capsys, "--no-save")
    assert (entry["code"], entry["evidence"]["verdict"], entry["evidence"]["level"]) == ("SL020", "CONFIRMED", "template")
    assert verify.main(["src", "--no-save"], FakeMachine()) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "by the rule's template, which takes no fact of this finding: " in told
    assert "with the facts of this finding" not in told


def test_a_planted_wrong_prediction_is_refuted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(lambda job: NOT_SHOWN[job.case.experiment])
    code, entries = _entries(capsys, "--no-save", machine=machine)
    assert code == 1
    assert {entry["evidence"]["verdict"] for entry in entries} == {"REFUTED"}


@pytest.mark.parametrize("format", ["full", "concise", "github"])
def test_refuted_is_said_in_every_format(folder: Path, capsys: pytest.CaptureFixture[str], format: str) -> None:
    machine = FakeMachine(lambda job: NOT_SHOWN[job.case.experiment])
    assert verify.main(["src", "--no-save", "--output-format", format], machine) == 1
    captured = capsys.readouterr()
    assert captured.out.count("REFUTED on Fake GPU (tests)") == captured.out.count("[SL001]") > 0
    assert captured.err.splitlines()[-1].endswith("REFUTED")


def test_distinct_facts_run_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[tuple[object, ...]] = []

    class Counting(FakeMachine):
        def spawn(self, jobs: Sequence[Job]) -> Any:
            ran.extend(job.case.identity for job in jobs)
            return super().spawn(jobs)

    _, entries = _entries(capsys, "--no-save", machine=Counting())
    sets = {json.dumps(entry["facts"], sort_keys=True) for entry in entries}
    assert len(ran) == 2 * len(set(ran)) == 2 * len(sets)


def test_check_shows_what_was_verified_with_a_findings_facts(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine(lambda job: NOT_SHOWN[job.case.experiment])
    verify.main(["src", "--quiet"], machine)
    capsys.readouterr()
    measured.records.cache_clear()
    cli(["check", "src", "--output-format", "json"])
    entries = json.loads(capsys.readouterr().out)
    assert {(entry["evidence"]["verdict"], entry["evidence"]["level"]) for entry in entries} == {("REFUTED", "facts")}
    kept = json.loads(next((folder / "data" / "streamlint" / "evidence").glob("*.json")).read_text(encoding="utf-8"))
    assert "loader.py" not in json.dumps(kept)  # where the findings were is nobody else's business


def test_facts_of_somebody_say_nothing_of_the_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = measured.summary("SL001")
    verify.main(["src", "--quiet"], FakeMachine(lambda job: NOT_SHOWN[job.case.experiment]))
    capsys.readouterr()
    measured.records.cache_clear()
    assert measured.summary("SL001") == before


def test_without_a_gpu_the_lint_result_stands_and_the_exit_code_is_2(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = verify.main(["src", "--output-format", "json"], NoGpu())
    captured = capsys.readouterr()
    assert code == 2
    entries = json.loads(captured.out)
    assert len(entries) > 1
    assert all(entry["evidence"] is None or entry["evidence"]["level"] == "rule" for entry in entries)
    problem = captured.err.splitlines()[-1]
    assert problem.startswith("streamlint verify: the findings were not verified: ")
    assert "no CUDA device" in problem


def test_nothing_found_needs_no_gpu(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "src" / "loader.py").write_text("import torch\n", encoding="utf-8")
    assert verify.main(["src"], NoGpu()) == 0
    assert capsys.readouterr().out == ""


def test_mistakes_of_the_command_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main(["src", "--rule", "SL999"], FakeMachine()) == 2
    assert verify.main(["src", "--output-format", "yaml"], FakeMachine()) == 2
    assert cli(["verify", "nowhere"]) == 2
    assert cli(["verify", "src", "--self-test"]) == 2
    assert "yaml" in capsys.readouterr().err


def test_one_rule_of_the_findings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _entries(capsys, "--rule", "SL005") == (0, [])
    assert {entry["code"] for entry in _entries(capsys, "--rule", "unpinned-non-blocking")[1]} == {"SL001"}


# Real children ------------------------------------------------------------------------------------------------------------------

SAY = "import json, os, sys, time\ndef say(**m): print(json.dumps(m), flush=True)\n"


class Planted(FakeMachine):
    """The first program of an experiment goes wrong in a child of its own; the others answer as the made-up machine does."""

    def __init__(self, code: str, experiment: Experiment = Experiment.HOST_WAITS) -> None:
        super().__init__()
        self.codes, self.experiment = [code], experiment
        self.children: list[Child] = []

    def spawn(self, jobs: Sequence[Job]) -> Any:
        if not self.codes or jobs[0].case.experiment is not self.experiment:
            return super().spawn(jobs)
        self.children.append(Child([sys.executable, "-c", SAY + "say(event='start', job=0)\n" + self.codes.pop()]))
        return self.children[-1]


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("time.sleep(600)", "misuse: the case did not end within 1 s, killed"),
        ("sys.stderr.write('out of luck\\n'); os.abort()", "misuse: the child died of SIGABRT: out of luck"),
    ],
    ids=["hang", "crash"],
)
def test_a_planted_hang_and_a_planted_crash(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    monkeypatch.setattr(watchdog, "_DUMP_S", 1.0)  # for stacks, which none of them writes
    machine = Planted(code)
    _, entries = _entries(capsys, "--timeout", "1", "--no-save", machine=machine)
    found = {entry["evidence"]["verdict"] for entry in entries}
    assert found == {"INCONCLUSIVE", "CONFIRMED"}  # the run went on
    assert sum(words in entry["evidence"]["summary"] for entry in entries) >= 1
    assert machine.children[0]._process.poll() is not None


def test_a_planted_deadlock_is_confirmed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HANG_S", 0.5)
    monkeypatch.setattr(watchdog, "_DUMP_S", 1.0)
    machine = Planted("say(event='armed', job=0); time.sleep(600)", Experiment.DEADLOCK)
    assert cli_verify(machine, "--rule", "SL004", "--output-format", "json", "--no-save") == 0
    cases = json.loads(capsys.readouterr().out)["cases"]
    (lock,) = [case for case in cases if case["case"] == "lock_in_callback"]
    assert lock["verdict"] == "CONFIRMED"
    assert lock["misuse"] == {"ended": False, "waited_s": 0.5}
    assert len(machine.children) == 1


def cli_verify(machine: FakeMachine, *words: str) -> int:
    return verify.main([*words], machine)


def test_a_machine_that_is_to_be_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine()
    machine.plan = Plan(1 << 30, stop="GPU 0 is in exclusive mode, and another process has it")
    assert cli_verify(machine, "--rule", "SL003") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "streamlint verify: GPU 0 is in exclusive mode, and another process has it\n"


def test_remarks_are_said_before_anything_runs(capsys: pytest.CaptureFixture[str]) -> None:
    machine = FakeMachine()
    machine.plan = Plan(1 << 30, remarks=["GPU 0 is in use"])
    cli_verify(machine, "--rule", "SL003", "--no-save")
    assert capsys.readouterr().err.splitlines()[1] == "GPU 0 is in use"


def test_evidence_of_facts_stands_beside_that_of_the_rule(tmp_path: Path) -> None:
    platform = {"gpu": "G", "driver": "1.2", "cuda_runtime": "13.0"}
    case: dict[str, Any] = {"rule": "SL001", "case": "c", "api": "torch", "verdict": "CONFIRMED", "reason": "r"}
    own = {**case, "verdict": "REFUTED", "level": "facts", "facts": {"bytes": 4}, "asked": [{"facts": {"bytes": 4}, "notes": []}]}
    evidence.save([case], platform, tmp_path)
    evidence.save([own], platform, tmp_path)
    assert [entry["verdict"] for entry in evidence.read(tmp_path)] == ["CONFIRMED", "REFUTED"]


def test_the_page_says_where_the_findings_are(folder: Path) -> None:
    pytest.importorskip("jinja2")
    assert verify.main(["src", "--no-save", "--quiet", "--output-format", "html:page.html"], FakeMachine()) == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert f"<code>src/loader.py:{ROW}</code>" in text
    assert "With the finding&#39;s own: bytes 67108864" in text or "With the finding's own: bytes 67108864" in text


def test_the_page_of_the_templates(folder: Path) -> None:
    pytest.importorskip("jinja2")
    assert verify.main(["--rule", "SL003", "--no-save", "--quiet", "--output-format", "html:page.html"], FakeMachine()) == 0
    assert "Fake GPU (tests)" in (folder / "page.html").read_text(encoding="utf-8")


def test_a_page_without_jinja_is_one_message(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert verify.main(["--output-format", "html"], FakeMachine()) == 2
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert "Jinja2" in captured.err
