"""The page on accuracy, from the ledger and the record of recall.

python benchmarks/accuracy.py             write docs/accuracy.md, and streamlint/findings/accuracy.json for the rules' pages
python benchmarks/accuracy.py --check     write nothing; exit 1 if either is not what the records give
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import ledger
from shares import share

ROOT = Path(__file__).resolve().parents[1]
PAGE, DATA = ROOT / "docs" / "accuracy.md", ROOT / "streamlint" / "findings" / "accuracy.json"
RECALL = Path(__file__).parent / "recall" / "outcomes.json"
SIGHTS = Path(__file__).parent / "precision" / "first_sight.toml"
LANGUAGES = ("Python", "C++")
NEARBY, DECIDABLE = ("function", "file"), ("function", "file", "project")

INTRODUCTION = """\
# Accuracy

Written by `python benchmarks/accuracy.py` from `benchmarks/precision/ledger` and `benchmarks/recall`; do not edit.

**Precision** is the share of default findings on released packages that are real: the hazard exists at that place on released
hardware, the message says it rightly, and the author would want to know. Readers who had not written the rules judged from the code.
What is unclear counts as wrong. **Recall** is the share of stream bugs, repaired in public histories, that are reported in the version
before the repair. Brackets hold 95 % Wilson intervals."""

REPEAT = """\
## How to repeat it

```console
$ python -m pip install -e '.[dev]'
$ python benchmarks/precision.py                    # fetches the pinned packages, lints them, holds the findings against the ledger
$ python benchmarks/recall/measure.py MIRRORS --json benchmarks/recall/outcomes.json
$ python benchmarks/accuracy.py
```

