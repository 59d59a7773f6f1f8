"""What is kept between runs, and reports in files: runs killed at each of their steps there, runs side by side, homes that take nothing."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import time
from pathlib import Path

import forks
import pytest
from fake_machine import FakeMachine
from hardening.groups import begun, kill_group
from hardening.inputs import MISUSE

from streamlint import cli
from streamlint.cache.store import Store
from streamlint.commands import verify
from streamlint.triage.baseline import VERSION
from streamlint.verify.device import Device

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="runs are forked, and killed")

# Runs that are killed when they touch a folder for the first, the second, the third time and so on. Each is a fork of one process that has
# all modules, so that a run takes no longer than its work.
STEPS = """
import contextlib, json, os, sys
folder, kind, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
from fake_machine import FakeMachine
from streamlint import cli
from streamlint.commands import verify
from streamlint.runner.engine import analyse

def run(target):
    if kind == "cache":
        return cli.main(["check", "--isolated", "--cache-dir", folder, "-o", target, "--output-format", "json", "--jobs", "1", "app"])
    if kind == "report":
        return cli.main(["check", "--isolated", "--no-cache", "-o", target, "--output-format", "sarif", "--jobs", "1", "app"])
    if kind == "baseline":
        return cli.main(["check", "--isolated", "--no-cache", "--write-baseline", target, "--jobs", "1", "app"])
    if kind == "suppressions":
        return cli.main(["check", "--isolated", "--no-cache", "--add-ignore", "--jobs", "1", target])
    if kind == "page":
        return verify.main(["--rule", "SL003", "--no-save", "-q", "--output-format", "html:" + target], FakeMachine())
    words = ["--rule", "SL003", "--evidence", folder, "-q", "--output-format", "json:" + target]
    return verify.main(words, FakeMachine())

def watched(left):
    def count():
        left[0] -= 1
        if left[0] < 0:
            os.kill(os.getpid(), 9)
    def mine(word):
        if isinstance(word, int) and not isinstance(word, bool) and word > 2:
            with contextlib.suppress(OSError):
                word = os.readlink(f"/proc/self/fd/{word}")
        return str(word).startswith(folder)
    def hook(name, words):
        if name.startswith(("open", "os.", "tempfile.")) and any(map(mine, words[:2])):
            count()
    sys.addaudithook(hook)
    for name in ("fsync", "fchmod", "write", "close"):
        def step(handle, *words, call=getattr(os, name)):
            if mine(handle):
                count()
            return call(handle, *words)
        setattr(os, name, step)

def forked(step, target):
    child = os.fork()
    if child == 0:
        code = 99
        try:
            if step is not None:
                watched([step])
            code = run(target)
        finally:
            sys.stderr.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

sys.stderr = open(os.devnull, "w")
sys.path.insert(0, os.getcwd())
FILES = json.loads(os.environ["FILES"])
if kind in FILES:
    open("warm.py", "w").write(FILES[kind])
with contextlib.suppress(SystemExit):
    run("warm.py" if kind in FILES else "warm")  # what is imported by then need not be imported again
told = []
for step in range(most):
    for path in [*os.scandir(folder)]:
        if kind == "cache":
            import shutil
            (shutil.rmtree if path.is_dir() else os.remove)(path.path)
    target = os.path.join(folder if kind in FILES else ".", "out.py")
    if kind in FILES:
        open(target, "w").write(FILES[kind])
    code = forked(step, target)
    after = open(target).read() if kind in FILES else None
    again = forked(None, "again") if kind in ("cache", "evidence") else None
    told.append([code, after, again, open("again").read() if again is not None else None])
    if code >= 0:
        break
