"""Child processes of a recorded program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from streamlint.trace.recording import children, sessions

ROOT = Path(__file__).parents[3]


def child(folder: Path, code: str) -> tuple[str, str]:
    """What a child prints that is started from a process whose children are followed."""
    begun = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, timeout=30, check=True)
    return begun.stdout, begun.stderr


def test_a_child_records_once_it_loads_cuda(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine has no GPU, which the child says; the user's own `sitecustomize` and `PYTHONPATH` still work."""
    (tmp_path / "sitecustomize.py").write_text("import sys\nsys.own = 'own'\n")
    (tmp_path / "numba.py").write_text("print('numba is loaded')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(tmp_path), str(ROOT))))
    before = dict(os.environ)
    session = sessions.new()
    children.follow(str(tmp_path / "run.slt"), "", session)
    try:
        out, err = child(tmp_path, "import os, sys\nprint(os.getpid(), sys.own)\nimport numba\nimport numba")
        plain = child(tmp_path, "import json")
        inherited = sessions.own()
    finally:
        children.unfollow()
    process, own, *loaded = out.split(None, 2)
    assert (own, loaded) == ("own", ["numba is loaded\n"])
    assert err.startswith(f"streamlint: process {process} is not recorded: ")
    assert inherited == sessions.Session(session.id, is_shared=True)
    assert plain == ("", "")
    assert dict(os.environ) == before
