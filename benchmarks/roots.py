"""How much CPU time each root takes: median, 99 %, and the slowest, for packages of the corpus or any folder.

    python benchmarks/roots.py [--corpus DIR] [--slowest 10] NAME|FOLDER…

All rules, one process, no cache. CPU time, not wall time: a busy machine changes it little. Lowering is told apart. A root is out of budget
when it was left with paths to look at as its steps were spent.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from corpus import CorpusError, choose, default_folder, read_pins

from streamlint import analysis, engine, linter
from streamlint.config import Resolver, Settings

if TYPE_CHECKING:
    from streamlint.findings import Finding
    from streamlint.interpreter.facts import FileFacts
    from streamlint.interpreter.roots import Root
    from streamlint.interpreter.run import Coverage


@dataclass(slots=True)
class Measured:
    """The roots of one package, and what all of it took."""

    name: str
    cpu: float = 0.0
    lowering: float = 0.0
    files: int = 0
    findings: int = 0
    runs: int = 0
    budget: int = 0
    roots: list[tuple[float, str]] = field(default_factory=list)

    def at(self, share: float) -> float:
        """The milliseconds below which this share of the roots stays."""
        times = sorted(seconds for seconds, _ in self.roots)
        return 1000 * times[min(len(times) - 1, int(len(times) * share))] if times else 0.0


def measure(path: Path) -> Measured:
    """Lint a folder with all rules, with a clock at each root."""
    measured = Measured(path.name)
    check_root, lower = analysis.Analysis._check_root, engine.lower

    def timed_root(self: analysis.Analysis, root: Root, facts: FileFacts, coverage: Coverage) -> Iterator[Finding]:
        start, runs, budget = time.process_time(), coverage.runs, coverage.over_budget
        try:
            return iter(list(check_root(self, root, facts, coverage)))
        finally:
            measured.roots.append((time.process_time() - start, f"{root.file.path}:{root.qualname}"))
            measured.runs += coverage.runs - runs
            measured.budget += coverage.over_budget > budget

    def timed_lower(*given: object) -> None:
        start = time.process_time()
        lower(*given)  # type: ignore[arg-type]
        measured.lowering += time.process_time() - start

    analysis.Analysis._check_root, engine.lower = timed_root, timed_lower  # type: ignore[method-assign, assignment]
    start = time.process_time()
    try:
        report = linter.run([path], Resolver(Settings.of(select=["ALL"], preview=True)), coverage=True)
    finally:
        analysis.Analysis._check_root, engine.lower = check_root, lower  # type: ignore[method-assign]
    measured.cpu = time.process_time() - start
    measured.files, measured.findings = report.files, len(report.findings)
    return measured


def told(measured: Measured, slowest: int) -> Iterator[str]:
    """The lines of a report."""
    yield (
        f"{measured.name}: {measured.cpu:.1f} s ({measured.lowering:.1f} to lower), {measured.files} files, {measured.findings} findings, "
        f"{len(measured.roots)} roots, {measured.runs} runs, {measured.budget} out of budget"
    )
    yield f"  a root: median {measured.at(0.5):.1f} ms, 90 % {measured.at(0.9):.0f} ms, 99 % {measured.at(0.99):.0f} ms"
    for seconds, root in sorted(measured.roots, reverse=True)[:slowest]:
        yield f"  {1000 * seconds:6.0f} ms  {root}"


def folders(names: list[str], corpus: Path) -> Iterator[Path]:
    """The folders that are named, or those of the packages of the corpus."""
    known = {pin.name for pin in read_pins()}
    for name in names:
        if name in known:
            yield from (corpus / pin.tree for pin in choose(read_pins(), [name]))
        elif Path(name).is_dir():
            yield Path(name)
        else:
            raise CorpusError(f"{name} is neither a package of the corpus nor a folder")


def report(names: list[str], corpus: Path, lines: Callable[[Path], Iterable[str]]) -> int:
    """Print what is to be told of each folder, as soon as it is known; the exit status."""
    try:
        for folder in folders(names, corpus):
            print("\n".join(lines(folder)), flush=True)
    except CorpusError as error:
        print(error, file=sys.stderr)
        return 2
    return 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="CPU time of each root.")
    parser.add_argument("names", nargs="+", metavar="NAME|FOLDER")
    parser.add_argument("--corpus", type=Path, default=default_folder())
    parser.add_argument("--slowest", type=int, default=10, metavar="N")
    given = parser.parse_args()
    return report(given.names, given.corpus, lambda folder: told(measure(folder), given.slowest))


if __name__ == "__main__":
    sys.exit(main())
