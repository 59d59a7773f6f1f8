"""``verify --executor dask``: many workers with made-up GPUs; and a real scheduler with two worker processes, one of which is killed."""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fake_machine import NOT_SHOWN, FakeMachine, as_predicted
from waiting import until

from streamlint import cli
from streamlint.commands import schema
from streamlint.verify import device, evidence, far, fleet, matrix, templates
from streamlint.verify.fleet import Member, Order
from streamlint.verify.options import FailedError, add_arguments, choose
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Job

ROOT = Path(__file__).parents[2]
ORDER = Order(0, 1 << 30, 30.0, False)


class Made(FakeMachine):
    """A made-up device, chosen by the worker that asks."""

    arch = ""

    def __init__(self, gpu: str, **more: Any) -> None:
        super().__init__(**more)
        self.gpu = gpu

    def __enter__(self) -> Made:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def probe(self) -> dict[str, Any]:
        return {**super().probe(), "gpu": self.gpu} if self.gpu else {"reason": "no CUDA device"}


class Workers:
    """A cluster of one thread: its workers have a GPU each, and leave after so many tasks."""

    def __init__(self, gpus: dict[str, Made], monkeypatch: pytest.MonkeyPatch, leaves: dict[str, int] | None = None) -> None:
        self.gpus, self.left, self.monkeypatch = gpus, leaves or {}, monkeypatch
        self.tasks: list[str] = []
        self.at_work: set[str] = set()

    def workers(self) -> dict[str, str] | None:
        return {f"tcp://{name}": name for name in self.gpus if self.left.get(name, 1) >= 0}

    def patience(self) -> float:
        return 0.2

    def submit(self, worker: str, function: Callable[..., Any], *arguments: Any) -> concurrent.futures.Future[Any]:
        name = worker.removeprefix("tcp://")
        self.tasks.append(f"{name} {function.__name__}")
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        if name in self.left:
            self.left[name] -= 1
            if self.left[name] < 0:
                return future  # and it has gone: no answer comes
        self.monkeypatch.setattr(device, "Device", lambda number, memory: self.gpus[name])
        self.monkeypatch.setenv("CUDA_VISIBLE_DEVICES", name.partition("=")[2] or name)
        try:
            future.set_result(json.loads(json.dumps(function(*arguments))))
        except Exception as error:
            future.set_exception(error)
        return future


def verified(workers: Workers, *rules: str, order: Order = ORDER) -> list[Member]:
    cases = [case for template in choose(rules) for case in template.cases]
    members: list[Member] = []
    fleet.verify(workers, cases, order, Progress(quiet=True), members)
    return members


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    return parser.parse_args([*words])


def refuting(job: Job) -> dict[str, Any]:
    return (NOT_SHOWN if job.case.api == "cupy" else {job.case.experiment: as_predicted(job)})[job.case.experiment]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "LOOK_S", 0.02)


def test_each_gpu_has_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"one": Made("Fake A"), "two": Made("Fake B", answers=refuting)}, monkeypatch)
    members = verified(workers, "SL003", "SL005")
    told = json.loads(matrix.as_json(members))
    pytest.importorskip("jsonschema").validate(told, schema.matrix())
    assert [platform["platform"]["gpu"] for platform in told["platforms"]] == ["Fake A", "Fake B"]
    assert [platform["workers"] for platform in told["platforms"]] == [["one"], ["two"]]
    assert told["lost"] == []
    row = next(row for row in told["matrix"] if (row["case"], row["api"]) == ("cuda_free_in_loop", "cupy"))
    names = [column.name for column in matrix.columns(members)]
    assert row["verdicts"] == {names[0]: "CONFIRMED", names[1]: "REFUTED"}
    table = matrix.full(members)
    assert "[1] Fake A · driver CUDA 13.0 · CUDA 13.0 (one)" in table
    assert "SL003 cuda_free_in_loop [cupy]: CONFIRMED on [1], REFUTED on [2]" in table
    assert [line.split()[0] for line in table.splitlines() if line.startswith("SL")][:2] == ["SL003", "SL005"]
    assert table.splitlines()[-1].startswith("2 platforms, ")
    assert "| rule | Fake A · driver CUDA 13.0 · CUDA 13.0 | Fake B" in matrix.markdown(members)