print(json.dumps(told))
"""

BASELINE = json.dumps({"streamlint-baseline": VERSION, "findings": []})
FILES = {"report": "old", "page": "old", "baseline": BASELINE, "suppressions": MISUSE}  # what stands there before


def killed(tmp_path: Path, kind: str, most: int = 150) -> list[list[object]]:
    """Each run: its exit code (-9: it was killed), its report, and the exit code and the report of the run behind it."""
    (tmp_path / "app").mkdir()
    for number in range(3):
        (tmp_path / "app" / f"m{number}.py").write_text(MISUSE.replace("run", f"run_{number}"))
    (tmp_path / "there").mkdir()
    words, more = [str(tmp_path / "there"), kind, str(most)], {"FILES": json.dumps(FILES), "STREAMLINT_NO_CACHE": ""}
    done = forks.run(tmp_path, *words, script=STEPS, timeout=300, **more)
    assert done.stdout, done.stderr
    told: list[list[object]] = json.loads(done.stdout.splitlines()[-1])
    assert told[-1][0] in (0, 1), "it has more steps than were tried"
    assert {run[0] for run in told[:-1]} == {-9}
    return told


def test_comments_are_in_a_file_or_not_at_whatever_step_the_run_is_killed(tmp_path: Path) -> None:
    told = killed(tmp_path, "suppressions")
    new = str(told[-1][1])
    assert new.count("streamlint: ignore[SL005]") == 1
    assert {run[1] for run in told} == {MISUSE, new}
    assert len(told) > 5


@pytest.mark.parametrize("kind", ["report", "page", "baseline"])
def test_a_report_is_old_or_new_at_whatever_step_the_run_is_killed(tmp_path: Path, kind: str) -> None:
    told = killed(tmp_path, kind)
    new = told[-1][1]
    assert str(new).startswith("<!" if kind == "page" else "{")
    assert len(str(new)) > (500 if kind == "baseline" else 2_000)
    found = {run[1] for run in told[:-1]}
    assert found <= {FILES[kind], new}
    assert FILES[kind] in found
    assert len(told) > 5


def test_a_cache_serves_whatever_step_its_writer_was_killed_at(tmp_path: Path) -> None:
    told = killed(tmp_path, "cache")
    assert len(told) > 30
    assert {run[2] for run in told} == {1}
    findings = {str(run[3]) for run in told}
    assert len(findings) == 1
    assert [row["code"] for row in json.loads(findings.pop())] == ["SL005"] * 3


def test_evidence_is_whole_at_whatever_step_its_writer_was_killed(tmp_path: Path) -> None:
    told = killed(tmp_path, "evidence")
    assert len(told) > 5
    assert {run[2] for run in told} == {0}
    assert not list((tmp_path / "there").glob("*.bad"))


def test_runs_side_by_side_with_one_cache_some_of_them_killed(tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"m{number}.py").write_text(MISUSE.replace("run", f"run_{number}"))
    words = ["check", "--isolated", "--output-format", "json"]
    cold = forks.run(tmp_path, *words, "--no-cache", ".", text=False).stdout
    assert cold.count(b"SL005") >= 6
    pick = random.Random(3)
    for _ in range(6):
        with contextlib.ExitStack() as stack:
            begin = functools.partial(begun, tmp_path, *words, "--cache-dir", "kept", ".")
            runs = [stack.enter_context(begin()) for _ in range(3)]
            time.sleep(pick.uniform(0, 0.4))
            kill_group(runs[0].pid)
            runs[0].communicate()
            assert [run.communicate(timeout=120)[0] for run in runs[1:]] == [cold, cold]
    empty = [path.name for path in (tmp_path / "kept").rglob("*") if path.is_file() and path.stat().st_size == 0]
    # A stamp's date is all that it holds, and of a temporary file (which nothing reads) a killed writer may leave an empty one.
    assert not {name for name in empty if name[0] != "."} - {"pruned"}


# Homes that take nothing --------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a folder in which nobody, root neither, can write")
def test_a_home_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, "/proc/home")
    monkeypatch.delenv("STREAMLINT_NO_CACHE")
    monkeypatch.delenv("STREAMLINT_CACHE_DIR", raising=False)
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(MISUSE)
    for _ in range(2):
        assert cli.main(["check", "--isolated", "--output-format", "concise", "a.py"]) == 1
        captured = capsys.readouterr()
        assert "SL005" in captured.out
        assert captured.err.count("the cache in /proc/home/streamlint/check cannot be written") == 1
    assert cli.main(["clean"]) == 0
    capsys.readouterr()
    assert verify.main(["--rule", "SL003"], FakeMachine()) == 0
    captured = capsys.readouterr()
    assert "CONFIRMED" in captured.out
    assert captured.err.count("the evidence could not be kept") == 1


def test_a_disk_that_is_full_leaves_no_scratch(tmp_path: Path) -> None:
    """A real limit stands for it: nothing of more than so many bytes can be written."""
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN);"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300));"
        "from streamlint.cli import main; sys.exit(main(['check', '--isolated', '--cache-dir', 'kept', '--output-format', 'concise', '.']))"
    )
    (tmp_path / "a.py").write_text(MISUSE)
    done = forks.run(tmp_path, script=code, STREAMLINT_NO_CACHE="", PYTHONDONTWRITEBYTECODE="1")
    assert (done.returncode, "SL005" in done.stdout) == (1, True), done.stderr
    assert done.stderr.count("cannot be written: File too large") == 1
    left = [path.name for path in (tmp_path / "kept").rglob("*") if path.is_file()]
    assert [name for name in left if name.startswith(".") and name != ".gitignore"] == []
    assert Store(tmp_path / "kept").read("units", "none") is None


def test_what_is_compiled_for_a_home_that_takes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is made in the run's own folder, and gone with it."""
    nvcc = tmp_path / "nvcc"
    nvcc.write_text('#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\necho made > "$2"\n')
    nvcc.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("STREAMLINT_CACHE_DIR", "/proc/home")
    (tmp_path / "a.cu").write_text("int a;")
    with Device() as machine:
        library, problem = machine._compile(tmp_path / "a.cu")
        assert (problem, Path(library).read_text()) == (None, "made\n")
        assert Path(machine.environment()["TORCH_EXTENSIONS_DIR"]).parent == Path(library).parents[1]
    assert not Path(library).exists()
