"""Measures what a run costs, beside peers, on the pinned packages, and draws the page.

    python benchmarks/speed.py measure --corpus DIR [--minutes 12] [--runs 5]                      # into benchmarks/speed.json
    python benchmarks/speed.py measure --corpus DIR --beside NAME --packages NAME…                 # another tree beside it, under a name
    python benchmarks/speed.py stages --corpus DIR                                                # joins where a cold run's time goes
    python benchmarks/speed.py peer NAME COMMAND… --corpus DIR [--part 16] [--budget 600]          # joins one peer to it
    python benchmarks/speed.py page                                                               # docs/speed.md and its picture

DIR holds unpacked packages (`corpus.py fetch`); a tree is put together from those of `PACKAGES`. Commands are interleaved, so that what
else the machine does falls on all alike; each row is the median. A cold run is dear: it is run once, then the cheap rows in turns, then
the parts of the tree, then more cold runs while there is time. What the minutes did not suffice for is told as missing. `page` wants
matplotlib (`pip install -e '.[bench]'`).
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus import default_folder

ROOT = Path(__file__).parents[1]
EVIDENCE = Path(__file__).with_name("speed.json")
# Five thousand files of Python, most without a stream; and projects of CUDA C++.
PACKAGES = (
    "transformers", "deepspeed", "torchrec", "timm", "catalyst", "lightning", "torchvision", "accelerate",
    "causal-conv1d", "mamba-ssm", "torch-scatter", "torch-sparse", "implicit",
)  # fmt: skip
PARTS = (16, 8, 4, 2)
PARTS_ALONE = (16, 8)  # also with one process
STAGED = 10
LAST = 20.0  # seconds that are kept back for writing
CHECK = (sys.executable, "-m", "streamlint", "check")
QUIET = ("--exit-zero", "--quiet", "--no-default-excludes", "--isolated")
SUFFIXES = (".py", ".pyw", ".pyx", ".pxd", ".pxi", ".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx")


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
    env = {**os.environ, "STREAMLINT_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    for name in ("STREAMLINT_NO_CACHE", "PYTHONDONTWRITEBYTECODE"):  # an installed package has its byte code
        env.pop(name, None)
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
            return f"did not end in {budget:.0f} s"
        time.sleep(0.002)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        return f"ended with status {process.returncode}"
    return Cost(time.perf_counter() - start, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def measure(table: list[Row], folder: Path, cache: Path, count: int, budget: float, until: float = float("inf")) -> None:
    """Run each command ``count`` times, in turns, until the time is over."""
    for number in range(count):
        for row in table:
            left = min(budget, until - time.perf_counter())
            if row.failure or left <= 0:
                continue
            row.before()
            outcome = run(row.words, folder, cache, left)
            print(f"{number + 1}/{count} {row.name}: {outcome}", file=sys.stderr, flush=True)
            if not isinstance(outcome, str):
                row.runs.append(outcome)
            elif not row.runs:
                row.failure = outcome


# --- the trees ------------------------------------------------------------------------------------------------------------------------


def tree_of(corpus: Path, names: Sequence[str], to: Path) -> list[Path]:
    """The packages side by side in one folder, as links to their files where that can be; its sources in order."""
    to.mkdir(parents=True)
    for name in names:
        found = sorted(path for path in corpus.glob(f"{name}-*") if re.fullmatch(rf"{re.escape(name)}-\d[\w.]*", path.name))
        if not found:
            raise SystemExit(f"{name} is not in {corpus}: python benchmarks/corpus.py fetch {name}")
        shutil.copytree(found[-1], to / found[-1].name, symlinks=True)
    return sorted(path for path in to.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def part_of(tree: Path, files: Sequence[Path], share: int, to: Path) -> Path:
    """Every ``share``-th source of a tree."""
    for path in files[::share]:
        target = to / path.relative_to(tree)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return to


def sources(folder: Path) -> list[Path]:
    """The Python files of a folder, in order."""
    return sorted(folder.rglob("*.py"))


def spread(paths: Sequence[Path]) -> list[str]:
    """Ten of these, from everywhere."""
    return [str(path) for path in paths[:: max(1, len(paths) // STAGED)][:STAGED]]


def relevant(folder: Path) -> list[Path]:
    """Python files that work with CUDA, from everywhere, and each one once before it comes again."""
    found = [path for path in sources(folder) if b"torch.cuda" in path.read_bytes()]
    return found[:: max(1, len(found) // STAGED)]


def kernels(folder: Path) -> list[Path]:
    """CUDA sources, likewise."""
    found = sorted(folder.rglob("*.cu"))
    return found[:: max(1, len(found) // STAGED)]


def commented(text: bytes) -> bytes:
    """A line more at the end, which says nothing."""
    return text + b"\n# one line more\n"


def restated(text: bytes) -> bytes:
    """A statement more in the first function that has room for one: all below it moves."""
    return re.sub(rb"(?m)^([ \t]*)(def \w+\([^()\n]*\)[^:\n]*:\n)(?=[ \t]+\w)", rb"\1\2\1    one_statement_more = 1\n", text, count=1)


def opened(text: bytes) -> bytes:
    """C++: a statement more where the first body at the left margin opens."""
    return re.sub(rb"(?m)(^[^\s#/].*\)\s*\{[ \t]*\n)", rb"\1  (void)0;\n", text, count=1)


def edited(paths: Sequence[Path], change: Callable[[bytes], bytes]) -> Callable[[], None]:
    """Changes one of these files, another one each time as far as there are so many. The run before it left all others as they are."""
    files: Iterator[Path] = itertools.cycle(paths)

    def edit() -> None:
        path = next(files)
        path.write_bytes(change(path.read_bytes()))

    return edit


def come(folder: Path) -> Callable[[], None]:
    """Adds a file that works with CUDA beside another one."""
    beside = itertools.cycle(relevant(folder))
    number = itertools.count()

    def add() -> None:
        path = next(beside).with_name(f"one_file_more_{next(number)}.py")
        path.write_text("import torch\n\n\ndef move(x):\n    return x.cuda()\n", encoding="utf-8")

    return add


def gone(folder: Path) -> Callable[[], None]:
    """Takes a file away that works with CUDA; the last ones first, which no other row edits."""
    spared = set(relevant(folder))
    last = reversed([path for path in sources(folder) if path not in spared and b"torch.cuda" in path.read_bytes()])

    def take() -> None:
        if (path := next(last, None)) is not None:
            path.unlink()

    return take


def hook() -> list[str]:
    """The command of our pre-commit hook, as far as the file names."""
    entry = re.search(r"entry: streamlint (.+)", (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert entry is not None
    return [sys.executable, "-m", "streamlint", *entry[1].split()]


# --- the rows -------------------------------------------------------------------------------------------------------------------------


def cold(cache: Path, jobs: int = os.cpu_count() or 1, name: str = "streamlint, cold") -> Row:
    """A run that finds nothing kept."""
    return Row(name, [*CHECK, *QUIET, "--jobs", str(jobs), "."], lambda: shutil.rmtree(cache, ignore_errors=True))


def changes(folder: Path) -> list[Row]:
    """Runs after one change, each of another file of the tree: what it costs depends on who rests on the file."""
    python, cuda = relevant(folder), kernels(folder)
    kinds: dict[str, Callable[[], None]] = {
        "a comment in one file": edited(python, commented),
        "a statement in one file": edited(python[::-1], restated),
        "one file more": come(folder),
        "one file less": gone(folder),
    }
    if cuda:
        kinds["a statement in one .cu"] = edited(cuda, opened)
    return [Row(f"streamlint, {name}", [*CHECK, *QUIET, "."], change) for name, change in kinds.items()]


def cheap_rows(folder: Path) -> list[Row]:
    """What is run many times."""
    from streamlint.discovery import triggers

    relevant = triggers.relevant("python")
    mentions = {path: relevant(path.read_bytes()) for path in sources(folder)}
    without, some = [path for path, told in mentions.items() if not told], list(mentions)
    staged = [*hook(), "--exit-zero"]
    found = [
        Row("streamlint, warm", [*CHECK, *QUIET, "."]),
        *changes(folder),
        Row("streamlint, ten staged files without a root", [*staged, "--no-cache", *spread(without)]),
        Row("streamlint, ten staged files, no cache", [*staged, "--no-cache", *spread(some)]),
        Row("streamlint, ten staged files, known", [*staged, *spread(some)]),
        Row("streamlint --version", [sys.executable, "-m", "streamlint", "--version"]),
        Row("bare Python", [sys.executable, "-c", "pass"]),
    ]
    if ruff := shutil.which("ruff", path=f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"):
        plain = [ruff, "check", "--no-cache", "--isolated", "--exit-zero"]
        found += [Row("ruff", [*plain, "."]), Row("ruff E4,E7,E9,F", [*plain, "--select", "E4,E7,E9,F", "."])]
    return found


def take_all(corpus: Path, names: Sequence[str], minutes: float, count: int, budget: float) -> dict[str, Any]:
    """The record of all rows but the peers."""
    load, until = os.getloadavg()[0], time.perf_counter() + 60 * minutes - LAST
    with tempfile.TemporaryDirectory() as place:
        tree, cache = Path(place, "tree"), Path(place, "cache")
        files = tree_of(corpus, names, tree)
        sizes = {"files": len(files), "python": sum(path.suffix == ".py" for path in files), "bytes": sum(p.stat().st_size for p in files)}
        whole = cold(cache)
        measure([whole], tree, cache, 1, budget, until)
        table = cheap_rows(tree)
        measure(table, tree, cache, count, budget, until)
        files = [path for path in files if path.is_file()]  # a row has taken some away
        curves = []
        for share in PARTS:
            part = part_of(tree, files, share, Path(place, f"part-{share}"))
            for jobs in (os.cpu_count() or 1, *([1] if share in PARTS_ALONE else [])):
                row = cold(Path(place, "other"), jobs, f"1/{share}")
                measure([row], part, Path(place, "other"), 1, budget, until)
                curves.append({"part": share, "jobs": jobs, "files": len(files[::share]), **row.summary()})
        measure([whole], tree, cache, count - 1, budget, until)
    curves.append({"part": 1, "jobs": os.cpu_count() or 1, "files": len(files), **whole.summary()})
    return {**stamp(load), "tree": {"packages": list(names), **sizes}, "rows": [row.summary() for row in (whole, *table)], "curves": curves}


def take_peer(name: str, words: Sequence[str], corpus: Path, names: Sequence[str], part: int, budget: float) -> dict[str, Any]:
    """What a peer costs on a part of the tree, once, beside ruff and a cold run on the same part."""
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        tree, cache = Path(place, "tree"), Path(place, "cache")
        files = tree_of(corpus, names, tree)
        folder = part_of(tree, files, part, Path(place, "part"))
        beside = next((row for row in cheap_rows(folder) if row.name == "ruff"), None)
        table = [Row(name, [*words, "."]), cold(cache), *([beside] if beside else [])]
        measure(table, folder, cache, 1, budget)
    return {**stamp(load), "part": part, "files": len(files[::part]), "packages": list(names), "command": told(words),
            "rows": [row.summary() for row in table]}  # fmt: skip


def take_stages(corpus: Path, names: Sequence[str]) -> dict[str, Any]:
    """Where the processor time of one process goes on the tree, beside ruff's whole."""
    import stages

    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as place:
        tree, cache = Path(place, "tree"), Path(place, "cache")
        tree_of(corpus, names, tree)
        beside = [row for row in cheap_rows(tree) if row.name == "ruff"]
        measure(beside, tree, cache, 3, 60)
        taken = stages.take(tree)
    return {**stamp(load), "packages": list(names), **taken, "ruff": beside[0].summary() if beside else None}