def test_a_worker_that_goes_costs_what_it_owes(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"one": Made("Fake A"), "two": Made("Fake B")}, monkeypatch, {"two": 2})  # it looks, and runs one batch
    members = verified(workers, "SL003")
    one, two = members
    assert (one.lost, one.missed) == ("", [])
    assert two.lost == "it has gone"
    assert two.results
    assert two.missed
    told = f"worker two: it has gone; {len(two.missed)} of its {len(two.cases)} cases were not run"
    assert matrix.lost(members) == [told]
    assert told in matrix.full(members)
    assert f"* {told}" in matrix.markdown(members)
    assert matrix.counts(members).endswith("; 1 worker lost")
    assert len(matrix.columns(members)) == 2  # what it said before counts


def test_a_worker_without_a_gpu_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    members = verified(Workers({"one": Made("Fake A"), "two": Made("")}, monkeypatch), "SL003")
    assert matrix.lost(members) == ["worker two: no GPU that can be used: no CUDA device"]


def test_a_worker_that_raises_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(job: Job) -> dict[str, Any]:
        raise ZeroDivisionError("made up")

    members = verified(Workers({"one": Made("Fake A"), "two": Made("Fake B", answers=broken)}, monkeypatch), "SL003")
    assert members[1].lost == "ZeroDivisionError: made up"
    assert not members[0].lost


def test_two_workers_never_measure_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    members = verified(Workers({"a=0": Made("Fake A"), "b=0": Made("Fake A"), "c=1": Made("Fake A")}, monkeypatch), "SL003")
    assert matrix.lost(members) == ["worker b=0: it sees the GPU of worker a=0, which runs the cases"]
    (column,) = matrix.columns(members)
    assert column.workers == ["a=0", "c=1"]


def test_gpus_of_one_kind_that_disagree_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"one": Made("Fake A"), "two": Made("Fake A", answers=refuting)}, monkeypatch)
    text = matrix.full(verified(workers, "SL003"))
    assert "SL003 cuda_free_in_loop [cupy] on Fake A · driver CUDA 13.0 · CUDA 13.0: CONFIRMED and, by two, REFUTED" in text


def test_one_batch_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"one": Made("Fake A")}, monkeypatch)
    (member,) = verified(workers)
    assert workers.tasks[0] == "one look"
    assert workers.tasks.count("one run") > 3
    assert {case.identity for template in templates.load().values() for case in template.cases} == set(member.results)


def test_a_scheduler_that_is_silent_for_long_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    workers = Workers({"one": Made("Fake A")}, monkeypatch, {"one": 1})
    there = workers.workers()
    asked: list[int] = []

    def silent() -> dict[str, str] | None:
        asked.append(1)
        return there if len(asked) < 3 else None

    monkeypatch.setattr(workers, "workers", silent)
    (member,) = verified(workers, "SL003")
    assert member.lost == "the scheduler does not answer any more"


def test_what_is_kept_and_the_exit_code(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = options("--rule", "SL003", "--evidence", str(tmp_path), "--quiet")
    workers = Workers({"one": Made("Fake A"), "two": Made("Fake B")}, monkeypatch)
    assert far.run_on(workers, words, [("full", None)], Progress(quiet=True)) == 0
    assert {entry["platform"].split(" ·")[0] for entry in evidence.read(tmp_path)} == {"Fake A", "Fake B"}
    assert len(list(tmp_path.glob("*.json"))) == 2
    workers = Workers({"one": Made("Fake A"), "two": Made("Fake B", answers=refuting)}, monkeypatch)
    assert far.run_on(workers, words, [("full", None)], Progress(quiet=True)) == 1
    with pytest.raises(FailedError, match="no worker has run anything; worker one: no GPU that can be used"):
        far.run_on(Workers({"one": Made("")}, monkeypatch), words, [("full", None)], Progress(quiet=True))


def test_what_is_through_is_told_when_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workers = Workers({"one": Made("Fake A")}, monkeypatch)
    submit, count = workers.submit, iter(range(9))

    def stops(*words: Any) -> concurrent.futures.Future[Any]:
        if next(count) == 2:
            raise KeyboardInterrupt
        return submit(*words)

    monkeypatch.setattr(workers, "submit", stops)
    words = options("--rule", "SL003", "--evidence", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        far.run_on(workers, words, [("json", None)], Progress(quiet=True))
    captured = capsys.readouterr()
    told = json.loads(captured.out)
    assert told["platforms"][0]["cases"]
    assert told["lost"][0]["reason"] == "interrupted"
    assert len(evidence.read(tmp_path)) == len(told["platforms"][0]["cases"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--executor", "dask"], "--executor dask needs --scheduler ADDRESS"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler needs --executor dask"),
        (["--executor", "dask", "--scheduler", "tcp://127.0.0.1:1", "--output-format", "html"], "unknown output format 'html'"),
        (["--executor", "dask", "--scheduler", "tcp://127.0.0.1:1", "src"], "--executor is of the templates: it takes no path"),
    ],
)
def test_wrong_options(capsys: pytest.CaptureFixture[str], words: list[str], says: str) -> None:
    assert cli.main(["verify", *words]) == 2
    assert says in capsys.readouterr().err


# A real cluster -----------------------------------------------------------------------------------------------------------------

WORKER = """
import os, sys, time
from verify.test_fleet import Made
from streamlint.verify import device

class Mine(Made):
    def __init__(self, number, *, memory):
        super().__init__(os.environ["TEST_GPU"])
    def spawn(self, jobs):
        if "TEST_HANGS" in os.environ and jobs[0].case.api == "numba":
            open(os.environ["TEST_HANGS"], "w").close()
            time.sleep(600)
        return super().spawn(jobs)

device.Device = Mine
from distributed.cli.dask_worker import main
main()
"""


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("DASK", "COV", "STREAMLINT", "PYTHONWARN"))}
    return {**kept, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests"))), "STREAMLINT_SCHEDULER_SECONDS": "30", **more}


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    running: list[subprocess.Popen[bytes]] = []

    def start(*command: str, **more: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, *command, "--scheduler-file", str(tmp_path / "scheduler.json")],
            cwd=tmp_path,
            env=environment(**more),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        running.append(process)
        return process

    yield start
    for process in running:
        process.kill()
        process.wait()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="kills a worker")
