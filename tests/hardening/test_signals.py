"""Runs that are told to end, in each of their phases: the status of the contract, no process left, files whole, a cache that serves."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import pytest
from forks import COMMAND, Process
from hardening.groups import begun, ended, left
from hardening.inputs import MISUSE

from streamlint.report import FORMATS

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
sys.argv = ["streamlint", "check", "--isolated", *words]
from streamlint.cli import main
sys.exit(main())
"""
# The same, told in the moment in which a process has been forked.
FORKED = """
import os, signal, sys, time
number, which = map(int, sys.argv[1:])
real, first, count = os.fork, os.getpid(), 0  # who is forked goes on counting
def fork():
    global count
    count += 1
    child = real()
    if child and count == which:
        os.killpg(0, number) if which == 2 else os.kill(first, number)
    if not child and count == which == 1:
        time.sleep(0.6)  # SIGINT is passed on after 0.3 s: a run that has ended by then has ended well
    return child
os.fork = fork
sys.argv = ["streamlint", "check", "--isolated", "--no-cache", "--jobs", "2", "."]
from streamlint.cli import main
sys.exit(main())
"""
# Work that never ends by itself, in workers.
FOREVER = """
import os, sys, time
import streamlint.frontends.python as python
python.parse = lambda text: (os.write(2, b"at work\\n"), time.sleep(600))
sys.argv = ["streamlint", *sys.argv[1:]]
from streamlint.cli import main
sys.exit(main())
"""
CHECK = ["check", "--isolated", "--no-cache"]
WATCHING, WAITING = [*CHECK, "--watch", "."], [*CHECK, "-"]
COLD, FIX, BASELINE = ("--cache-dir", "kept", "."), ("--no-cache", "--fix", "."), ("--no-cache", "--write-baseline", "known.json", ".")
PHASES = [
    ("streamlint.runner.linter.discover", COLD),
    ("streamlint.discovery.screening.flags_of", COLD),
    ("streamlint.frontends.python.parse", (*COLD, "--jobs", "1")),
    ("streamlint.frontends.python.parse", (*COLD, "--jobs", "2")),
    ("streamlint.hazards.sl005.find", COLD),
    ("streamlint.runner.workers._serve", (*COLD, "--jobs", "2")),
    ("streamlint.cache.store._place", COLD),
    ("streamlint.triage.rewriting.read_source", FIX),
    ("streamlint.support.writing.sync_folder", BASELINE),
]
NUMBERS = {signal.SIGINT: 130, signal.SIGTERM: -15, signal.SIGHUP: -1}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for number in range(9):
        (tmp_path / f"m{number}.py").write_text(MISUSE.replace("run", f"run_{number}") + "# and more\n" * 100)
    return tmp_path


TOLD = [(*phase, list(NUMBERS)[index % len(NUMBERS)]) for index, phase in enumerate(PHASES)]


@pytest.mark.parametrize(("place", "words", "number"), TOLD, ids=[f"{place}-{number.name}" for place, _, number in TOLD])
def test_a_run_that_is_told_to_end(tree: Path, place: str, words: tuple[str, ...], number: signal.Signals) -> None:
    texts = {path.name: path.read_bytes() for path in tree.iterdir()}
    with begun(tree, str(int(number)), place, *words, script=DRIVER) as process:
        status, out, errors = ended(process)
    assert (status, out, b"Traceback" in errors) == (NUMBERS[number], b"", False), errors
    found = {path.name: path.read_bytes() for path in tree.iterdir() if path.is_file() and not path.name.startswith(".")}
    assert {name: text for name, text in found.items() if name in texts} == texts or words == FIX
    assert all(text == texts[name] or b"synchronize" in text for name, text in found.items() if name in texts)
    mended = sum(text != texts.get(name) for name, text in found.items() if name in texts)
    # Findings as JSON or as text come with fixes, which are tried; these do not.
    again = ["check", "--isolated", "--exit-zero", "--output-format", "github"]
    for cache in (("--no-cache",), *([("--cache-dir", "kept")] if "kept" in words else [])):
        with begun(tree, *again, *cache, ".") as process:
            status, out, _ = ended(process)
        assert (status, out.count(b"(SL005)")) == (0, 9 - mended)


RENDERED = [(format, list(NUMBERS)[index % len(NUMBERS)]) for index, format in enumerate(FORMATS)]


