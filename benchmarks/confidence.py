"""The points behind `--confidence`: what findings rest on, fitted to what readers said of them, and held against other packages.

    python benchmarks/confidence.py collect --seed N --report FILE   # keep the grounds of the judged findings of a draw
    python benchmarks/confidence.py fit                              # write streamlint/findings/confidence.json
    python benchmarks/confidence.py show                             # how it does on draws that it was not fitted on
    python benchmarks/confidence.py fit --check                      # write nothing; exit 1 if the table is not what the grounds give

A report is what `first_sight.py lint` writes: the findings of each tree, as the linter told them when they were judged, with their
grounds (of a linter that tells none, with `streamlint/facts/graph/grounds.py` added). The points are fitted by logistic regression with a
penalty and with the signs that the terms must have. What a rule ever told of the ledger's packages is known beforehand: its log-odds are
a term. What they are worth is shown on each draw by points that were fitted on the other draws alone: findings of one draw share packages
and a linter.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import first_sight
import ledger
from shares import share

from streamlint.findings import LEVELS
from streamlint.findings.confidence import level_of, terms
from streamlint.findings.grounds import Grounds

ROOT = Path(__file__).resolve().parents[1]
ROWS = Path(__file__).parent / "precision" / "grounds.json"
TABLE = ROOT / "streamlint" / "findings" / "confidence.json"
LATER: tuple[int, ...] = (20261179, 20261181, 20261183, 20261185, 20261187, 20261189, 20261191)
"""Draws that were judged after the points were fitted: they are shown apart, and not fitted on."""
PENALTY = 2.0
"""On the square of the points; there is none on those that all findings get."""
RECORD = "record"
"""The term of a rule's own record in the ledger; its points become points of the rules."""
WORSE = ("behind_wait",)
BETTER = ("loss", "loops", RECORD)
"""Terms whose points must not be positive, and those whose points must not be negative."""
MEANS = {
    "any": "each finding",
    "loss": "what is read is the loss",
    "loops": "a loop around the place in its function, each of up to two",
    "behind_wait": "the nearest known call before it waits for the device",
    "cpp": "C++",
}
ROUNDS = 200
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.01)


@dataclass(frozen=True)
class Row:
    """A judged finding: what gives it points, and whether it is real."""

    package: str
    code: str
    terms: Mapping[str, float]
    is_real: bool


Shown = tuple[float, bool]
"""A judged finding: the chance that it is given, and whether it is real."""


# Collect


