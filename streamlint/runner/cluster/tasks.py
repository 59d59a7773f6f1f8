"""What runs in a Dask worker: it hands names to a process of its own that holds the program, and keeps it for the next names.

A worker has threads, a folder and caches that are not ours: the analysis changes folders, forks, and ends by an alarm.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import subprocess
import sys
import threading
from typing import IO, cast

from streamlint.runner.cluster.job import Answer
from streamlint.support.guard import reason

_Child = subprocess.Popen[bytes]
_idle: dict[str, list[_Child]] = {}  # by the key of a run
_lock = threading.Lock()


class AnalystDiedError(RuntimeError):
    """The process that analyses ended before it answered."""


def same(job: bytes) -> bytes:
    """A job as a task's result: Dask sends it to each worker once, and remakes it if its holder is lost."""
    return job


def work(job: bytes, key: str, names: list[str]) -> dict[str, Answer | str]:
    """The answers for these names."""
    while True:
        child, is_new = _child(key, job)
        try:
            pickle.dump(names, cast("IO[bytes]", child.stdin))
            cast("IO[bytes]", child.stdin).flush()
            answers: dict[str, Answer | str] = pickle.load(cast("IO[bytes]", child.stdout))
        except (EOFError, OSError, pickle.UnpicklingError):
            status = _end(child)
            if is_new:
                if status < 0:
                    raise AnalystDiedError(reason(-status)) from None
                raise RuntimeError(f"the process of the analysis ended with status {status}; the worker's log says why") from None
            continue  # it went because nobody asked for a while
        with _lock:
            _idle.setdefault(key, []).append(child)
        return answers


def _child(key: str, job: bytes) -> tuple[_Child, bool]:
    """A process that holds the program of a run, and whether it is new. Those of other runs go."""
    with _lock:
        others = [child for other in list(_idle) if other != key for child in _idle.pop(other)]
        kept = _idle[key].pop() if _idle.get(key) else None
    for child in others:
        _end(child)
    if kept is not None:
        return kept, False
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "streamlint.runner.cluster.analyst"]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env)
    with contextlib.suppress(OSError):  # it has died: that is heard next
        cast("IO[bytes]", child.stdin).write(job)
    return child, True


def _end(child: _Child, patience: float = 1.0) -> int:
    """How a process ended; one that does not by itself is killed."""
    for pipe in (child.stdin, child.stdout):
        with contextlib.suppress(OSError):
            cast("IO[bytes]", pipe).close()
    try:
        return child.wait(patience)
    except subprocess.TimeoutExpired:
        child.kill()
        return child.wait()


@atexit.register
def _end_all() -> None:
    for children in _idle.values():
        for child in children:
            _end(child)
