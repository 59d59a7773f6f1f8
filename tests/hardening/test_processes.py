"""Processes that die, run on or take too much: a file or a rule is lost and named, and the run goes on. Real processes, really killed."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import forks
import pytest
from hardening.groups import begun, ended
from waiting import until

from streamlint.config.settings import Resolver, Settings
from streamlint.hazards import sl005
from streamlint.runner import linter
from streamlint.runner.workers import shared
from streamlint.support import guard

# The command line, in which the parser does something terrible to one file, or a rule to all.
DRIVER = """
import os, signal, sys, time
import streamlint.frontends.python as python
from streamlint.hazards import sl005
where, what = sys.argv[1], sys.argv[2]
def terrible():
    if what == "hangs":
        open("hangs", "w").close()
        while True:
            pass
    if what == "memory":
        raise MemoryError
    if what == "fault":
        raise AssertionError("made up")
    if what == "recursion":
        terrible()
    os.kill(os.getpid(), getattr(signal, what))
def parsed(real):
    def parse(text):
        if "terrible" in text:
            terrible()
        return real(text)
    return parse
def found(context):
    terrible()
    return iter(())
if where == "parser":
    python.parse = parsed(python.parse)
else:
    sl005.find = found
sys.argv = ["streamlint", "check", "--isolated", "--no-cache", "--output-format", "concise", *sys.argv[3:], "."]
from streamlint.cli import main
sys.exit(main())
"""
MISUSE = """import torch


def run():
    host = torch.empty(1 << 20)
    return host.to("cuda", non_blocking=True)