`benchmarks/README.md` says how a finding is judged and how a second reader adds to it."""


def tables(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """Precision by rule and language."""
    entries = [entry for package in packages for entry in package.standing]
    yield "| rule | findings | judged | real | not real | unclear | precision | Python | C++ |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | --- | --- | --- |"
    for rule in [*sorted({entry.rule for entry in entries}), "all"]:
        held = [entry for entry in entries if rule in (entry.rule, "all")]
        count = ledger.tally(held)
        parts = [ledger.tally(entry for entry in held if entry.language == language) for language in LANGUAGES]
        shares = [f"{part.real}/{part.judged} {share(part.real, part.judged)}" if part.judged else "" for part in parts]
        cells = [rule, len(held), count.judged, count.real, count.false, count.unclear, share(count.real, count.judged), *shares]
        yield "| " + " | ".join(map(str, cells)) + " |"


def ever_told(packages: Sequence[ledger.Package]) -> str:
    """The share of all that was ever told by default and judged: the linter was mended on what these packages showed."""
    count = ledger.tally(entry for package in packages for entry in package.findings)
    return (
        "The linter was mended on what these packages showed, so that the table flatters it on others. Of all default findings that were "
        f"ever told of them and judged, those that are told no longer among them, {count.real} of {count.judged} were real "
        f"({share(count.real, count.judged)}): a package that nobody has looked at lies between the two."
    )


def at_first_sight(
    packages: Sequence[ledger.Package], sights: Sequence[Mapping[str, Any]], draws: Sequence[Mapping[str, Any]] = ()
) -> Iterator[str]:
    """The share that was real of what was told of packages at which nobody had looked before."""
    entries = {entry.fingerprint: entry for package in packages for entry in package.findings}
    for sight in sights:
        count = ledger.tally(entries[mark] for mark in sight["findings"])
        told = f"{count.judged} default findings, {count.real} of them real ({share(count.real, count.judged)})"
        yield f"**At first sight**: {len(sight['packages'])} packages that nobody had looked at, linted on {sight['date']}: {told}."
    counted = [draw for draw in draws if "told" in draw]
    if counted:
        drawn = sum(len(one["drawn"]) for one in counted)
        told, real = (sum(one[key] for one in counted) for key in ("told", "real"))
        twice = sum(one.get("readers") == 2 for one in counted)
        each = ", ".join(f"{one['real']} of {one['told']}" for one in counted)
        yield (
            f"Since then {drawn} packages in {len(counted)} draws by a seed, linted before anything was mended on what they show "
            f"and judged by one reader, those of {twice} draws by two: {told} default findings, {real} of them real "
            f"({share(real, told)}; {each})."
        )
    yield from (marks(draw) for draw in draws if "marked" in draw)


def marks(draw: Mapping[str, Any]) -> str:
    """What readers marked who saw no finding, and how much of it is told; where it was counted, by the scope that the rules document."""
    said = (
        f"Of the draw with seed {draw['seed']} readers who saw no finding read {draw['read']} packages and marked "
        f"{draw['marked']} defects as sure: {draw['found']} of them are told ({share(draw['found'], draw['marked'])})."
    )
    if "scope" in draw:
        (told, default), (wide, all_loops) = draw["scope"]["default"], draw["scope"]["all-loops"]
        said += (
            f" By what the rules document, {default} of the marks are theirs by default, {told} are told ({share(told, default)}); "
            f'{all_loops} only with `hidden-sync = "all-loops"`, {wide} of which are told with it ({share(wide, all_loops)}); '
            f"{draw['scope']['outside']} are outside, such as reads in evaluation and blocking uploads."
        )
    return said


def defaults(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """What the rule about defaults says of each rule that has findings."""
    entries = [entry for package in packages for entry in package.standing]
    yield "| rule | judged | lower 90 % bound | may be on by default |"
    yield "| --- | ---: | ---: | --- |"
    for rule in sorted({entry.rule for entry in entries}):
        count = ledger.tally(entry for entry in entries if entry.rule == rule)
        few = f"few: {count.false + count.unclear} wrong" if count.judged < ledger.ENOUGH else ""
        answer = "yes" if ledger.may_be_on(count) else "**no**"
        yield f"| {rule} | {count.judged} | {few or f'{ledger.lower(count):.2f}'} | {answer} |"


def projects(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """The packages with what was found in each."""
    yield "| package | files | lines | findings | real | not real | unclear |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for package in packages:
        count = ledger.tally(package.standing)
        cells = [f"{package.name} {package.version}", package.files, package.lines, len(package.standing)]
        yield "| " + " | ".join(map(str, [*cells, count.real, count.false, count.unclear])) + " |"


def wrong(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """What is reported and should not be, with the reason."""
    for package in packages:
        for entry in package.standing:
            if entry.verdict in ("not real", "unclear"):
                reasons = dict.fromkeys(one.reason for one in entry.judged)
                yield f"* {entry.rule} {package.name} `{entry.path}:{entry.line}` ({entry.verdict}): {'; '.join(reasons)}"


def mended(packages: Sequence[ledger.Package]) -> Iterator[str]:
    """What was judged and is reported no longer."""
    for package in packages:
        for entry in package.findings:
            if entry.gone and entry.judged:
                yield f"* {entry.rule} {package.name} `{entry.path}:{entry.line}` ({entry.verdict}): {entry.judged[0].reason}"


def recall(outcomes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Recall by rule."""
    measured = [row for row in outcomes if not row["failure"]]
    yield "| rule | fixes | found: function or file decides | found: with the project's | silent after the repair |"
    yield "| --- | ---: | --- | --- | --- |"
    for rule in [*sorted({row["fix"]["rule"] for row in measured}), "all"]:
        rows = [row for row in measured if rule in (row["fix"]["rule"], "all")]
        cells = []
        for depths in (NEARBY, DECIDABLE):
            part = [row for row in rows if row["fix"]["decidable"] in depths]
            hits = sum(row["found"] for row in part)
            cells.append(f"{hits}/{len(part)} {share(hits, len(part))}" if part else "")
        silent = sum(row["silent"] for row in rows)
        yield f"| {rule} | {len(rows)} | {cells[0]} | {cells[1]} | {silent}/{len(rows)} {share(silent, len(rows))} |"


