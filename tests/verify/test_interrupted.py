"""What is left behind by a run that is ended: nothing. Real processes, no GPU."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import jsonschema
import pytest

from streamlint.commands import schema
from streamlint.verify import evidence

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# A run whose machine is made up, but whose children, compiler and folders are real.
DRIVER = """
import argparse, os, sys
from streamlint.verify import command
from streamlint.verify.care import Plan
from streamlint.verify.device import Device
from streamlint.verify.options import add_arguments

CHILD = '''
import json, os, subprocess, sys, tempfile, time
open(os.path.join(tempfile.gettempdir(), "left"), "w").close()
helper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(os.environ["TEST_STARTED"], "w").write(f"{os.getpid()} {helper.pid} {tempfile.gettempdir()}")
print(json.dumps({"event": "start", "job": 0}), flush=True)
time.sleep(600)
'''

class Machine(Device):
    def probe(self):
        return {"gpu": "Fake GPU (tests)", "cuda_runtime": "13.0", "cuda_driver": "13.0", "arch": "9.0"}
    def prepare(self, probed):
        return self.plan
    def missing(self, case):
        return None if case.api == sys.argv[1] else "not here"
    def _command(self, request):
        return [sys.executable, "-c", CHILD]

parser = argparse.ArgumentParser()
add_arguments(parser)
with Machine() as machine:
    try:
        code = command.run(parser.parse_args(["--rule", "SL003", "--no-save"]), machine)
    except KeyboardInterrupt:
        code = 130
sys.exit(code)
"""
NVCC = """#!/bin/sh
echo x > "$TMPDIR/tmpxft"
sleep 600 &
(set -C; echo "$$ $! $TMPDIR" > "$TEST_STARTED") 2>/dev/null  # of compilers side by side the first
wait
"""


def _listen() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _start(tmp_path: Path, api: str) -> tuple[subprocess.Popen[bytes], list[int], Path]:
    """A run that has come as far as its first program, the processes that it started, and a folder that it made."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "nvcc").write_text(NVCC, encoding="utf-8")
    (tools / "nvcc").chmod(0o755)
    started = tmp_path / "started"
    (tmp_path / "tmp").mkdir()
    environment = {
        **os.environ,
        "PATH": f"{tools}:{os.environ['PATH']}",
        "TEST_STARTED": str(started),
        "TMPDIR": str(tmp_path / "tmp"),
        "STREAMLINT_CACHE_DIR": str(tmp_path / "cache"),
    }
    # What runs in the background of a shell has been told to ignore Ctrl-C, and so have its children.
    run = subprocess.Popen([sys.executable, "-c", DRIVER, api], env=environment, stderr=subprocess.DEVNULL, preexec_fn=_listen)
    end = time.monotonic() + 30
    while not (started.exists() and started.read_text(encoding="utf-8").count(" ") == 2):
        assert time.monotonic() < end
        assert run.poll() is None
        time.sleep(0.02)
    time.sleep(0.3)  # past the moment in which Python's own pool may be half way through handing work out
    first, second, folder = started.read_text(encoding="utf-8").split()
    return run, [int(first), int(second)], Path(folder)


def _alive(process: int) -> bool:
    """Whether a process runs; one that ended and was not asked for its status does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
@pytest.mark.parametrize("api", ["cupy", "cuda"], ids=["program", "compiler"])
def test_nothing_is_left(tmp_path: Path, api: str, number: signal.Signals, code: int) -> None:
    run, processes, folder = _start(tmp_path, api)
    assert all(map(_alive, processes))
    assert folder.is_dir()
    run.send_signal(number)
    try:
        assert run.wait(40) == code
    finally:
        run.kill()
        run.wait(10)
    assert not any(map(_alive, processes))
    assert not folder.exists()
    assert list((tmp_path / "tmp").iterdir()) == []
    assert [path for path in (tmp_path / "cache").rglob("*") if path.is_file()] == []


# A run whose first case is through, and whose second hangs.
HALF = """
import argparse, json, os, sys
from streamlint.commands import verify
from streamlint.verify.device import Device

CHILD = '''
import json, os, sys, time
def say(**message): print(json.dumps(message), flush=True)
jobs = json.loads(sys.argv[1])["jobs"]
for number, job in enumerate(jobs):
    say(event="start", job=number)
    if number == 2:
        open(os.environ["TEST_STARTED"], "w").write(f"{os.getpid()} ")
        time.sleep(600)
    host = [20.1, 60.1, 120.1] if job["variant"] == "misuse" else [0.1, 0.1, 0.1]
    say(event="figures", job=number, figures={"gate_ms": [20.0, 60.0, 120.0], "host_ms": host})
'''

