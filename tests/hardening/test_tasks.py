"""Work on many files at once ends in time, as the work on one file does."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

BURN = """
import time
from streamlint.support import guard
guard.timed()
with guard.task("<all>", 0.3):
    end = time.process_time() + {seconds}
    while time.process_time() < end:
        guard.at("one.py")
        guard.at("")
end = time.process_time() + 0.5
while time.process_time() < end:
    pass
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no alarms on this system")
@pytest.mark.parametrize(("seconds", "ended"), [(0.1, 0), (5, -signal.SIGPROF)])
def test_a_task_is_ended_whatever_it_says_of_its_files(seconds: float, ended: int) -> None:
    done = subprocess.run([sys.executable, "-c", BURN.format(seconds=seconds)], check=False)
    assert done.returncode == ended
