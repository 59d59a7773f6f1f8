"""``streamlint verify`` under fire, on a real GPU: killed children, signals at any moment, no memory left, two at once.

    python benchmarks/verify_under_fire.py [--rounds N] [--json FILE]

Each trial starts the command anew, in a session of its own, and then asks: did it end in time, with a status that the contract knows; does
a process of it live on; can the evidence be read; is there a report, or a message. Exits 1 if a trial failed.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

RULES = ("SL003", "SL005")
DEADLINE_S = 150.0
MARK = "STREAMLINT_UNDER_FIRE"

Trial = tuple[str, str, str]


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6, help="signals at random moments, of each kind; default: 6")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the trials there too")
    options = parser.parse_args(words)
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        for name, trial in plan(options.rounds):
            started = time.perf_counter()
            problem = trial(room)
            trials.append((name, problem or "held", f"{time.perf_counter() - started:.1f} s"))
            print(*trials[-1], sep=": ", flush=True)
    if options.json:
        options.json.write_text(json.dumps(trials), encoding="utf-8")
    return 1 if any(outcome != "held" for _, outcome, _ in trials) else 0


def plan(rounds: int) -> list[tuple[str, Callable[[Path], str]]]:
    dice = random.Random(0)
    moments = [round(dice.uniform(0.3, 12.0), 1) for _ in range(3 * rounds)]
    trials: list[tuple[str, Callable[[Path], str]]] = [("left alone", undisturbed), ("two at once", two_at_once)]
    for index in range(rounds):
        kill, interrupt, end = moments[3 * index : 3 * index + 3]
        trials.append((f"a child killed after {kill} s", lambda room, at=kill: child_killed(room, at)))
        trials.append((f"Ctrl-C after {interrupt} s", lambda room, at=interrupt: signalled(room, at, signal.SIGINT)))
        trials.append((f"SIGTERM after {end} s", lambda room, at=end: signalled(room, at, signal.SIGTERM)))
    return [*trials, ("no device memory left", without_memory), ("an illegal address in another process", beside_a_fault)]


class Run:
    """One ``streamlint verify``; ``mark`` is in the environment of all that it starts."""

    def __init__(self, room: Path, *extra: str) -> None:
        self.mark = f"{os.getpid()}-{time.monotonic_ns()}"
        self.report = room / f"{self.mark}.json"
        self.evidence = room / "evidence"
        command = [sys.executable, "-m", "streamlint.verify", "--evidence", str(self.evidence), "--output-format", f"json:{self.report}"]
        for rule in RULES:
            command += ["--rule", rule]
        self.process = subprocess.Popen(
            [*command, *extra],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, MARK: self.mark},
            start_new_session=True,
        )

    def end(self) -> tuple[int, str]:
        try:
            _, said = self.process.communicate(timeout=DEADLINE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            _, said = self.process.communicate()
            return 999, said
        return self.process.returncode, said

    def children(self) -> list[int]:
        """Processes that carry the mark, but for the first."""
        return [pid for pid in marked(self.mark) if pid != self.process.pid]

    def problem(self, statuses: tuple[int, ...], *, reported: bool) -> str:
        """What is wrong once it has ended; empty if nothing is."""
        status, said = self.end()
        if status not in statuses:
            return f"status {status}, not one of {statuses}: {said[-300:]}"
        end = time.monotonic() + 15
        while self.children() and time.monotonic() < end:
            time.sleep(0.2)
        if self.children():
            return f"left behind: {self.children()}"
        if "Traceback" in said:
            return f"a traceback: {said[-400:]}"
        if reported and (not self.report.exists() or not json.loads(self.report.read_text(encoding="utf-8"))["cases"]):
            return "no report"
        for path in self.evidence.glob("*.json"):
            json.loads(path.read_text(encoding="utf-8"))
        return ""


def marked(mark: str) -> list[int]:
    found = []
    wanted = f"{MARK}={mark}".encode()
    for entry in Path("/proc").iterdir():
        try:
            alive = "Z" not in (entry / "stat").read_text().rpartition(")")[2].split()[0]
            if entry.name.isdigit() and alive and wanted in (entry / "environ").read_bytes().split(b"\0"):
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def undisturbed(room: Path) -> str:
    return Run(room).problem((0,), reported=True)


def two_at_once(room: Path) -> str:
    first, second = Run(room), Run(room)
    return first.problem((0, 1), reported=True) or second.problem((0, 1), reported=True)


def child_killed(room: Path, seconds: float) -> str:
    run = Run(room)
    time.sleep(seconds)
    for pid in run.children()[-1:]:
        os.kill(pid, signal.SIGKILL)
    return run.problem((0, 1), reported=True)


def signalled(room: Path, seconds: float, number: signal.Signals) -> str:
    run = Run(room)
    time.sleep(seconds)
    if run.process.poll() is None:
        run.process.send_signal(number)
    return run.problem((0, 1, 2, 128 + number, -number), reported=False)


_HOG = """
import sys, cupy
taken = []
size = 1 << 34
while size >= 1 << 20:
    try:
        taken.append(cupy.cuda.runtime.malloc(size))
    except Exception:
        size >>= 1
print("full", flush=True)
sys.stdin.read()
"""

_FAULT = """
import cupy
bad = cupy.RawKernel("extern \\"C\\" __global__ void bad(int* x) { *(int*)8 = 1; }", "bad")
bad((1,), (1,), (0,))
try:
    cupy.cuda.runtime.deviceSynchronize()
except Exception as error:
    print(error, flush=True)
"""


def without_memory(room: Path) -> str:
    hog = subprocess.Popen([sys.executable, "-c", _HOG], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert hog.stdin is not None
    assert hog.stdout is not None
    hog.stdout.readline()
    try:
        return Run(room).problem((0, 1, 2), reported=False)
    finally:
        hog.stdin.close()
        hog.wait()


def beside_a_fault(room: Path) -> str:
    run = Run(room)
    for _ in range(3):
        subprocess.run([sys.executable, "-c", _FAULT], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return run.problem((0, 1), reported=True)


if __name__ == "__main__":
    raise SystemExit(main())
