"""The page on accuracy, from the ledger and the record of recall.

python benchmarks/accuracy.py             write docs/accuracy.md and its pictures, docs/accuracy-ledger.md, and
                                          streamlint/findings/accuracy.json for the rules' pages
python benchmarks/accuracy.py --check     write nothing; exit 1 if one of them is not what the records give
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import accuracy_picture
import confidence
import confidence_picture
import first_sight
import ledger
from shares import share

ROOT = Path(__file__).resolve().parents[1]
PAGE, DETAILS = ROOT / "docs" / "accuracy.md", ROOT / "docs" / "accuracy-ledger.md"
PICTURE, DATA = ROOT / "docs" / "images" / "first-sight.svg", ROOT / "streamlint" / "findings" / "accuracy.json"
RELIABILITY = ROOT / "docs" / "images" / "confidence.svg"
RECALL = Path(__file__).parent / "recall" / "outcomes.json"
SIGHTS = Path(__file__).parent / "precision" / "first_sight.toml"
REPOSITORIES = SIGHTS.with_suffix("")
LANGUAGES = ("Python", "C++")
NEARBY, DECIDABLE = ("function", "file"), ("function", "file", "project")

HEAD = """\
# Accuracy

Written by `python benchmarks/accuracy.py` from `benchmarks/precision` and `benchmarks/recall`; do not edit."""
MEANING = """\
![The share of default findings that were real in each draw of packages that nobody had looked at](images/first-sight.svg)

**Precision** is the share of default findings on released packages that are real: the hazard exists at that place on released
hardware, the message says it rightly, and the author would want to know. Readers who had not written the rules judged from the code.
What is unclear counts as wrong. **Recall** is the share of stream bugs, repaired in public histories, that are reported in the version
before the repair. Brackets hold 95 % Wilson intervals. [The ledger](accuracy-ledger.md) lists each wrong finding, each missed repair,
the draws and the packages."""
DETAILS_HEAD = """\
# The ledger of accuracy

Written by `python benchmarks/accuracy.py`; do not edit. What the figures on [accuracy](accuracy.md) are made of."""

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


def result(packages: Sequence[ledger.Package], outcomes: Sequence[Mapping[str, Any]], draws: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The three figures that matter, a line each."""
    if counted := [draw for draw in draws if "told" in draw]:
        told, real = (sum(one[key] for one in counted) for key in ("told", "real"))
        last = counted[-1]
        yield (
            f"* **On a package that nobody has looked at**, {100 * real / told:.0f} % of the default findings are real "
            f"({real} of {told}, {len(counted)} draws of {sum(len(one['drawn']) for one in counted)} packages); "
            f"in the last draw {share(last['real'], last['told'])}."
        )
    count = ledger.tally(entry for package in packages for entry in package.standing)
    yield f"* **On the {len(packages)} packages that it was mended on**, {share(count.real, count.judged)} are."
    measured = [row for row in outcomes if not row["failure"]]
    if near := [row for row in measured if row["fix"]["decidable"] in NEARBY]:
        hits, all_hits = sum(row["found"] for row in near), sum(row["found"] for row in measured)
        yield (
            f"* **Of {len(measured)} bugs that people repaired**, it reports {share(all_hits, len(measured))} in the version before; "
            f"where a function or file decides, {share(hits, len(near))}."
        )


