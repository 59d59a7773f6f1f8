"""Child processes of a recorded program: each Python process that loads a library of CUDA records into a file of its own, ``run.slt.PID``.

Children find the recorder through the environment: ``STREAMLINT_RECORD`` names the file, ``STREAMLINT_RECORD_SESSION`` the run, and a
folder before all others on PYTHONPATH holds a ``sitecustomize`` that Python imports when it starts. So spawned workers, the ranks of
torchrun and programs that are started as `python x.py` are recorded. Not recorded are forked children (a copy of a process that has used
CUDA cannot use it), children that are started without the environment or with `python -I` or `-S`, and those that load no library of
`LIBRARIES`.
"""

from __future__ import annotations

import importlib.abc
import os
import sys

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.trace.recording import sessions
from streamlint.trace.recording.recorder import start_until_exit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlint.trace.recording.sessions import Session

VARIABLE, ROOT = "STREAMLINT_RECORD", "STREAMLINT_RECORD_ROOT"
BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot")
LIBRARIES = frozenset(("torch", "cupy", "cupy_backends", "numba", "cuda", "jax", "tensorflow", "pycuda", "cudf", "triton"))


def follow(output: str, root: str, session: Session) -> None:
    """Have the child processes recorded that are started from now on, as processes of the same run."""
    os.environ[VARIABLE] = os.path.abspath(output)
    os.environ[sessions.VARIABLE] = session.id
    os.environ[ROOT] = os.path.abspath(root) if root else ""
    folders = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != BOOT]
    os.environ["PYTHONPATH"] = os.pathsep.join([BOOT, *folders])


def unfollow() -> None:
    """Let child processes that are started from now on alone."""
    os.environ.pop(VARIABLE, None)
    os.environ.pop(ROOT, None)
    os.environ.pop(sessions.VARIABLE, None)
    folders = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != BOOT]
    if folders:
        os.environ["PYTHONPATH"] = os.pathsep.join(folders)
    else:
        os.environ.pop("PYTHONPATH", None)


def begin() -> None:
    """In a child that starts: record once the program imports a library of CUDA."""
    if os.environ.get(VARIABLE):
        sys.meta_path.insert(0, _Watch())


class _Watch(importlib.abc.MetaPathFinder):
    """Sees which modules are imported, and finds none."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> None:
        if fullname not in LIBRARIES or self not in sys.meta_path:
            return
        sys.meta_path.remove(self)
        try:
            start_until_exit(f"{os.environ[VARIABLE]}.{os.getpid()}", os.environ.get(ROOT, ""))
        except StreamlintError as error:
            print(f"streamlint: process {os.getpid()} is not recorded: {error}", file=sys.stderr)
