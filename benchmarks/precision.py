"""Precision on released packages: lint them as a user would, and hold the findings against the ledger.

    python benchmarks/precision.py [NAME…]        fetch, lint, compare, print precision per rule, what is new and what is gone
    python benchmarks/precision.py --record       the same, and write to the ledger what is new (unjudged) and what is gone
    python benchmarks/precision.py --only-print   print the ledger's own figures; lint nothing

The packages are those of corpus.toml and precision/packages.toml, each pinned to one file; corpus.py fetches them. A package is linted with
`streamlint check` and no options that change what is reported, in a process of its own. Nothing of a package is run. Exits 1 when a finding
is new or gone or a package could not be linted.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import corpus
import ledger
from shares import share

PINS = Path(__file__).parent / "precision" / "packages.toml"
ROOT = Path(__file__).resolve().parents[1]
SOURCES = {".py", ".pyx", ".pxd", ".pxi", ".cu", ".cuh", ".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".hh", ".inl", ".hu"}


@dataclass
class Run:
    """What the linter said of one package."""

    pin: corpus.Pin
    findings: list[Mapping[str, Any]] = field(default_factory=list)
    files: int = 0
    lines: int = 0
    failure: str = ""


@dataclass
class Change:
    """A run against the ledger: what is new, what is gone, what came back, and the package as it stands now."""

    package: ledger.Package
    new: list[ledger.Entry] = field(default_factory=list)
    gone: list[ledger.Entry] = field(default_factory=list)


def pins() -> list[corpus.Pin]:
    """All pinned packages: those of the corpus, and those that are here for their findings alone."""
    found = [*corpus.read_pins(), *corpus.read_pins(PINS)]
    names = [pin.name for pin in found]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise corpus.CorpusError(f"pinned in both files: {', '.join(twice)}")
    return found


def lint(pin: corpus.Pin, folder: Path, reports: Path | None, limit: float) -> Run:
    """Lint one tree; a report that is kept for it is read instead."""
    tree = folder / pin.tree
    kept = reports / f"{pin.tree}.json" if reports else None
    run = Run(pin)
    try:
        text = kept.read_text(encoding="utf-8") if kept and kept.is_file() else check(tree, limit)
        run.findings = json.loads(text)
    except (ValueError, OSError, subprocess.TimeoutExpired) as error:
        run.failure = f"{pin.tree}: {error}"
        return run
    if kept:
        kept.write_text(text, encoding="utf-8")
    run.files, run.lines = size(tree)
    return run


def check(tree: Path, limit: float) -> str:
    """What `streamlint check` prints as JSON, run as a user runs it: in the tree, with the rules that are on by default."""
    command = [sys.executable, "-m", "streamlint", "check", "--isolated", "--no-cache", "--jobs", "1", "--output-format", "json", "."]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    if done.returncode not in (0, 1):
        raise OSError((done.stderr.strip().splitlines() or ["no output"])[-1])
    return done.stdout


def size(tree: Path) -> tuple[int, int]:
    """Files and lines of source in a tree; those of tests and vendored folders, which the linter leaves out, as well."""
    files = [path for path in tree.rglob("*") if path.suffix in SOURCES and path.is_file()]
    return len(files), sum(path.read_bytes().count(b"\n") for path in files)


def entry(finding: Mapping[str, Any]) -> ledger.Entry:
    """A finding of a report, as the ledger knows it."""
    return ledger.Entry(finding["filename"], finding["location"]["row"], finding["code"], finding["fingerprint"])


def compare(run: Run, known: ledger.Package | None, today: str) -> Change:
    """Match by fingerprint. A line that moved is taken over; a ledger of another version of the package is no ledger of this one."""
    pin = run.pin
    old = {one.fingerprint: one for one in known.findings} if known and known.sha256 == pin.sha256 else {}
    seen = {one.fingerprint: one for one in map(entry, run.findings) if one.rule != "SL000"}
    package = ledger.Package(pin.name, pin.version, pin.sha256, run.files, run.lines)
    change = Change(package)
    for mark, one in seen.items():
        before = old.get(mark)
        if before is None or before.gone:
            change.new.append(before or one)
        package.findings.append(replace(before, line=one.line, gone="") if before else one)
    for mark, one in old.items():
        if mark not in seen:
            if not one.gone:
                change.gone.append(one)
            package.findings.append(replace(one, gone=one.gone or today))
    return change


# What is printed


def table(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """Precision per rule, of the findings that stand. What is unclear counts as wrong."""
    entries = [one for package in packages for one in package.standing]
    yield f"{'rule':6} {'findings':>8} {'judged':>6} {'real':>5} {'not real':>8} {'unclear':>7}  {'precision [95 %]':20} lower 90 %"
    for rule in [*sorted({one.rule for one in entries}), "all"]:
        count = ledger.tally(one for one in entries if rule in (one.rule, "all"))
        cells = f"{count.judged + count.unread:8} {count.judged:6} {count.real:5} {count.false:8} {count.unclear:7}"
        failed = "" if rule == "all" or ledger.may_be_on(count) else "  may not be on by default"
        yield f"{rule:6} {cells}  {share(count.real, count.judged):20} {ledger.lower(count):.2f}{failed}"
    yield f"{len(packages)} packages, {sum(p.files for p in packages)} files, {sum(p.lines for p in packages)} lines"


def listed(title: str, rows: Sequence[tuple[ledger.Package, ledger.Entry]]) -> Iterator[str]:
    """Findings by place, with what was said of them."""
    yield f"\n{title}: {len(rows)}"
    for package, one in rows:
        yield f"{one.rule} {package.name}-{package.version} {one.path}:{one.line} {one.fingerprint} {one.verdict}".rstrip()


def report(packages: Sequence[ledger.Package], changes: Sequence[Change], failures: Sequence[str]) -> Iterator[str]:
    """Everything, as lines."""
    yield from table(packages)
    standing = [(package, one) for package in packages for one in package.standing]
    yield from listed("new", [(change.package, one) for change in changes for one in change.new])
    yield from listed("gone", [(change.package, one) for change in changes for one in change.gone])
    yield from listed("not judged", [row for row in standing if not row[1].judged])
    yield from listed("readers differ", [row for row in standing if row[1].disputed])
    lonely = [row for row in standing if row[1].rule in ledger.RACES and len({judgment.reader for judgment in row[1].judged}) == 1]
    yield from listed("races with one reader", lonely)
    if failures:
        yield f"\nnot linted: {len(failures)}"
        yield from failures


def measure(options: argparse.Namespace) -> tuple[list[Change], list[str]]:
    """Fetch and lint what was asked for; the changes against the ledger, and what went wrong."""
    chosen = corpus.choose(pins(), options.names)
    failures = [] if options.no_fetch else corpus.fetch_all(chosen, options.corpus)
    if options.reports:
        options.reports.mkdir(parents=True, exist_ok=True)
    there = [pin for pin in chosen if (options.corpus / pin.tree).is_dir()]
    failures += [f"{pin.tree}: not in {options.corpus}" for pin in chosen if pin not in there and options.no_fetch]
    with ThreadPoolExecutor(options.jobs) as pool:
        runs = list(pool.map(lambda pin: lint(pin, options.corpus, options.reports, options.limit), there))
    known = {package.name: package for package in ledger.read()}
    today = datetime.date.today().isoformat()
    changes = [compare(run, known.get(run.pin.name), today) for run in runs if not run.failure]
    return changes, failures + [run.failure for run in runs if run.failure]


def main(words: Sequence[str] | None = None) -> int:
    """Measure; 0 if the ledger holds all that is reported and nothing is missing, 1 if not, 2 if it could not be measured."""
    parser = argparse.ArgumentParser(description="Precision of the default findings on released packages.")
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: all)")
    parser.add_argument("--corpus", type=Path, default=corpus.default_folder(), metavar="DIR", help="where the trees are, or are put")
    parser.add_argument("--no-fetch", action="store_true", help="take the trees that are there, as they are")
    parser.add_argument("--reports", type=Path, metavar="DIR", help="keep JSON reports there; one that is there is not made anew")
    parser.add_argument("--limit", type=float, default=3600, metavar="SECONDS", help="for one package")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--record", action="store_true", help="write what is new and gone to the ledger")
    parser.add_argument("--only-print", action="store_true", help="lint nothing; print what the ledger holds")
    options = parser.parse_args(words)
    try:
        changes, failures = ([], []) if options.only_print else measure(options)
        if options.record:
            for change in changes:
                ledger.write(change.package)
        now = {package.name: package for package in ledger.read()} if options.only_print else {}
        now.update({change.package.name: change.package for change in changes})
    except (corpus.CorpusError, ledger.LedgerError) as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(report(list(now.values()), changes, failures)))
    return 1 if failures or any(change.new or change.gone for change in changes) else 0


if __name__ == "__main__":
    sys.exit(main())