class Machine(Device):
    def probe(self):
        return {"gpu": "Fake GPU (tests)", "cuda_runtime": "13.0", "cuda_driver": "13.0", "arch": "9.0"}
    def prepare(self, probed):
        return self.plan
    def missing(self, case):
        return None if case.api == "cupy" else "not here"
    def _command(self, request):
        return [sys.executable, "-c", CHILD, json.dumps(request)]

with Machine() as machine:
    try:
        code = verify.main(sys.argv[1:], machine)
    except KeyboardInterrupt:
        code = 130
sys.exit(code)
"""
MISUSE = (
    "import cupy\n\n\ndef f(n):\n    for _ in range(n):\n        x = cupy.cuda.runtime.malloc(4096)\n        cupy.cuda.runtime.free(x)\n"
)


def _interrupt(tmp_path: Path, number: int, *words: str) -> tuple[int, str, str]:
    started = tmp_path / "started"
    environment = {
        **os.environ,
        "TEST_STARTED": str(started),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "STREAMLINT_CACHE_DIR": str(tmp_path),
    }
    command = [sys.executable, "-c", HALF, *words]
    pipe = subprocess.PIPE
    run = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=pipe, stderr=pipe, text=True, preexec_fn=_listen)
    try:
        end = time.monotonic() + 60
        while not (started.exists() and started.read_text(encoding="utf-8").endswith(" ")):
            assert time.monotonic() < end
            assert run.poll() is None, run.communicate()
            time.sleep(0.02)
        time.sleep(0.3)
        run.send_signal(number)
        out, errors = run.communicate(timeout=40)
    finally:
        run.kill()
    assert not _alive(int(started.read_text(encoding="utf-8")))
    assert "Traceback" not in errors
    return run.returncode, out, errors


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_is_through_is_told_and_kept(tmp_path: Path, number: signal.Signals, code: int) -> None:
    words = ("--rule", "SL003", "--rule", "SL020", "--rule", "SL021", "--output-format", "json", "--output-format", "full:table")
    status, out, errors = _interrupt(tmp_path, number, *words)
    assert status == code
    told = json.loads(out)
    jsonschema.validate(told, schema.verify())
    through = {(case["rule"], case["case"]) for case in told["cases"] if case["verdict"] == "CONFIRMED"}
    missed = {(case["rule"], case["case"]) for case in told["not_run"]}
    assert len(through) == 1
    assert missed
    assert not through & missed
    (name,) = {rule for rule, _ in through}
    assert f"streamlint verify: interrupted; not run: {told['not_run'][0]['rule']} {told['not_run'][0]['case']} [cupy]" in errors
    assert "CONFIRMED" in (tmp_path / "table").read_text(encoding="utf-8")
    kept = evidence.read(tmp_path / "data" / "streamlint" / "evidence")
    assert {(entry["rule"], entry["case"]) for entry in kept} == through
    assert name == kept[0]["rule"]


def test_findings_are_told_with_what_is_through(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MISUSE)
    (tmp_path / "b.py").write_text(MISUSE.replace("4096", "8192"))
    status, out, errors = _interrupt(tmp_path, signal.SIGINT, "a.py", "b.py", "--output-format", "json", "--no-save")
    assert status == 130
    levels = [(finding.get("evidence") or {}).get("level") for finding in json.loads(out)]
    assert levels.count("facts") == 1
    assert len(levels) == 2
    assert "interrupted; not run: SL003" in errors


def test_a_parent_that_is_killed_takes_the_program_with_it(tmp_path: Path) -> None:
    """``prctl(PR_SET_PDEATHSIG)``, which the children of this package call first."""
    program = (
        "import json, os, time; from streamlint.verify.child import die_with_parent; die_with_parent();"
        "print(json.dumps({'event': 'up', 'pid': os.getpid()}), flush=True); time.sleep(600)"
    )
    code = (
        "import sys, time; from streamlint.verify.watchdog import Child\n"
        f"child = Child([sys.executable, '-c', {program!r}])\n"
        "print(child.read(20)['pid'], flush=True); time.sleep(600)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert _alive(child)
    parent.kill()
    parent.wait(10)
    parent.stdout.close()
    end = time.monotonic() + 10
    while _alive(child) and time.monotonic() < end:
        time.sleep(0.02)
    assert not _alive(child)