@pytest.mark.parametrize(("format", "number"), RENDERED, ids=[f"{format}-{number.name}" for format, number in RENDERED])
def test_a_report_that_is_being_made(tmp_path: Path, format: str, number: signal.Signals) -> None:
    (tmp_path / "m.py").write_text(MISUSE)
    (tmp_path / "told").write_text("of another run\n")
    place = f"streamlint.report.{format.replace('-', '_')}.render"
    words = ["--no-cache", "--output-format", format, "-o", "told", "m.py"]
    with begun(tmp_path, str(int(number)), place, *words, script=DRIVER) as process:
        status, out, errors = ended(process)
    assert (status, out, b"Traceback" in errors) == (NUMBERS[number], b"", False), errors
    assert {path.name for path in tmp_path.iterdir()} == {"m.py", "told"}
    assert (tmp_path / "told").read_text() == "of another run\n"


@pytest.mark.parametrize("place", ["_like", "sync_folder"])
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_report_that_is_being_written(tmp_path: Path, place: str, number: signal.Signals) -> None:
    (tmp_path / "m.py").write_text(MISUSE)
    (tmp_path / "told").write_text("[]")
    words = ["--no-cache", "--output-format", "json:told", "m.py"]
    with begun(tmp_path, str(int(number)), f"streamlint.support.writing.{place}", *words, script=DRIVER) as process:
        status, out, errors = ended(process)
    assert (status, out, b"Traceback" in errors) == (NUMBERS[number], b"", False), errors
    assert len(json.loads((tmp_path / "told").read_text())) == (place == "sync_folder")


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_run_that_waits_for_its_input(tree: Path, number: signal.Signals) -> None:
    with begun(tree, *WAITING) as process:
        _waiting(process)
        process.send_signal(number)
        process.wait(timeout=60)  # with its input still open
        assert ended(process)[:2] == (NUMBERS[number], b"")


def _waiting(process: Process) -> None:
    """More than a pipe holds is written once somebody reads."""
    assert process.stdin is not None
    process.stdin.write(b"# more\n" * 20_000)


def _heard(process: Process, words: bytes) -> None:
    assert process.stderr is not None
    while words not in (line := process.stderr.readline()):
        assert line


def _watching(process: Process) -> None:
    _heard(process, b"watching for changes")
    time.sleep(0.5)


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_run_that_watches(tree: Path, number: signal.Signals) -> None:
    pytest.importorskip("watchfiles")
    with begun(tree, *WATCHING) as process:
        _watching(process)
        process.send_signal(number)
        status, _, errors = ended(process)
    assert (status, b"Traceback" in errors) == (NUMBERS[number], False), errors


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
@pytest.mark.parametrize("which", [1, 2], ids=["the-run", "a-worker"])
def test_a_signal_between_a_fork_and_what_follows(tree: Path, number: signal.Signals, which: int) -> None:
    """Of the process that is watched over, and of the first worker: neither is known to anybody in this moment."""
    with begun(tree, str(int(number)), str(which), script=FORKED) as process:
        status, out, errors = ended(process)
    assert (status, out, b"Traceback" in errors) == (NUMBERS[number], b"", False), errors


def _asked(process: Process) -> None:
    """To a server: a whole message, so that both of its processes are there."""
    text = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
    process.stdin.flush()
    assert process.stdout.readline()


@pytest.mark.parametrize("what", ["watches", "waits for its input", "works", "serves"])
def test_the_end_of_the_process_that_watches_over_a_run(tree: Path, what: str) -> None:
    """Killed, it can tell nobody; its streams stay open. A child would watch, or wait, for ever."""
    pytest.importorskip("pygls" if what == "serves" else "watchfiles")
    commands = {"watches": WATCHING, "waits for its input": WAITING, "works": [*CHECK, "--jobs", "2", "."], "serves": ["server"]}
    with begun(tree, *commands[what], script=FOREVER if what == "works" else COMMAND) as process:
        if what == "serves":
            _asked(process)
        elif what == "watches":
            _watching(process)
        elif what == "works":
            _heard(process, b"at work")
        else:
            _waiting(process)
        process.kill()
        if what == "serves":
            assert process.stdin is not None
            process.stdin.close()  # its own processes have no parent that lives on: an editor that is gone has closed this
        assert left(process.pid) == []


def test_a_run_that_reads_on_while_the_process_that_watches_over_it_ends(tree: Path) -> None:
    """What tells the end of that process comes in the midst of a read, and before the system has given its child another parent."""
    late = f"import os\nfirst = os.getpid()\nos.getppid = lambda: first\n{COMMAND}"
    for _ in range(5):
        with begun(tree, *WAITING, script=late) as process:
            _waiting(process)
            process.kill()
            assert left(process.pid) == []


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number.name)
def test_a_server(tree: Path, number: signal.Signals) -> None:
    pytest.importorskip("pygls")
    with begun(tree, "server") as process:
        _asked(process)
        process.send_signal(number)
        status, _, errors = ended(process)
    assert (status in (NUMBERS[number], 1), b"Traceback" in errors) == (True, False), (status, errors)  # 1: it was not shut down
