"""What goes to one place comes in its order, whether or not Python buffers it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

MISUSE = """\
import torch


def read(rows):
    host = (rows.cuda() * 2).to("cpu", non_blocking=True)
    return host.numpy()
"""


def test_findings_come_before_the_summary(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(MISUSE)
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "--output-format", "concise", "a.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    first, *_, last = done.stdout.splitlines()
    assert first.startswith("a.py:6:")
    assert last == "1 file, 1 mentions CUDA, 1 finding"
