"""Measures what a run costs, beside peers, on the pinned packages.

    python benchmarks/speed.py FOLDER [--quick] [--runs N] [--budget SECONDS] [--peer NAME=COMMAND]… [--to DIR]

FOLDER holds unpacked packages (`corpus.py fetch`). Commands are interleaved, so that what else the machine does falls on all alike; each
row is the median. A command that does not end within the budget is said to have not ended, and is not run again. A peer is a command that
takes the folder as its last word, such as `--peer "torchfix=/venvs/torchfix/bin/torchfix --select ALL"`. Writes speed.json and speed.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

STAGED = 10
CHECK = (sys.executable, "-m", "streamlint", "check")
QUIET = ("--exit-zero", "--quiet", "--no-default-excludes", "--isolated")


@dataclass(frozen=True)
class Cost:
    """One run: seconds on the wall and of the processor, and the largest process."""

    wall: float
    cpu: float
    peak_mib: float


@dataclass
class Row:
    """A command with its runs; ``before`` brings the tree and the cache to where the run begins."""

    name: str
    words: list[str]
    before: Callable[[], None] = lambda: None
    runs: list[Cost] = field(default_factory=list)
    failure: str = ""

    def summary(self) -> dict[str, object]:
        """The medians, or why there are none."""
        if self.failure or not self.runs:
            return {"name": self.name, "failure": self.failure or "not run"}
        medians = {key: round(statistics.median(getattr(run, key) for run in self.runs), 3) for key in ("wall", "cpu", "peak_mib")}
        return {"name": self.name, "runs": len(self.runs), **medians}


def run(words: Sequence[str], folder: Path, cache: Path, budget: float) -> Cost | str:
    """What a command costs, or why that is not known."""
    env = {**os.environ, "STREAMLINT_CACHE_DIR": str(cache)}
    env.pop("STREAMLINT_NO_CACHE", None)
    start = time.perf_counter()
    process = subprocess.Popen(words, cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        if time.perf_counter() - start > budget:
            os.killpg(process.pid, 9)
            os.wait4(process.pid, 0)
            process.returncode = -9
            return f"did not end in {budget:g} s"
        time.sleep(0.002)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        return f"ended with status {process.returncode}"
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def rows(folder: Path, cache: Path, peers: Sequence[str]) -> list[Row]:
    """The commands that are compared."""
    changed, staged = edited(folder), [str(path) for path in sources(folder)[:: max(1, len(sources(folder)) // STAGED)][:STAGED]]
    check = [*CHECK, *QUIET]

    def forget() -> None:
        shutil.rmtree(cache, ignore_errors=True)

    found = [
        Row("streamlint cold", [*check, "."], forget),
        Row("streamlint warm", [*check, "."]),
        Row("streamlint, one file changed", [*check, "."], changed),
        Row("streamlint, ten staged files", [*CHECK, "--force-exclude", "--no-cache", *QUIET, *staged]),
        Row("streamlint --version", [sys.executable, "-m", "streamlint", "--version"]),
        Row("bare Python", [sys.executable, "-c", "pass"]),
    ]
    if ruff := shutil.which("ruff", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"):
        plain = [ruff, "check", "--no-cache", "--isolated", "--exit-zero"]
        found += [Row("ruff", [*plain, "."]), Row("ruff E4,E7,E9,F", [*plain, "--select", "E4,E7,E9,F", "."])]
    for peer in peers:
        name, _, command = peer.partition("=")
        found.append(Row(name, [*shlex.split(command), "."]))
    return found


def sources(folder: Path) -> list[Path]:
    """The Python files of a folder, in order."""
    return sorted(folder.rglob("*.py"))


def edited(folder: Path) -> Callable[[], None]:
    """Adds a line to one file that mentions CUDA, another one each time."""
    files: Iterator[Path] = (path for path in sources(folder) if b"cuda.Stream" in path.read_bytes())

    def edit() -> None:
        if path := next(files, None):
            path.write_bytes(path.read_bytes() + b"\n# one line more\n")

    return edit


def measure(table: list[Row], folder: Path, cache: Path, count: int, budget: float) -> None:
    """Run each command ``count`` times, in turns."""
    for number in range(count):
        for row in table:
            if row.failure:
                continue
            row.before()
            outcome = run(row.words, folder, cache, budget)
            print(f"{number + 1}/{count} {row.name}: {outcome}", file=sys.stderr, flush=True)
            if isinstance(outcome, str):
                row.failure = outcome
            else:
                row.runs.append(outcome)


def page(record: dict[str, object], table: list[dict[str, object]]) -> str:
    """The record as a page."""
    base = next((float(str(row["wall"])) for row in table if row["name"] == "ruff" and "wall" in row), None)
    lines = [
        "# Speed",
        "",
        f"{record['files']} Python files, {record['machine']}, Python {record['python']}; medians, made by `benchmarks/speed.py`.",
        "",
        "| command | wall (s) | of plain ruff | processor (s) | peak (MiB) |",
        "|---|---|---|---|---|",
    ]
    for row in table:
        if "failure" in row:
            lines.append(f"| {row['name']} | {row['failure']} | | | |")
            continue
        ratio = f"{float(str(row['wall'])) / base:.2f}" if base else ""
        lines.append(f"| {row['name']} | {row['wall']} | {ratio} | {row['cpu']} | {row['peak_mib']} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Copy the packages, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="one run of each, 60 s at most")
    parser.add_argument("--budget", type=float, default=600.0, help="seconds that one command may take")
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=COMMAND")
    parser.add_argument("--to", type=Path, default=Path("speed"))
    options = parser.parse_args()
    count, budget = (1, min(options.budget, 60.0)) if options.quick else (options.runs, options.budget)
    with tempfile.TemporaryDirectory() as place:
        tree, cache = Path(place, "tree"), Path(place, "cache")
        shutil.copytree(options.folder, tree, symlinks=True)
        table = rows(tree, cache, options.peer)
        measure(table, tree, cache, count, budget)
        record: dict[str, object] = {
            "files": len(sources(tree)),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}",
            "python": platform.python_version(),
            "budget_s": budget,
            "rows": [row.summary() for row in table],
        }
    options.to.mkdir(parents=True, exist_ok=True)
    (options.to / "speed.json").write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    (options.to / "speed.md").write_text(page(record, [row.summary() for row in table]), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
