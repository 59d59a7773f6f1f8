"""Whether a package gives the same findings whichever way it is linted, and what explains it where it does not.

    python benchmarks/determinism.py [--corpus DIR] [--files N] [--to FILE] NAME|FOLDER…

The whole is linted with one process and two, with other hash seeds, from shuffled paths, cold and warm: the bytes must be equal. Then
it is linted in two cuts (every second source), and N sources each alone. A file that gives something else there must rest on a file that
is not there: on what its findings rested in the whole run, the cache has noted (`streamlint/cache/units.py`). What is left is
unexplained, and exits 1.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from corpus import default_folder
from folders import report

ROOT = Path(__file__).parents[1]
CHECK = ("-m", "streamlint", "check", "--isolated", "--no-default-excludes", "--exit-zero", "--quiet", "--select", "ALL")
WAYS = (("two processes", 2, "1"), ("another hash seed", 1, "4242"), ("shuffled", 2, "7"))
NATIVE = (".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".pyx", ".pxd", ".pxi")
SOURCES = (".py", *NATIVE)


@dataclass(slots=True)
class Outcome:
    """What became of a package."""

    files: int = 0
    findings: int = 0
    unlike: list[str] = field(default_factory=list)  # ways that gave other bytes
    alone: int = 0
    explained: dict[str, str] = field(default_factory=dict)  # by file: what it rests on that was not there
    unexplained: list[str] = field(default_factory=list)


def lint(folder: Path, paths: Sequence[str], cache: Path | None = None, jobs: int = 1, seed: str = "0") -> bytes:
    """The report in JSON."""
    env = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT), "STREAMLINT_NO_CACHE": ""}
    kept = ["--cache-dir", str(cache)] if cache else ["--no-cache"]
    command = [sys.executable, *CHECK, *kept, "--jobs", str(jobs), "--output-format", "json", *paths]
    return subprocess.run(command, cwd=folder, env=env, stdout=subprocess.PIPE, check=True).stdout


def by_file(output: bytes) -> dict[str, list[Any]]:
    """The findings of each file; fingerprints count the like of them in other files, and are left out."""
    found: dict[str, list[Any]] = {}
    for finding in json.loads(output):
        found.setdefault(finding["filename"], []).append({key: value for key, value in finding.items() if key != "fingerprint"})
    return found


def rests(cache: Path) -> dict[str, set[str]]:
    """By file: the files that its findings rested on."""
    found: dict[str, set[str]] = {}
    for path in cache.glob("v*/units/*"):
        record = json.loads(path.read_bytes().partition(b"\n")[2])
        mentioning = {other for _, _, paths in record["rests"].get("texts", ()) for other in paths}
        for key in record["outline"]:
            found[key] = {*record["rests"].get("files", ()), *mentioning} - {key}
    return found


def try_out(folder: Path, alone: int = 20) -> Outcome:
    """All ways of one package."""
    files = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.suffix in SOURCES and path.is_file())
    with tempfile.TemporaryDirectory() as place:
        cache = Path(place, "cache")
        first = lint(folder, files, cache, jobs=2)
        outcome = Outcome(len(files), len(json.loads(first)))
        if lint(folder, files, cache) != first:
            outcome.unlike.append("warm")
        for name, jobs, seed in WAYS:
            paths = random.Random(seed).sample(files, len(files)) if name == "shuffled" else files
            if lint(folder, paths, jobs=jobs, seed=seed) != first:
                outcome.unlike.append(name)
        whole, known = by_file(first), rests(cache)
        singles = _singles(files, whole, alone)
        outcome.alone = len(singles)
        for part in (files[::2], files[1::2], *([single] for single in singles)):
            _compare(outcome, whole, by_file(lint(folder, part, cache)), frozenset(part), known)
    return outcome


def _singles(files: Sequence[str], whole: dict[str, list[Any]], count: int) -> list[str]:
    """Files with findings first: the others are mostly silent in every way."""
    return [
        *random.Random(0).sample(sorted(whole), min(count // 2, len(whole))),
        *random.Random(1).sample(files, min(count // 2, len(files))),
    ]


def _compare(
    outcome: Outcome, whole: dict[str, list[Any]], cut: dict[str, list[Any]], part: frozenset[str], known: dict[str, set[str]]
) -> None:
    for file in sorted(part):
        if whole.get(file, []) == cut.get(file, []):
            continue
        absent = sorted(known.get(file, set()) - part)
        if absent:
            outcome.explained[file] = absent[0]
        elif file.endswith(NATIVE):
            outcome.explained[file] = "the C++ and Cython of a run, which are one block"
        else:
            outcome.unexplained.append(file)


def told(folder: Path, outcome: Outcome) -> Iterator[str]:
    """Lines of a report."""
    same = "the same bytes in all ways" if not outcome.unlike else f"other bytes: {', '.join(outcome.unlike)}"
    yield (
        f"{folder.name}: {outcome.files} sources, {outcome.findings} findings; {same}; two cuts and {outcome.alone} files alone: "
        f"{len(outcome.explained)} files differ and rest on what was not there, {len(outcome.unexplained)} without a reason"
    )
    for file, other in sorted(outcome.explained.items()):
        yield f"  {file} rests on {other}"
    for file in sorted(set(outcome.unexplained)):
        yield f"  {file}: NO REASON"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Whether a package gives the same findings whichever way it is linted.")
    parser.add_argument("names", nargs="+", metavar="NAME|FOLDER")
    parser.add_argument("--corpus", type=Path, default=default_folder())
    parser.add_argument("--files", type=int, default=20, metavar="N", help="how many are linted alone")
    given = parser.parse_args()
    failed = []

    def lines(folder: Path) -> list[str]:
        outcome = try_out(folder, given.files)
        failed.extend(outcome.unexplained + outcome.unlike)
        return list(told(folder, outcome))

    return report(given.names, given.corpus, lines) or bool(failed)


if __name__ == "__main__":
    sys.exit(main())