def missed(outcomes: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The repaired bugs that are not reported, nearest first, each with why that is so."""
    lost = [row for row in outcomes if not row["failure"] and not row["found"]]
    for row in sorted(lost, key=lambda row: [*DECIDABLE, "no"].index(row["fix"]["decidable"])):
        fix, seen = row["fix"], f", reported as {', '.join(row['others'])}" if row["others"] else ""
        lines = ",".join(map(str, fix["before"]))
        beyond = "What decides it stands in other files." if fix["decidable"] == "project" else "Not found out yet."
        reason = fix.get("missed") or beyond
        yield f"* {fix['rule']} {fix['repository']} {fix['commit'][:10]} `{fix['path']}:{lines}` ({fix['decidable']}{seen}): {reason}"


def readers(packages: Sequence[ledger.Package]) -> str:
    """Who judged how many."""
    count: dict[str, int] = {}
    for package in packages:
        for entry in package.findings:
            for judgment in entry.judged:
                count[judgment.reader] = count.get(judgment.reader, 0) + 1
    races = [entry for package in packages for entry in package.standing if entry.rule in ledger.RACES]
    alone = sum(len(entry.judged) < 2 for entry in races)
    told = ", ".join(f"{reader} {number}" for reader, number in sorted(count.items()))
    return f"Judgments by reader: {told}. Races ({', '.join(ledger.RACES)}) want two readers: {alone} of {len(races)} have one so far."


def page(
    packages: Sequence[ledger.Package],
    outcomes: Sequence[Mapping[str, Any]],
    sights: Sequence[Mapping[str, Any]] = (),
    draws: Sequence[Mapping[str, Any]] = (),
) -> str:
    """The whole page."""
    sizes = f"{len(packages)} packages, {sum(p.files for p in packages):,} files, {sum(p.lines for p in packages):,} lines."
    unread = sum(not entry.judged for package in packages for entry in package.standing)
    left = f" {unread} findings have not been judged yet." if unread else ""
    parts = [INTRODUCTION, "## Precision", f"{sizes}{left} {readers(packages)}", "\n".join(tables(packages)), ever_told(packages)]
    parts += at_first_sight(packages, sights, draws)
    parts += ["## What may be on by default", RULE, "\n".join(defaults(packages))]
    if outcomes:
        parts += ["## Recall", "\n".join(recall(outcomes)), RECALL_NOTE]
        if failed := [f"`{row['fix']['path']}` of {row['fix']['repository']} ({row['failure']})" for row in outcomes if row["failure"]]:
            parts += [f"Not measured, and not counted: {'; '.join(failed)}."]
        parts += ["Not found before the repair, with how far one must look and why:", "\n".join(missed(outcomes)) or "None."]
    parts += ["## Known limits", "Findings that are not real, or of which nobody can say:", "\n".join(wrong(packages)) or "None."]
    parts += ["Judged, and mended since:", "\n".join(mended(packages)) or "None."]
    parts += ["## The packages", "\n".join(projects(packages)), REPEAT]
    return "\n\n".join(parts) + "\n"


RULE = f"""\
A rule with at least {ledger.ENOUGH} judged findings is to be on by default only where the one-sided lower 90 % bound of its precision is
above {ledger.BOUND}; one with fewer, while at most one was wrong."""
RECALL_NOTE = """\
Each fix is a commit of a public repository with the lines of the bug and of its repair; how far one must look to decide it was
recorded before the linter was run. Of what a project decides, only the file and what it includes or imports was at hand here.

**At first sight**: 27 of them were added on 2026-11-28 and linted before anything was mended on what they show: 13 found (7 of 12 where
a function or a file decides, 5 of 12 where the project does, 1 of 3 that nothing at hand decides)."""


def data(packages: Sequence[ledger.Package]) -> dict[str, dict[str, int]]:
    """What the rules' pages tell: counts by rule."""
    entries = [entry for package in packages for entry in package.standing if entry.judged]
    found = {}
    for rule in sorted({entry.rule for entry in entries}):
        count = ledger.tally(entry for entry in entries if entry.rule == rule)
        found[rule] = {"judged": count.judged, "real": count.real, "not_real": count.false, "unclear": count.unclear}
    return found


def main(words: Sequence[str] | None = None) -> int:
    """Write both, or check them."""
    parser = argparse.ArgumentParser(description="The page on accuracy.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if either file is not what the records give")
    options = parser.parse_args(words)
    packages = ledger.read()
    outcomes = json.loads(RECALL.read_text(encoding="utf-8")) if RECALL.is_file() else []
    seen = ledger.tomllib.loads(SIGHTS.read_text(encoding="utf-8")) if SIGHTS.is_file() else {}
    told = page(packages, outcomes, seen.get("sight", []), seen.get("draw", []))
    wanted = {PAGE: told, DATA: json.dumps(data(packages), indent=1) + "\n"}
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if options.check:
            print(f"{path.name} is not what the records give; run: python benchmarks/accuracy.py", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
