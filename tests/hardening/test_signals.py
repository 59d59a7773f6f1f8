"""Runs that are told to end, in each of their phases: the status of the contract, no process left, files whole, a cache that serves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hardening.inputs import MISUSE

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="signals are not Windows'")
# The command line, which is told to end when it comes to a function, as whoever watches over it is told.
DRIVER = """
import importlib, os, signal, sys, time
number, place, *words = sys.argv[1:]
module, _, name = place.rpartition(".")
module = importlib.import_module(module)
real, watcher = getattr(module, name), os.getpid()
def told(*words, **more):
    os.kill(watcher, int(number))
    time.sleep(9)
    return real(*words, **more)
setattr(module, name, told)
sys.argv = ["streamlint", "check", "--isolated", "--output-format", "json", *words]
from streamlint.cli import main
sys.exit(main())
"""
COLD, FIX, BASELINE = ("--cache-dir", "kept", "."), ("--no-cache", "--fix", "."), ("--no-cache", "--write-baseline", "known.json", ".")
PHASES = [
    ("streamlint.linter.discover", COLD),
    ("streamlint.screening.flags_of", COLD),
    ("streamlint.frontends.python._parse", (*COLD, "--jobs", "1")),
    ("streamlint.frontends.python._parse", (*COLD, "--jobs", "2")),
    ("streamlint.analysis.facts_of", COLD),
    ("streamlint.workers._serve", (*COLD, "--jobs", "2")),
    ("streamlint.cache.store._place", COLD),
    ("streamlint.rewriting.read_bytes", FIX),
    ("streamlint.writing.settle", BASELINE),
]
NUMBERS = {signal.SIGINT: 130, signal.SIGTERM: -15, signal.SIGHUP: -1}


def _environment() -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": "", "PYTHONDONTWRITEBYTECODE": "1"}


def _listen() -> None:
    for number in NUMBERS:  # a background job of a shell, or nohup, has them ignored
        signal.signal(number, signal.SIG_DFL)


def _begun(folder: Path, command: list[str]) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=_environment(), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True, preexec_fn=_listen
    )


def _ended(process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
    """Its status and what it wrote, once nothing of its group is left."""

    def gone() -> bool:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return True
        return False

    try:
        out, errors = process.communicate(timeout=60)
        left = [] if gone() else _alive(process.pid)
    finally:
        if not gone():
            os.killpg(process.pid, signal.SIGKILL)
    assert left == []
    return process.returncode, out, errors


def _alive(group: int) -> list[str]:
    """The processes of a group that are no zombies, after a moment in which what was killed may go."""
    time.sleep(0.5)
    rows = subprocess.run(["ps", "-e", "-o", "pgid=,stat=,pid=,args="], capture_output=True, text=True, check=False).stdout.splitlines()
    return [row for row in rows if row.split()[0] == str(group) and not row.split()[1].startswith("Z")]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(9):
        (tmp_path / f"m{number}.py").write_text(MISUSE.replace("run", f"run_{number}") + "# and more\n" * 1_000)
    return tmp_path


TOLD = [(*phase, list(NUMBERS)[index % len(NUMBERS)]) for index, phase in enumerate(PHASES)]


@pytest.mark.parametrize(("place", "words", "number"), TOLD, ids=[f"{place}-{number.name}" for place, _, number in TOLD])
def test_a_run_that_is_told_to_end(tree: Path, place: str, words: tuple[str, ...], number: signal.Signals) -> None:
    texts = {path.name: path.read_bytes() for path in tree.iterdir()}
    process = _begun(tree, [sys.executable, "-c", DRIVER, str(int(number)), place, *words])
    status, out, errors = _ended(process)
    assert (status, out, b"Traceback" in errors) == (NUMBERS[number], b"", False), errors
    left = {path.name: path.read_bytes() for path in tree.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert {name: text for name, text in left.items() if name in texts} == texts or words == FIX
    assert all(text == texts[name] or b"synchronize" in text for name, text in left.items() if name in texts)
    again = [sys.executable, "-m", "streamlint", "check", "--isolated", "--exit-zero", "--output-format", "json"]
    for cache in (("--cache-dir", "kept"), ("--no-cache",)):
        done = subprocess.run([*again, *cache, "."], cwd=tree, env=_environment(), capture_output=True, check=False)
        assert (done.returncode, done.stdout.count(b'"SL005"')) == (
            0,
            9 - sum(text != texts.get(name) for name, text in left.items() if name in texts),
        )


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_run_that_waits_for_its_input(tree: Path, number: signal.Signals) -> None:
    process = _begun(tree, [sys.executable, "-m", "streamlint", "check", "--isolated", "-"])
    time.sleep(3)
    process.send_signal(number)
    process.wait(timeout=60)  # with its input still open
    assert _ended(process)[:2] == (NUMBERS[number], b"")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_run_that_watches(tree: Path, number: signal.Signals) -> None:
    pytest.importorskip("watchfiles")
    process = _begun(tree, [sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "--watch", "."])
    assert process.stderr is not None
    while b"watching for changes" not in (line := process.stderr.readline()):
        assert line
    time.sleep(0.5)
    process.send_signal(number)
    status, _, errors = _ended(process)
    assert (status, b"Traceback" in errors) == (NUMBERS[number], False), errors


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_server(tree: Path, number: signal.Signals) -> None:
    pytest.importorskip("pygls")
    process = _begun(tree, [sys.executable, "-m", "streamlint", "server"])
    time.sleep(4)
    process.send_signal(number)
    status, _, errors = _ended(process)
    assert (status in (NUMBERS[number], 1), b"Traceback" in errors) == (True, False), (status, errors)  # 1: it was not shut down