def at_first_sight(
    packages: Sequence[ledger.Package], sights: Sequence[Mapping[str, Any]], draws: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """The share that was real of what was told of packages at which nobody had looked before, and what readers marked there."""
    entries = {entry.fingerprint: entry for package in packages for entry in package.findings}
    for sight in sights:
        count = ledger.tally(entries[mark] for mark in sight["findings"])
        told = f"{count.judged} default findings, {count.real} of them real ({share(count.real, count.judged)})"
        yield f"{len(sight['packages'])} packages that nobody had looked at were linted on {sight['date']}: {told}."
    counted = [draw for draw in draws if "told" in draw]
    if counted:
        drawn = sum(len(one["drawn"]) for one in counted)
        told, real = (sum(one[key] for one in counted) for key in ("told", "real"))
        twice = sum(one.get("readers") == 2 for one in counted)
        yield (
            f"Since then {drawn} packages in {len(counted)} draws by a seed were linted before anything was mended on what they show, and "
            f"judged by one reader, those of {twice} draws by two: {told} default findings, {real} of them real ({share(real, told)})."
        )
    if marked := [draw for draw in draws if "marked" in draw]:
        found, of = (sum(draw[key] for draw in marked) for key in ("found", "marked"))
        yield (
            f"Of {len(marked)} draws readers who saw no finding read some packages and marked what they were sure is a defect: "
            f"{found} of {of} marks are told ({share(found, of)}). They were not told what the rules cover, but in the last draws; "
            f"by what the rules document, {_scoped(marked)}."
        )


def of_repositories(folder: Path) -> Iterator[str]:
    """The same of public repositories, whose findings are kept one by one."""
    for path in sorted(folder.glob("*.toml")):
        judged = [one for one in first_sight.read(path) if one.judged]
        count = ledger.tally(one.entry for one in judged)
        by_rule = {code: ledger.tally(one.entry for one in judged if one.code == code) for code in sorted({one.code for one in judged})}
        rules = ", ".join(f"{code} {one.real} of {one.judged}" for code, one in by_rule.items())
        places = len({one.package for one in judged})
        yield (
            f"Public repositories are another population than packages, with more experiments and copies. Of {count.judged} findings in "
            f"{places} of them (seed {path.stem}; at most six findings of each, drawn by the seed) {count.real} are real for both readers "
            f"({share(count.real, count.judged)}): {rules}. They are not among the figures above."
        )


def _scoped(draws: Sequence[Mapping[str, Any]]) -> str:
    """How many of the marks that are the rules' own are told, by default and on request."""
    scopes = [draw["scope"] for draw in draws if "scope" in draw]
    default, wide = ([sum(scope[name][place] for scope in scopes) for place in (0, 1)] for name in ("default", "all-loops"))
    return (
        f"{share(*default)} of {default[1]} marks that are theirs by default are told, and {share(*wide)} of {wide[1]} that are theirs "
        f'with `hidden-sync = "all-loops"`'
    )


def drawn(draws: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The draws, a row each."""
    yield "| seed | date | packages | findings | real | readers | packages read for recall | marked as sure | told |"
    yield "| --- | --- | ---: | ---: | --- | ---: | ---: | ---: | --- |"
    for draw in draws:
        real = f"{draw['real']} {share(draw['real'], draw['told'])}" if "told" in draw else ""
        marked = (
            (draw["read"], draw["marked"], f"{draw['found']} {share(draw['found'], draw['marked'])}") if "marked" in draw else ("", "", "")
        )
        cells = (draw["seed"], draw["date"], len(draw["drawn"]), draw.get("told", ""), real, draw.get("readers", 1), *marked)
        yield "| " + " | ".join(map(str, cells)) + " |"


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
    repositories: Path | None = None,
) -> str:
    """The page that opens with the result."""
    sizes = f"{len(packages)} packages, {sum(p.files for p in packages):,} files, {sum(p.lines for p in packages):,} lines."
    unread = sum(not entry.judged for package in packages for entry in package.standing)
    left = f" {unread} findings have not been judged yet." if unread else ""
    parts = [HEAD, "\n".join(result(packages, outcomes, draws)), MEANING]
    parts += ["## At first sight", *at_first_sight(packages, sights, draws)]
    parts += of_repositories(repositories) if repositories is not None else ()
    parts += ["## Confidence", *confidence.section()] if repositories is not None else ()
    parts += ["## Precision by rule", f"{sizes}{left} {readers(packages)}", "\n".join(tables(packages)), ever_told(packages)]
    if outcomes:
        parts += ["## Recall of public repairs", "\n".join(recall(outcomes)), RECALL_NOTE]
    parts += ["## What may be on by default", RULE, "\n".join(defaults(packages)), REPEAT]
    return "\n\n".join(parts) + "\n"


def details(packages: Sequence[ledger.Package], outcomes: Sequence[Mapping[str, Any]], draws: Sequence[Mapping[str, Any]] = ()) -> str:
    """The page that lists what the figures are made of."""
    parts = [DETAILS_HEAD, "## The draws", "\n".join(drawn(draws)), "## Wrong findings"]
    parts += ["Findings that are not real, or of which nobody can say:", "\n".join(wrong(packages)) or "None."]
    if outcomes:
        parts += [
            "## Missed repairs",
            "Not found before the repair, with how far one must look and why:",
            "\n".join(missed(outcomes)) or "None.",
        ]
        if failed := [f"`{row['fix']['path']}` of {row['fix']['repository']} ({row['failure']})" for row in outcomes if row["failure"]]:
            parts += [f"Not measured, and not counted: {'; '.join(failed)}."]
    parts += ["## The packages", "\n".join(projects(packages))]
    parts += ["## Mended", "Judged, and told no longer:", "\n".join(mended(packages)) or "None."]
    return "\n\n".join(parts) + "\n"


RULE = f"""\
A rule with at least {ledger.ENOUGH} judged findings is to be on by default only where the one-sided lower 90 % bound of its precision is
above {ledger.BOUND}; one with fewer, while at most one was wrong."""
RECALL_NOTE = """\
Each fix is a commit of a public repository with the lines of the bug and of its repair; how far one must look to decide it was
recorded before the linter was run. Of what a project decides, up to 100 files around the bug were at hand here; since 2026-11-30 up to
1,000, which is the whole of most projects, and two bugs were found by it that were missed before. The others were not measured anew.

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
    """Write them, or check them."""
    parser = argparse.ArgumentParser(description="The page on accuracy.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is not what the records give")
    options = parser.parse_args(words)
    packages = ledger.read()
    outcomes = json.loads(RECALL.read_text(encoding="utf-8")) if RECALL.is_file() else []
    seen = ledger.tomllib.loads(SIGHTS.read_text(encoding="utf-8")) if SIGHTS.is_file() else {}
    sights, draws = seen.get("sight", []), seen.get("draw", [])
    wanted = {
        PAGE: page(packages, outcomes, sights, draws, REPOSITORIES),
        DETAILS: details(packages, outcomes, draws),
        PICTURE: accuracy_picture.picture(draws),
        RELIABILITY: confidence_picture.picture(list(confidence.bins(confidence.left_out()))),
        DATA: json.dumps(data(packages), indent=1) + "\n",
    }
    stale = [path for path, text in wanted.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    for path in stale:
        if options.check:
            print(f"{path.name} is not what the records give; run: python benchmarks/accuracy.py", file=sys.stderr)
        else:
            path.write_text(wanted[path], encoding="utf-8")
    return 1 if options.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