def test_on_a_cluster(tmp_path: Path, started: Callable[..., subprocess.Popen[bytes]]) -> None:
    pytest.importorskip("distributed")
    file, hangs = tmp_path / "scheduler.json", tmp_path / "hangs"
    started("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0")
    plain = ("--no-nanny", "--nthreads", "2", "--no-dashboard")
    started("-c", WORKER, *plain, "--name", "gpu-a", TEST_GPU="Fake A (tests)", CUDA_VISIBLE_DEVICES="0")
    second = started("-c", WORKER, *plain, "--name", "gpu-b", TEST_GPU="Fake B (tests)", CUDA_VISIBLE_DEVICES="1", TEST_HANGS=str(hangs))
    address = str(until(lambda: file.exists() and json.loads(file.read_text() or "{}").get("address")))
    until(lambda: _workers(address) == 2)

    words = ["--rule", "SL003", "--executor", "dask", "--scheduler", address, "--evidence", str(tmp_path / "evidence")]
    formats = ["--output-format", "json", "--output-format", "full:table", "--output-format", "markdown:page"]
    command = [sys.executable, "-m", "streamlint", "verify", *words, *formats]
    asked = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    until(hangs.exists)
    second.send_signal(signal.SIGKILL)
    try:
        out, errors = asked.communicate(timeout=90)
    finally:
        asked.kill()
    assert asked.returncode == 0, errors
    told = json.loads(out)
    first, other = told["platforms"]
    assert (first["platform"]["gpu"], first["workers"]) == ("Fake A (tests)", ["gpu-a"])
    assert (other["platform"]["gpu"], other["workers"]) == ("Fake B (tests)", ["gpu-b"])
    assert {case["verdict"] for case in first["cases"]} == {"CONFIRMED"}
    assert len(first["cases"]) == len(templates.load()["SL003"].cases)
    assert 0 < len(other["cases"]) < len(first["cases"])
    (lost,) = told["lost"]
    assert (lost["worker"], lost["reason"]) == ("gpu-b", "it has gone")
    assert lost["not_run"] == len(first["cases"]) - len(other["cases"])
    assert "worker gpu-b is lost: it has gone" in errors
    assert "Traceback" not in errors
    assert "gpu-b: it has gone" in (tmp_path / "table").read_text(encoding="utf-8")
    assert "| SL003 |" in (tmp_path / "page").read_text(encoding="utf-8")
    kept = evidence.read(tmp_path / "evidence")
    assert {entry["platform"].split(" ·")[0] for entry in kept} == {"Fake A (tests)", "Fake B (tests)"}
    assert len(kept) == len(first["cases"]) + len(other["cases"])


def _workers(address: str) -> int:
    code = f"from distributed import Client\nwith Client({address!r}) as client: print(len(client.nthreads()))"
    done = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60)
    return int(done.stdout or 0)