"""
SIGNALS = ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(10):
        (tmp_path / f"m{number}.py").write_text(MISUSE.replace("run", f"run_{number}"))
    (tmp_path / "m5.py").write_text(MISUSE + "terrible = 1\n")
    return tmp_path


def run(tree: Path, *words: str, seconds: str = "60", script: str = DRIVER) -> subprocess.CompletedProcess[str]:
    return forks.run(tree, *words, script=script, timeout=300, **{guard.VARIABLE: seconds})


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, list[str], str]:
    """The exit code, the files with findings, and what is said of those that were left out."""
    lines = done.stdout.splitlines()
    files = sorted({line.split(":")[0] for line in lines if "[SL000]" not in line})
    return done.returncode, files, "; ".join(line for line in lines if "[SL000]" in line)


OTHERS = [f"m{number}.py" for number in range(10) if number != 5]


# Each signal in one process, and one of them in several.
DEATHS = [(jobs, number) for number, jobs in zip(SIGNALS, "1212", strict=True)] + [("2", SIGNALS[0])]


@pytest.mark.parametrize(("jobs", "number"), DEATHS)
def test_a_death_costs_its_file(tree: Path, jobs: str, number: str) -> None:
    done = run(tree, "parser", number, "--jobs", jobs)
    assert told(done) == (
        1,
        OTHERS,
        f"m5.py:1:1: unreadable-source [SL000] left out: the linter was ended by {number} while it looked at it",
    ), done.stderr


@pytest.mark.parametrize(("jobs", "number"), DEATHS)
def test_a_death_costs_its_rules(tree: Path, jobs: str, number: str) -> None:
    done = run(tree, "check", number, "--jobs", jobs)
    assert told(done) == (2, [], "")
    assert "internal error: SL001, SL002" in done.stderr
    assert f"the linter was ended by {number} while it looked at it" in done.stderr


def test_what_runs_on_costs_its_file(tree: Path) -> None:
    done = run(tree, "parser", "hangs", "--jobs", "1", seconds="1.5")
    assert told(done) == (1, OTHERS, "m5.py:1:1: unreadable-source [SL000] left out: it takes more than 1.5 s"), done.stderr


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_what_runs_on_costs_its_rules(tree: Path, jobs: str) -> None:
    done = run(tree, "check", "hangs", "--jobs", jobs, seconds="1.5")
    assert told(done) == (2, [], "")
    assert "internal error: SL001, SL002" in done.stderr


@pytest.mark.parametrize("what", ["memory", "fault", "recursion"])
def test_what_is_raised_costs_its_file(tree: Path, what: str) -> None:
    code, files, lost = told(run(tree, "parser", what, "--jobs", "1"))
    assert (code, files) == (1, OTHERS)
    assert lost.startswith("m5.py:1:1: unreadable-source [SL000] left out: ")


def test_a_run_that_dies_again_and_again_ends(tmp_path: Path) -> None:
    for number in range(guard.MOST_LOST + 3):
        (tmp_path / f"m{number:02}.py").write_text(MISUSE + "terrible = 1\n")
    done = run(tmp_path, "parser", "SIGSEGV", "--jobs", "1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith("streamlint: ended by SIGSEGV, nothing is known about the code\n")


def test_a_file_that_eats_the_memory_costs_itself(tree: Path) -> None:
    """The limit of the machine stands for a small one here."""
    code = DRIVER.replace("raise MemoryError", "held = [bytearray(1 << 28) for _ in range(1 << 20)]")
    code = "import resource; resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n" + code
    done = run(tree, "parser", "memory", "--jobs", "1", script=code)
    assert told(done)[:2] == (1, OTHERS), done.stderr
    assert told(done)[2].startswith("m5.py:1:1: unreadable-source [SL000] left out: internal error while it was read: MemoryError")


# Workers ------------------------------------------------------------------------------------------------------------------------


def test_workers_that_are_killed_lose_what_they_worked_on() -> None:
    names = [str(number) for number in range(40)]

    def work(name: str) -> str:
        if int(name) % 7 == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        return name * 2

    found = list(shared(work, names, 3, instead=lambda name, why: why.split()[-6]))
    assert found == [("SIGKILL" if int(name) % 7 == 3 else name * 2) for name in names]


def test_a_worker_that_is_killed_from_outside(tmp_path: Path) -> None:
    def work(name: str) -> str:
        if name == "4" and not (tmp_path / "once").exists():
            (tmp_path / "once").write_text(str(os.getpid()))
            if os.fork() == 0:
                time.sleep(0.2)
                os.kill(os.getppid(), signal.SIGTERM)
                os._exit(0)
            time.sleep(30)
        return name

    found = list(shared(work, [str(number) for number in range(12)], 2, instead=lambda name, why: "lost"))
    assert found == ["lost" if number == 4 else str(number) for number in range(12)]


def test_what_a_worker_raises_is_raised() -> None:
    def work(name: str) -> str:
        if name == "7":
            raise KeyError(name)
        return name

    with pytest.raises(KeyError, match="7"):
        list(shared(work, [str(number) for number in range(20)], 2, instead=lambda name, why: why))


def test_large_answers_come_whole() -> None:
    names = [str(number) for number in range(9)]
    assert list(shared(lambda name: name * 500_000, names, 2, instead=lambda name, why: why)) == [name * 500_000 for name in names]


# Signals ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15), (signal.SIGHUP, -1)])
@pytest.mark.parametrize("group", [False, True], ids=["parent", "group"])
def test_a_run_that_is_ended_ends(tree: Path, number: signal.Signals, code: int, group: bool) -> None:
    with begun(tree, "parser", "hangs", "--jobs", "2", script=DRIVER) as process:
        until((tree / "hangs").exists)
        (os.killpg if group else os.kill)(process.pid, number)
        status, out, errors = ended(process)
    assert (status, out, b"Traceback" in errors) == (code, b"", False), errors


# Real inputs --------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["function", "bomb"])
def test_what_would_take_minutes_ends_with_a_message(tmp_path: Path, name: str) -> None:
    if name == "function":
        (tmp_path / "m.py").write_text("import torch\ndef f(a):\n    torch.cuda.synchronize()\n" + "    x = a.to('cuda')\n" * 100_000)
    else:
        bomb = "#define D(x) x x\n#define E(x) D(x) D(x)\nvoid f() { " + "E(D(" * 30 + "cudaDeviceSynchronize();" + "))" * 30 + " }\n"
        (tmp_path / "m.cu").write_text("#include <cuda_runtime.h>\n" + bomb)
    done = run(tmp_path, "check", "--isolated", "--no-cache", ".", seconds="2", script=forks.COMMAND)
    assert done.returncode == (name == "function")
    assert name == "bomb" or "left out: it takes more than 2 s" in done.stdout


# The library --------------------------------------------------------------------------------------------------------------------


def test_the_library_sets_no_alarm(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(signal, "setitimer", lambda *words: called.append(words))
    linter.run([str(tree)], Resolver(Settings()))
    assert called == []


def test_a_fault_in_a_rule_costs_the_rule(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(context: object) -> None:
        raise AssertionError("made up")

    monkeypatch.setattr(sl005, "find", broken)
    report = linter.run([str(tree)], Resolver(Settings()))
    assert {finding.code for finding in report.findings} == {"SL001"}
    (problem,) = report.problems
    assert problem.message.startswith("internal error: SL005 saw no")
    assert problem.message.endswith("AssertionError: made up")