def told(words: Sequence[str]) -> str:
    """A command without the places of this machine."""
    while words and (words[0] == "env" or "=" in words[0]):
        words = words[1:]
    return " ".join(Path(word).name if os.path.isabs(word) else word for word in words)


def stamp(load: float) -> dict[str, Any]:
    """When and where."""
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "python": platform.python_version(),
        "versions": {name: version for name in ("ruff", "tree-sitter") if (version := _version(name))},
        "load_at_start": round(load, 1),
    }


def _cpu() -> str:
    try:
        found = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        found = None
    return found[1].strip() if found else platform.machine()


def _version(name: str) -> str:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("measure", "stages", "peer", "page"))
    parser.add_argument("words", nargs="*", help="of a peer: its name and its command; the folder is added as its last word")
    parser.add_argument("--corpus", type=Path, default=default_folder())
    parser.add_argument("--packages", nargs="+", default=list(PACKAGES), metavar="NAME")
    parser.add_argument("--minutes", type=float, default=12.0, help="what all together may take")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--budget", type=float, default=600.0, help="seconds that one command may take")
    parser.add_argument("--part", type=int, default=16, help="of a peer: the part of the tree that it is run on")
    parser.add_argument("--beside", metavar="NAME", help="keep what is measured under this name, beside the big tree")
    parser.add_argument("--to", type=Path, default=EVIDENCE)
    given, more = parser.parse_known_args()
    if given.what == "page":
        from speed_page import write

        write(json.loads(given.to.read_text(encoding="utf-8")))
        return 0
    record = json.loads(given.to.read_text(encoding="utf-8")) if given.to.exists() else {}
    if given.what == "peer":
        name, *words = [*given.words, *more]
        taken = take_peer(name, words, given.corpus, given.packages, given.part, given.budget)
        record.setdefault("peers", {})[name] = taken
    elif given.what == "stages":
        record["stages"] = take_stages(given.corpus, given.packages)
    else:
        taken = take_all(given.corpus, given.packages, given.minutes, given.runs, given.budget)
        record.update({"trees": {**record.get("trees", {}), given.beside: taken}} if given.beside else taken)
    given.to.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
