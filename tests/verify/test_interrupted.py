"""What is left behind by a run that is ended: nothing. Real processes, no GPU."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")

# A run whose machine is made up, but whose children, compiler and folders are real.
DRIVER = """
import argparse, os, sys
from streamlint.verify import command
from streamlint.verify.care import Plan
from streamlint.verify.device import Device

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
command.add_arguments(parser)
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
echo "$$ $! $TMPDIR" > "$TEST_STARTED"
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
