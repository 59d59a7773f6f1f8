"""What more files cost: a package, the same with its files without CUDA twice, the same with its files with CUDA twice.

    python benchmarks/doubling.py [--corpus DIR] [--rounds 3] NAME|FOLDER…

All rules, one process, no cache, CPU time, medians; the three are run in turns. What grows with a tree and not with what matters shows in
the first share: it should stay below a fifth of the second.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from corpus import default_folder
from folders import report

from streamlint.config.settings import Resolver, Settings
from streamlint.discovery import triggers
from streamlint.discovery.files import Found, discover
from streamlint.runner import linter

TWIN = "twin"


@dataclass(frozen=True, slots=True)
class Doubled:
    """CPU seconds of a package, and what its files of either kind add when they are there twice."""

    name: str
    plain: float
    without: float
    mentioning: float

    @property
    def share(self) -> float:
        """What files without CUDA add, of what those with it add."""
        return (self.without - self.plain) / max(self.mentioning - self.plain, 1e-9)


def mentions(file: Found) -> bool:
    """Whether a file is read, and not only looked through."""
    return triggers.relevant(file.language)(Path(file.path).read_bytes())


def twins(folder: Path, to: Path, wanted: bool) -> Path:
    """A copy of a folder in which the files with CUDA (or those without) are there a second time."""
    shutil.copytree(folder, to / folder.name)
    for file in discover([folder], Resolver(_settings())).files:
        if mentions(file) is wanted:
            target = to / TWIN / Path(file.path).resolve().relative_to(folder.resolve())
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file.path, target)
    return to


def measure(folder: Path, rounds: int = 3) -> Doubled:
    """The CPU time of each of the three trees."""
    with tempfile.TemporaryDirectory() as made:
        base = Path(made)
        trees = [folder, twins(folder, base / "without", wanted=False), twins(folder, base / "mentioning", wanted=True)]
        taken: list[list[float]] = [[], [], []]
        for _ in range(rounds):
            for times, tree in zip(taken, trees, strict=True):
                start = time.process_time()
                linter.run([tree], Resolver(_settings()))
                times.append(time.process_time() - start)
    return Doubled(folder.name, *map(statistics.median, taken))


def told(doubled: Doubled) -> str:
    """One line of a report."""
    return (
        f"{doubled.name}: {doubled.plain:.2f} s; files without CUDA twice {doubled.without - doubled.plain:+.2f} s, "
        f"with CUDA twice {doubled.mentioning - doubled.plain:+.2f} s: {100 * doubled.share:.0f} %"
    )


def _settings() -> Settings:
    return Settings.of(select=["ALL"], preview=True)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="What more files cost.")
    parser.add_argument("names", nargs="+", metavar="NAME|FOLDER")
    parser.add_argument("--corpus", type=Path, default=default_folder())
    parser.add_argument("--rounds", type=int, default=3, metavar="N")
    given = parser.parse_args()
    return report(given.names, given.corpus, lambda folder: [told(measure(folder, given.rounds))])


if __name__ == "__main__":
    sys.exit(main())
