"""Recording what a program's CUDA calls do to the host, with their lines, and when the GPU worked: in the program's own process.

`cupti` speaks to NVIDIA's library, `layouts` says where the fields of its records stand, `taps` is called back by it, `stacks` finds the
user's lines, `form` is the file's content, `output` the file, `sessions` says which files are of one run, `recorder` holds these together,
`program` runs scripts, `children` records their child processes. Imports nothing of streamlint but `errors`, `records`, `trace.kinds` and
`trace.model`.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys

from streamlint import TYPE_CHECKING
from streamlint.trace.recording import children, sessions
from streamlint.trace.recording.cupti import open_cupti, require_gpu
from streamlint.trace.recording.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from streamlint.trace.recording.sessions import Session

__all__ = ["record", "run"]


@contextlib.contextmanager
def record(output: str | os.PathLike[str], *, root: str | os.PathLike[str] = "", share: float = 1.0) -> Iterator[None]:
    """Record the CUDA calls of this process, and of the Python processes it starts, while the block runs: ``with record("run.slt"):``.

    ``root`` is the folder of your code; without it all files count that are not installed. Of a ``share`` below 1, parts of two seconds are
    recorded, of this process alone, and CUPTI is away between them. Raises StreamlintError where there is no CUPTI
    or driver, where another profiler is active in this process, and where the file cannot be written.
    """
    recorder = Recorder(os.fspath(output), open_cupti(), os.fspath(root), share=share)
    recorder.start()
    if share == 1:
        children.follow(os.fspath(output), os.fspath(root), recorder.session)
    try:
        yield
    finally:
        children.unfollow()
        recorder.stop(leaves=True)


def run(program: Sequence[str], output: Path, *, root: str = "", python: str = "", session: Session | None = None, share: str = "") -> int:
    """Run a program recorded, in a child process, and return its exit code; ``program`` is a script or ``-m`` and a module, and arguments.

    Its recording begins with the id of the session, a new one if none is given. ``python`` is the interpreter, this one if empty. Raises
    StreamlintError before the program starts where there is no CUPTI or GPU. A program that a signal ended gives 128 and its number, as in
    a shell.
    """
    if not python:  # else CUPTI is found by that interpreter alone, which says so
        open_cupti()
        require_gpu()
    options = [word for name, value in (("--root", root), ("--share", share)) if value for word in (name, value)]
    command = [python or sys.executable, "-m", "streamlint.record", "--output", str(output), *options, *program]
    child = subprocess.Popen(command, env={**os.environ, sessions.VARIABLE: (session or sessions.new()).id})
    while True:
        try:
            code = child.wait()
            return code if code >= 0 else 128 - code
        except KeyboardInterrupt:
            continue  # the child got it too, and ends by it
