"""Recall on real fixes: is the bug reported in a commit's parent, and is it silent in the commit?

    python benchmarks/recall/measure.py MIRRORS [--only TEXT] [--to DIR] [--limit SECONDS] [--jobs N] [--missed FILE] [--json FILE]

The fixes stand in fixes.toml, without code. MIRRORS holds clones with their history, bare or not, as OWNER/NAME, OWNER+NAME or NAME. Of
each fix, the file in question is read out of the clone before and after, with what it includes or imports from the same repository, and,
where the project decides, with the files around these; into a folder of its own. That folder is linted with all rules and no
configuration, within a time limit. Nothing of a repository is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

sys.path += [str(Path(__file__).parents[1]), str(Path(__file__).parent)]
from clones import Clone, clone_of, needed
from shares import share

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FIXES = Path(__file__).with_name("fixes.toml")
DEPTHS = ("function", "file", "project", "no")
NEARBY, DECIDABLE = DEPTHS[:2], DEPTHS[:3]
NEAR = 5
"""Lines between a finding, or a step of its trail, and the bug that it tells of."""
STILL = 1
"""Lines between a finding and the mended place for it to count as noise."""


class RecallError(Exception):
    """The recall cannot be measured; the message says why."""


@dataclass(frozen=True)
class Fix:
    """A commit that repairs a stream bug, and where the bug stood and stands no more."""

    repository: str
    commit: str
    date: str
    path: str
    before: tuple[int, ...]
    after: tuple[int, ...]
    rule: str
    decidable: str
    why: str
    beside: tuple[str, ...] = ()
    missed: str = ""
    """Why it is not reported, where that is known."""

    @property
    def name(self) -> str:
        return f"{self.repository}@{self.commit[:10]}:{self.path}"


@dataclass(frozen=True)
class Told:
    """A finding: its rule, its place, and the places of its trail."""

    code: str
    places: tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Lint:
    """The findings of one version; or why there are none."""

    findings: tuple[Told, ...] = ()
    failure: str = ""


@dataclass(frozen=True)
class Outcome:
    """What the linter said of a fix: of its bug before, and of the same place after."""

    fix: Fix
    found: bool = False
    silent: bool = False
    others: tuple[str, ...] = field(default=())
    failure: str = ""


def read_fixes(path: Path = FIXES) -> list[Fix]:
    """The fixes, checked, in the order of the file."""
    tables = tomllib.loads(path.read_text(encoding="utf-8")).get("fix", [])
    fixes = [_fix(table) for table in tables]
    seen = [(fix.commit, fix.path, fix.before, fix.rule) for fix in fixes]
    if twice := {key[0] for key in seen if seen.count(key) > 1}:
        raise RecallError(f"{path.name}: a place stands there twice: {', '.join(sorted(twice))}")
    return fixes


def _fix(table: Mapping[str, Any]) -> Fix:
    """One table of the file, checked."""
    name = f"{table.get('repository', '?')} {str(table.get('commit', '?'))[:10]}"
    try:
        values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
        fix = Fix(**values)
    except TypeError as error:
        raise RecallError(f"{FIXES.name}: {name}: {error}") from None
    wrong = [
        message
        for message, bad in (
            ("commit is no full SHA-1", not re.fullmatch(r"[0-9a-f]{40}", fix.commit)),
            ("rule is no code", not re.fullmatch(r"SL\d{3}", fix.rule)),
            (f"decidable is none of {', '.join(DEPTHS)}", fix.decidable not in DEPTHS),
            ("date is no day", not re.fullmatch(r"\d{4}-\d\d-\d\d", fix.date)),
            ("needs lines before and after", not fix.before or not fix.after),
            ("needs a reason", not fix.why.strip()),
        )
        if bad
    ]
    if wrong:
        raise RecallError(f"{FIXES.name}: {name}: {'; '.join(wrong)}")
    return fix


# What the linter says


def lint(clone: Clone, revision: str, fix: Fix, folder: Path, limit: float) -> Lint:
    """All findings on the file in question at a revision."""
    files = needed(clone, revision, fix)
    if fix.path not in files:
        return Lint(failure=f"{fix.path} is not in {revision}")
    for name, text in files.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text)
    command = [sys.executable, str(Path(__file__).resolve()), str(folder), "--child"]
    try:
        printed, errors = run(command, folder, limit)
    except subprocess.TimeoutExpired:
        return Lint(failure=f"more than {limit:g} s")
    try:
        return Lint(tuple(Told(told["code"], tuple((file, row) for file, row in told["places"])) for told in json.loads(printed)))
    except ValueError:
        return Lint(failure=(errors.strip().splitlines() or ["no output"])[-1])


def run(command: Sequence[str], folder: Path, limit: float) -> tuple[str, str]:
    """What a command prints. One that takes longer is ended with all that it has started.

    Raises:
        subprocess.TimeoutExpired: It took longer.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=folder, stdout=pipe, stderr=pipe, text=True, env=environment(), start_new_session=True) as process:
        try:
            return process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise


def child(folder: Path) -> None:
    """Lint a folder with all rules, whatever configuration stands around it, and print the places of its findings as JSON."""
    from streamlint.config.settings import Settings
    from streamlint.runner.linter import lint as look

    settings = replace(Settings.of(select=["ALL"]), root=folder, default_excludes=False, respect_gitignore=False)
    found = look([folder], settings).findings
    spans = [(finding.code, [finding.span, *(step.span for step in finding.trail)]) for finding in found]
    print(json.dumps([{"code": code, "places": [(span.file, span.row) for span in steps]} for code, steps in spans]))


@lru_cache(maxsize=1)
def environment() -> dict[str, str]:
    """The environment of the linter: this checkout's streamlint, wherever it is run."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def tells(told: Told, fix: Fix, folder: Path, near: int, lines: Iterable[int], trail: bool) -> bool:
    """Whether a finding stands, or a step of its trail, at one of the lines of the file in question."""
    ours = (folder / fix.path).resolve()
    stands = told.places[: None if trail else 1]
    return any((folder / name).resolve() == ours and abs(row - line) <= near for name, row in stands for line in lines)


def judge(fix: Fix, mirrors: Path, scratch: Path, limit: float) -> Outcome:
    """Lint both versions of a fix and compare."""
    clone = clone_of(fix.repository, mirrors)
    if clone is None:
        return Outcome(fix, failure="no clone")
    folders = [scratch / f"{fix.commit[:12]}-{fix.before[0]}" / version for version in ("before", "after")]
    old = lint(clone, f"{fix.commit}^", fix, folders[0], limit)
    new = lint(clone, fix.commit, fix, folders[1], limit)
    if failure := old.failure or new.failure:
        return Outcome(fix, failure=failure)
    told = [finding for finding in old.findings if tells(finding, fix, folders[0], NEAR, fix.before, trail=True)]
    noise = [finding for finding in new.findings if tells(finding, fix, folders[1], STILL, fix.after, trail=False)]
    return Outcome(
        fix,
        found=any(finding.code == fix.rule for finding in told),
        silent=not any(finding.code == fix.rule for finding in noise),
        others=tuple(sorted({finding.code for finding in told} - {fix.rule})),
    )


# What is printed


def rate(hits: int, of: int) -> str:
    """A share with its interval, as a cell of a table."""
    return f"{hits}/{of} {share(hits, of)}" if of else "-"


def table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Per rule: rows, found where function or file decide, found where the project may, silent after the repair, noise after it."""
    yield f"{'rule':6} {'fixes':>5}  {'found: function, file':24} {'found: project too':24} {'silent after':24} noise"
    rules = sorted({outcome.fix.rule for outcome in outcomes})
    for rule in [*rules, "all"]:
        rows = [outcome for outcome in outcomes if rule in (outcome.fix.rule, "all")]
        nearby, decidable = ([outcome for outcome in rows if outcome.fix.decidable in depths] for depths in (NEARBY, DECIDABLE))
        cells = (
            rate(sum(outcome.found for outcome in nearby), len(nearby)),
            rate(sum(outcome.found for outcome in decidable), len(decidable)),
            rate(sum(outcome.silent for outcome in rows), len(rows)),
        )
        noisy = sum(not outcome.silent for outcome in rows)
        yield f"{rule:6} {len(rows):5}  {cells[0]:24} {cells[1]:24} {cells[2]:24} {noisy}"
    for depth in DEPTHS:
        rows = [outcome for outcome in outcomes if outcome.fix.decidable == depth]
        yield f"decidable: {depth:9} {rate(sum(outcome.found for outcome in rows), len(rows))}"


