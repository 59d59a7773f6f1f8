"""Runs in process groups of their own, none of which outlives its test, whatever becomes of that; nor all tests, on Linux."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import forks

_DROP = 24  # PR_CAPBSET_DROP
_LIBRARY = ctypes.CDLL(None) if sys.platform == "linux" else None


def as_anyone() -> None:
    """Let root read no more than others: without CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH the modes of files hold for it too."""
    if os.geteuid() == 0 and _LIBRARY is not None:
        for capability in (1, 2):
            _LIBRARY.prctl(_DROP, capability, 0, 0, 0)


def one_process() -> None:
    """Let it begin no process: as a user who has no other, without root's privilege to begin more, and with the one to read all files."""
    import resource  # which Windows has not

    if os.geteuid() == 0 and _LIBRARY is not None:
        for capability in (21, 24):  # CAP_SYS_ADMIN, CAP_SYS_RESOURCE
            _LIBRARY.prctl(_DROP, capability, 0, 0, 0)
        os.setresuid(54_321, 0, 0)
    resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))


@contextlib.contextmanager
def begun(folder: Path, *words: str, script: str = forks.COMMAND, **more: str) -> Iterator[forks.Process]:
    """A run with pipes, which leads its group."""
    process = forks.begin(folder, *words, script=script, stdin=forks.PIPE, STREAMLINT_NO_CACHE="", PYTHONDONTWRITEBYTECODE="1", **more)
    try:
        with process:
            try:
                yield process
            finally:
                kill_group(process.pid)
    finally:
        kill_group(process.pid)


def ended(process: forks.Process) -> tuple[int, bytes, bytes]:
    """Its status and what it wrote, once nothing of its group is left."""
    out, errors = process.communicate(timeout=60)
    assert left(process.pid) == []
    return process.returncode, out, errors


def left(group: int) -> list[str]:
    """The processes of a group that are no zombies, after a moment in which what was told to end may go."""
    end = time.monotonic() + 30
    while rows := _alive(group):
        if time.monotonic() > end:
            break
        time.sleep(0.1)
    return rows


def _alive(group: int) -> list[str]:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return []
    rows = subprocess.run(["ps", "-e", "-o", "pgid=,stat=,pid=,args="], capture_output=True, text=True, check=False).stdout.splitlines()
    return [row for row in rows if row.split()[0] == str(group) and not row.split()[1].startswith("Z")]


def kill_group(group: int) -> None:
    """At once, if there is still anything of it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)