def collect(seed: int, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The grounds of the judged findings of a draw, as the report tells them."""
    told = {(one["filename"], one["location"]["row"], one["fingerprint"]): one for tree in report.values() for one in tree["findings"]}
    found = []
    for _, one in judged([seed]):
        known = told.get((one.file, one.row, one.fingerprint))
        if known is not None:
            facts = {name: value for name, value in known["facts"].items() if name in ("what", "origin", "kind")}
            key = {"draw": seed, "package": one.package, "fingerprint": one.fingerprint, "code": one.code}
            found.append({**key, "facts": facts, "grounds": known["grounds"]})
    return found


def judged(draws: Iterable[int]) -> Iterator[tuple[int, first_sight.Finding]]:
    """All judged findings of some draws, each with its draw."""
    for draw in draws:
        yield from ((draw, one) for one in first_sight.read(first_sight.FOLDER / f"{draw}.toml") if one.judged)


def kept() -> list[dict[str, Any]]:
    """What is kept of judged findings."""
    return list(json.loads(ROWS.read_text(encoding="utf-8"))) if ROWS.exists() else []


def of_fit() -> list[dict[str, Any]]:
    """What is kept of the draws that are fitted on and shown by halves."""
    return [one for one in kept() if one["draw"] not in LATER]


def later(draw: int) -> list[Row]:
    """The judged findings of a later draw whose grounds are kept."""
    return rows([one for one in kept() if one["draw"] == draw])


def rows(mine: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Judged findings of which this is kept."""
    known = records()
    said = {(draw, one.package, one.fingerprint): one.entry.verdict for draw, one in judged(_draws(mine))}
    found = []
    for one in mine:
        grounds = Grounds(**one["grounds"]) if one["grounds"] is not None else None
        is_real = said[one["draw"], one["package"], one["fingerprint"]] == "real"
        given = terms(one["code"], one["facts"], grounds)
        found.append(Row(one["package"], one["code"], {**given, RECORD: known.get(one["code"], 0.0)}, is_real))
    return found


def records() -> dict[str, float]:
    """By rule: the log-odds that what it ever told of the ledger's packages was real, as if one more had been real and one more not."""
    entries = [entry for package in ledger.read() for entry in package.findings if entry.judged]
    counts = {rule: ledger.tally(entry for entry in entries if entry.rule == rule) for rule in {entry.rule for entry in entries}}
    return {rule: math.log((count.real + 1) / (count.judged - count.real + 1)) for rule, count in sorted(counts.items())}


def _draws(mine: Iterable[Mapping[str, Any]]) -> list[int]:
    return sorted({int(one["draw"]) for one in mine})


# Fit


def folds() -> Iterator[tuple[int, list[Row], dict[str, float]]]:
    """Each draw that is fitted on, with its judged findings and the points that the other draws give."""
    found = of_fit()
    for draw in _draws(found):
        inside, others = (rows([one for one in found if (one["draw"] == draw) is is_own]) for is_own in (True, False))
        yield draw, inside, fit(others)


def left_out() -> list[Shown]:
    """All judged findings of the draws that are fitted on, each with the chance that the other draws give it."""
    return [(chance(points, one), one.is_real) for _, found, points in folds() for one in found]


def fit(found: Sequence[Row]) -> dict[str, float]:
    """Points by term: one term after the other is moved to its best, until nothing moves."""
    names = sorted({name for one in found for name in one.terms})
    points = dict.fromkeys(names, 0.0)
    for _ in range(ROUNDS):
        for name in names:
            points[name] = _moved(name, points, found)
    factor = points.pop(RECORD, 0.0)
    for rule, odds in records().items():
        points[rule] = points.get(rule, 0.0) + factor * odds
    return {name: rounded for name, value in sorted(points.items()) if (rounded := round(value, 2))}


def _moved(name: str, points: Mapping[str, float], found: Sequence[Row]) -> float:
    """The points of a term after a step of Newton's method, within what its sign may be."""
    penalty = 0.0 if name == "any" else PENALTY
    slope, curve = -penalty * points[name], penalty + 1e-9
    for one in found:
        if value := one.terms.get(name, 0.0):
            expected = chance(points, one)
            slope += value * (one.is_real - expected)
            curve += value * value * expected * (1 - expected)
    moved = points[name] + slope / curve
    return min(moved, 0.0) if name in WORSE else max(moved, 0.0) if name in BETTER else moved


def chance(points: Mapping[str, float], row: Row) -> float:
    """The share of such findings that is expected to be real."""
    return 1 / (1 + math.exp(-sum(points.get(name, 0.0) * value for name, value in row.terms.items())))


def table() -> dict[str, Any]:
    """What `confidence.json` holds."""
    fitted, draws = rows(of_fit()), _draws(of_fit())
    dates = [judgment.date for _, one in judged(draws) for judgment in one.judged]
    return {
        "source": f"benchmarks/precision/first_sight, draws {', '.join(map(str, draws))}",
        "date": max(dates),
        "findings": len(fitted),
        "packages": len({one.package for one in fitted}),
        "points": fit(fitted),
    }


def written() -> str:
    """The text of the table."""
    return json.dumps(table(), indent=1) + "\n"


# Show


def shown_by(points: Mapping[str, float], found: Iterable[Row]) -> list[Shown]:
    """Judged findings, each with the chance that points give it."""
    return [(chance(points, one), one.is_real) for one in found]


def area(found: Sequence[Shown]) -> float:
    """The chance that a real finding is given more than one that is not (AUC); half for equal ones."""
    real, others = ([given for given, is_real in found if is_real is which] for which in (True, False))
    wins = sum((one > other) + 0.5 * (one == other) for one in real for other in others)
    return wins / (len(real) * len(others)) if real and others else 0.5


def bins(found: Sequence[Shown]) -> Iterator[tuple[float, int, int]]:
    """Of findings whose chances lie together: the share that is expected to be real, how many there are, and how many are real."""
    for low, high in itertools.pairwise(BINS):
        inside = [one for one in found if low <= one[0] < high]
        if inside:
            yield sum(given for given, _ in inside) / len(inside), len(inside), sum(is_real for _, is_real in inside)


def stored() -> dict[str, float]:
    """The points that are in force."""
    return dict(json.loads(TABLE.read_text(encoding="utf-8"))["points"])


def section() -> Iterator[str]:
    """What docs/accuracy.md says of it."""
    points, fitted, shown = stored(), rows(of_fit()), left_out()
    yield "![Expected and real share of findings, by confidence](images/confidence.svg)"
    yield (
        f"What `--confidence` goes by was fitted to {len(fitted)} judged findings in {_packages(fitted)} public repositories "
        f"({_real(shown)} real) of {len(_draws(of_fit()))} draws. Here each draw is shown by points that were fitted on the other draws "
        f"alone: a real finding has more points than a wrong one in {100 * area(shown):.0f} of 100 pairs (AUC); in the draws one by one "
        f"in {', '.join(f'{100 * area(shown_by(given, found)):.0f}' for _, found, given in folds())}. Where a draw has findings of one "
        "kind in few repositories, the points say little."
    )
    yield "\n".join(_level_table(shown))
    yield "\n".join(_bin_table(shown))
    for draw in LATER:
        new = later(draw)
        told = shown_by(points, new)
        yield (
            f"A draw that was judged after the points were fitted (seed {draw}; {len(new)} findings in {_packages(new)} repositories, "
            f"{_real(told)} real, those apart that were mended at once): {100 * area(told):.0f} of 100 pairs."
        )
        yield "\n".join(_level_table(told))
    yield (
        "The points of a finding are added; what is expected is 1 / (1 + exp(-sum)). A rule's points rest on what it ever told of the "
        "ledger's packages and of the draws; a rule without points has no judged finding, and gets what all get:"
    )
    yield "\n".join(_point_table(points))
    yield (
        "More is counted and kept for the next fit, but made nothing better on the draw that was left out: calls "
        "and files on the way, branches that decide whether the place runs, unknown calls around it, whether the program makes the object, "
        "leads to the place or puts the value on a device itself, further places, and what each round does."
    )


def _packages(found: Sequence[Row]) -> int:
    return len({one.package for one in found})


def _real(found: Sequence[Shown]) -> int:
    return sum(is_real for _, is_real in found)


def _level_table(found: Sequence[Shown]) -> Iterator[str]:
    yield from ("| confidence | findings | real | share |", "| --- | ---: | ---: | --- |")
    for name in reversed(LEVELS):
        inside = [one for one in found if level_of(one[0]) == name]
        yield f"| {name} | {len(inside)} | {_real(inside)} | {share(_real(inside), len(inside))} |"


def _bin_table(found: Sequence[Shown]) -> Iterator[str]:
    yield from ("| expected | findings | real | share |", "| --- | ---: | ---: | --- |")
    for mean, told, real in bins(found):
        yield f"| {100 * mean:.0f} % | {told} | {real} | {share(real, told)} |"


def _point_table(points: Mapping[str, float]) -> Iterator[str]:
    yield from ("| what | points |", "| --- | ---: |")
    for name, value in sorted(points.items(), key=lambda one: (one[0] != "any", one[0][:2] == "SL", one[0])):
        yield f"| {MEANS.get(name, f'rule {name}')} | {value:+.2f} |"


def show() -> Iterator[str]:
    """How the points do on each draw, and on all of them together."""
    points = stored()
    parts = [(str(draw), shown_by(given, found)) for draw, found, given in folds()]
    parts += [("each by the others", left_out()), *((f"{draw}, later", shown_by(points, later(draw))) for draw in LATER)]
    for name, found in parts:
        yield f"{name}: {len(found)} findings, {_real(found)} real, AUC {area(found):.2f}"
        yield from _level_table(found)
        yield from _bin_table(found)


def main(words: Sequence[str] | None = None) -> int:
    """Run a command; 1 where the table is not what the grounds give."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    collecting, fitting, _ = (commands.add_parser(name) for name in ("collect", "fit", "show"))
    collecting.add_argument("--seed", type=int, required=True, metavar="N")
    collecting.add_argument("--report", type=Path, required=True, metavar="FILE")
    fitting.add_argument("--check", action="store_true")
    return ledger.status(run, parser.parse_args(words))


def run(options: argparse.Namespace) -> int:
    """One command."""
    if options.command == "show":
        print("\n".join(show()))
        return 0
    if options.command == "fit":
        if options.check:
            return int(TABLE.read_text(encoding="utf-8") != written())
        TABLE.write_text(written(), encoding="utf-8")
        return 0
    found = collect(options.seed, json.loads(options.report.read_text(encoding="utf-8")))
    rest = [one for one in kept() if one["draw"] != options.seed]
    lines = (json.dumps(one) for one in sorted([*rest, *found], key=lambda one: (one["draw"], one["package"], one["fingerprint"])))
    ROWS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    print(f"{len(found)} judged findings with their grounds")
    return 0


if __name__ == "__main__":
    sys.exit(main())