def missed(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """The bugs that were not reported, nearest first, each with the reason that is recorded."""
    for outcome in sorted(outcomes, key=lambda one: DEPTHS.index(one.fix.decidable)):
        if not outcome.found:
            fix, lines = outcome.fix, ",".join(map(str, outcome.fix.before))
            seen = f" (reported as {', '.join(outcome.others)})" if outcome.others else ""
            yield f"{fix.rule} {fix.decidable:8} {fix.name}:{lines}{seen}: {fix.why}{fix.missed and f' Missed: {fix.missed}'}"


def noisy(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """The places that are still reported after their repair."""
    for outcome in outcomes:
        if not outcome.silent:
            yield f"{outcome.fix.rule} {outcome.fix.name}:{','.join(map(str, outcome.fix.after))}"


def report(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Everything, as lines."""
    judged = [outcome for outcome in outcomes if not outcome.failure]
    yield from table(judged)
    for title, lines in (("missed", list(missed(judged))), ("noise after the repair", list(noisy(judged)))):
        yield f"\n{title}: {len(lines)}"
        yield from lines
    if failed := [outcome for outcome in outcomes if outcome.failure]:
        yield f"\nnot measured: {len(failed)}"
        yield from (f"{outcome.fix.name}: {outcome.failure}" for outcome in failed)


def measure(fixes: Sequence[Fix], mirrors: Path, scratch: Path, limit: float, jobs: int) -> list[Outcome]:
    """The outcome of each fix, in their order."""
    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(lambda fix: judge(fix, mirrors, scratch, limit), fixes))


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Recall on real fixes of stream bugs.")
    parser.add_argument("mirrors", type=Path, metavar="MIRRORS", help="folder of clones")
    parser.add_argument("--fixes", type=Path, default=FIXES, help="the record (default: fixes.toml beside this script)")
    parser.add_argument("--only", default="", metavar="TEXT", help="fixes whose repository, commit, path or rule holds the text")
    parser.add_argument("--to", type=Path, metavar="DIR", help="keep the versions there (default: a folder that is removed)")
    parser.add_argument("--limit", type=float, default=120, metavar="SECONDS", help="for one version of a file")
    parser.add_argument("--jobs", type=int, default=1, metavar="N")
    parser.add_argument("--missed", type=Path, metavar="FILE", help="write the list of missed bugs there, too")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the outcomes there, too")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.child:
        child(options.mirrors)
        return 0
    try:
        fixes = [fix for fix in read_fixes(options.fixes) if options.only in f"{fix.repository}@{fix.commit}:{fix.path} {fix.rule}"]
    except (RecallError, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        outcomes = measure(fixes, options.mirrors, (options.to or Path(folder)).resolve(), options.limit, options.jobs)
    print("\n".join(report(outcomes)))
    if options.missed:
        options.missed.write_text("".join(f"{line}\n" for line in missed(outcomes)), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([asdict(outcome) for outcome in outcomes], indent=1), encoding="utf-8")
    return 1 if any(outcome.failure for outcome in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
