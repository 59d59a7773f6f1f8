"""Run streamlint over the corpus: what it read and understood, what it reports, and how long it took.

    python benchmarks/coverage.py [--corpus DIR] [NAME…]               measure, update coverage.json, print a table
    python benchmarks/coverage.py --compare                            measure, and hold the result against coverage.json
    python benchmarks/coverage.py --sample 5 --seed 1                  print findings with their surroundings, to be judged by hand

`--compare` writes nothing. It exits 1 when the share of launches whose stream is known, or of copies whose memory is known, fell by
more than half a percentage point in a package, or when a crash appeared. Packages are those of corpus.toml; corpus.py fetches them.
Each package is linted in its own process with the default rules, so that one crash spoils one row only.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corpus import CorpusError, Pin, choose, default_folder, read_pins

if TYPE_CHECKING:
    from streamlint.findings import Report

RECORD = Path(__file__).with_name("coverage.json")
TOLERANCE = 0.005
"""By how much a share may fall: half a percentage point."""
OPAQUE = 10
"""How many opaque calls are kept for a package."""
CONTEXT = 12
"""Source lines shown for a sampled finding, its own included."""


@dataclass
class Row:
    """What one package gave. `crashes` holds failures inside of the run as well as the run's own end."""

    files: int = 0
    relevant: int = 0
    problems: int = 0
    findings: dict[str, int] = field(default_factory=dict)
    functions: int = 0
    operations: int = 0
    over_budget: int = 0
    launches: int = 0
    launches_known: int = 0
    copies: int = 0
    copies_known: int = 0
    opaque: list[tuple[str, int]] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def died(self) -> bool:
        """Whether the run itself ended in a crash, so that the figures say nothing."""
        return bool(self.crashes) and not self.files


@dataclass(frozen=True, order=True)
class Place:
    """A finding, as far as judging it by hand needs it. `file` is relative to the package's tree."""

    package: str
    file: str
    line: int
    code: str
    message: str


Result = tuple[Row, list[Place]]


# In the child: lint one tree


def lint_tree(tree: Path) -> Report:
    """The linter's report on a tree, coverage included, whatever configuration stands around it."""
    from streamlint.config.settings import Resolver, Settings
    from streamlint.runner.linter import How
    from streamlint.runner.linter import run as lint

    return lint([tree], Resolver(Settings(root=tree, respect_gitignore=False)), How(coverage=True))


def row_of(report: Report, seconds: float, tree: Path) -> Row:
    """The figures of a report."""
    told: Mapping[str, Any] = report.coverage
    counts = {
        key: int(told.get(key, 0))
        for key in ("functions", "operations", "over_budget", "launches", "launches_known", "copies", "copies_known")
    }
    return Row(
        files=report.files,
        relevant=report.relevant,
        problems=len(report.problems),
        findings=dict(sorted(Counter(finding.code for finding in report.findings).items())),
        opaque=[(inside(name, tree), count) for name, count in top(told.get("opaque", {}))],
        crashes=sorted(inside(str(failure), tree) for failure in told.get("failures", [])),
        seconds=round(seconds, 1),
        **counts,
    )


def inside(text: str, tree: Path) -> str:
    """The text with paths relative to the tree: the record must not tell where it was made."""
    for prefix in {str(tree), str(tree.resolve())}:
        text = text.replace(f"{prefix}/", "")
    return text


def top(opaque: Mapping[str, int] | Iterable[Sequence[Any]]) -> list[tuple[str, int]]:
    """The most frequent opaque calls, given as a mapping or as pairs."""
    pairs = opaque.items() if isinstance(opaque, Mapping) else ((pair[0], pair[1]) for pair in opaque)
    return sorted(((str(name), int(count)) for name, count in pairs), key=lambda pair: (-pair[1], pair[0]))[:OPAQUE]


def places_of(report: Report, tree: Path) -> list[Place]:
    """The findings, with paths relative to the tree."""
    found = []
    for finding in report.findings:
        file = Path(finding.span.file).resolve()
        path = file.relative_to(tree.resolve()) if file.is_relative_to(tree.resolve()) else Path(finding.span.file)
        found.append(Place(tree.name, path.as_posix(), finding.span.row, finding.code, finding.message))
    return found


def child(tree: Path) -> None:
    """Lint a tree and print what was found as JSON."""
    start = time.perf_counter()
    report = lint_tree(tree)
    row = row_of(report, time.perf_counter() - start, tree)
    print(json.dumps({"row": asdict(row), "places": [asdict(place) for place in places_of(report, tree)]}))


# In the parent: one child a package


def measure(tree: Path, limit: float) -> Result:
    """Lint a tree in a child process. A child that dies or runs past the limit is a crash, not the end."""
    start = time.perf_counter()
    try:
        done = subprocess.run([sys.executable, __file__, "--child", str(tree)], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return Row(crashes=[f"no end within {limit:.0f} s"], seconds=limit), []
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return Row(crashes=[inside(lines[-1], tree)[:200]], seconds=round(time.perf_counter() - start, 1)), []
    told = json.loads(done.stdout.splitlines()[-1])
    return read_row(told["row"]), [Place(**place) for place in told["places"]]


def read_row(table: Mapping[str, Any]) -> Row:
    """A row from its JSON form; keys that are not known any more are passed over."""
    known = {item.name for item in fields(Row)}
    values = {key: value for key, value in table.items() if key in known}
    values["opaque"] = [(str(name), int(count)) for name, count in values.get("opaque", [])]
    return Row(**values)


def measure_all(pins: Sequence[Pin], folder: Path, limit: float, jobs: int) -> dict[str, Result]:
    """Results by tree name, in the order of the pins."""
    trees = [folder / pin.tree for pin in pins]
    if lacking := [tree.name for tree in trees if not tree.is_dir()]:
        raise CorpusError(f"not fetched: {', '.join(lacking)}; run benchmarks/corpus.py fetch, or name the folder with --corpus")
    with ThreadPoolExecutor(max_workers=jobs) as pool:
        return dict(zip((tree.name for tree in trees), pool.map(lambda tree: measure(tree, limit), trees), strict=True))


# The record


def share(known: int, total: int) -> float | None:
    """Which part is known; None where there is nothing to know."""
    return known / total if total else None


def read_record(path: Path = RECORD) -> dict[str, Row]:
    """The committed figures; none if there is no record yet."""
    if not path.exists():
        return {}
    return {name: read_row(table) for name, table in json.loads(path.read_text(encoding="utf-8"))["packages"].items()}


def write_record(rows: Mapping[str, Row], path: Path = RECORD) -> None:
    """Write the figures, sorted, so that a change reads well in a diff."""
    tables = {name: asdict(rows[name]) for name in sorted(rows)}
    path.write_text(json.dumps({"packages": tables}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def merged(record: Mapping[str, Row], rows: Mapping[str, Row], pins: Sequence[Pin]) -> dict[str, Row]:
    """The record with the new rows in it, without packages that are pinned no more. A run that died does not replace a row."""
    pinned = {pin.tree for pin in pins}
    measured = {name: row for name, row in rows.items() if not row.died}
    return {name: row for name, row in {**record, **measured}.items() if name in pinned}


def regressions(record: Mapping[str, Row], rows: Mapping[str, Row]) -> Iterator[str]:
    """What became worse than in the record, a sentence each. A package without a record can only crash."""
    for name, now in rows.items():
        before = record.get(name, Row())
        for what, old, new in (
            ("launches whose stream is known", share(before.launches_known, before.launches), share(now.launches_known, now.launches)),
            ("copies whose memory is known", share(before.copies_known, before.copies), share(now.copies_known, now.copies)),
        ):
            if old is not None and not now.crashes and (new or 0.0) < old - TOLERANCE:
                yield f"{name}: {what}: {percent(old)} before, {percent(new)} now"
        for crash in sorted(set(now.crashes) - set(before.crashes)):
            yield f"{name}: crash: {crash}"


# What is printed

HEADS: tuple[str, ...] = (
    *("package", "files", "relevant", "problems", "findings", "functions", "operations", "over budget"),
    *("launches", "stream known", "copies", "memory known", "crashes", "s"),
)


def percent(value: float | None) -> str:
    """A share for people: one decimal, a dash for none."""
    return "-" if value is None else f"{value:.1%}"


def markdown(rows: Mapping[str, Row]) -> str:
    """The rows in Markdown, with a sum at the end."""
    lines = [HEADS, ("---", *["---:"] * (len(HEADS) - 1))]
    lines += [_cells(name, row) for name, row in rows.items()]
    lines.append(_cells("**all**", total(rows.values())))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _cells(name: str, row: Row) -> tuple[str, ...]:
    counts = (row.files, row.relevant, row.problems, sum(row.findings.values()), row.functions, row.operations, row.over_budget)
    launches = (str(row.launches), percent(share(row.launches_known, row.launches)))
    copies = (str(row.copies), percent(share(row.copies_known, row.copies)))
    return (name, *map(str, counts), *launches, *copies, str(len(row.crashes)), f"{row.seconds:.1f}")


def total(rows: Iterable[Row]) -> Row:
    """All rows in one. Opaque calls are added up from what each package kept."""
    everything, findings, opaque = Row(), Counter[str](), Counter[str]()
    for row in rows:
        findings.update(row.findings)
        opaque.update(dict(row.opaque))
        everything.crashes += row.crashes
        everything.seconds += row.seconds
        for key in _SUMMED:
            setattr(everything, key, getattr(everything, key) + getattr(row, key))
    everything.findings, everything.opaque = dict(sorted(findings.items())), top(opaque)
    return everything


_SUMMED = (
    "files",
    "relevant",
    "problems",
    "functions",
    "operations",
    "over_budget",
    "launches",
    "launches_known",
    "copies",
    "copies_known",
)


def summary(rows: Mapping[str, Row]) -> str:
    """Table, findings by rule, the opaque calls that silenced most."""
    all_of_it = total(rows.values())
    by_rule = ", ".join(f"{code} {count}" for code, count in all_of_it.findings.items()) or "none"
    opaque = ", ".join(f"`{name}` {count}" for name, count in all_of_it.opaque) or "none"
    lines = [f"\nFindings: {by_rule}", f"\nOpaque calls: {opaque}"]
    return "\n".join([markdown(rows), *lines, *crashes(rows)])


def crashes(rows: Mapping[str, Row]) -> list[str]:
    """A line for each crash."""
    return [f"{name}: crash: {crash}" for name, row in rows.items() for crash in row.crashes]


def sampled(places: Iterable[Place], count: int, seed: int) -> list[Place]:
    """At most `count` findings of each rule. The same seed draws the same ones, and rules do not disturb each other."""
    by_code: dict[str, list[Place]] = {}
    for place in sorted(places):
        by_code.setdefault(place.code, []).append(place)
    chosen = []
    for code, found in sorted(by_code.items()):
        chosen += sorted(random.Random(f"{seed} {code}").sample(found, min(count, len(found))))
    return chosen


def shown(place: Place, folder: Path) -> str:
    """A finding with the source lines around it."""
    head = f"{place.code} {place.package}/{place.file}:{place.line}\n    {place.message}\n"
    try:
        lines = (folder / place.package / place.file).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError as error:
        return f"{head}    (no source: {error.strerror})\n"
    first = max(0, min(place.line - 1 - CONTEXT // 2, len(lines) - CONTEXT))
    around = enumerate(lines[first : first + CONTEXT], first + 1)
    return head + "".join(f"{'>' if number == place.line else ' '} {number:>5} | {line}\n" for number, line in around)


# Commands


def compare(rows: Mapping[str, Row]) -> int:
    """Say what became worse; 1 if anything did."""
    worse = list(regressions(read_record(), rows))
    print("\n".join(["", *(f"worse: {line}" for line in worse)]) if worse else "\nnothing became worse")
    return 1 if worse else 0


def run(options: argparse.Namespace) -> int:
    """Measure, then do what was asked for."""
    pins = read_pins()
    results = measure_all(choose(pins, options.names), options.corpus, options.limit, options.jobs)
    rows = {name: row for name, (row, _) in results.items()}
    if options.sample:
        found = [place for _, places in results.values() for place in places]
        print("\n".join(shown(place, options.corpus) for place in sampled(found, options.sample, options.seed)))
        print("\n".join(crashes(rows)), file=sys.stderr)
        return died(rows)
    print(summary(rows))
    if options.compare:
        return compare(rows)
    write_record(merged(read_record(), rows, pins))
    return died(rows)


def died(rows: Mapping[str, Row]) -> int:
    """1 if the run on any package died, else 0."""
    return int(any(row.died for row in rows.values()))


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="packages (default: all of corpus.toml)")
    parser.add_argument("--corpus", type=Path, default=default_folder(), metavar="DIR", help="where corpus.py put the trees")
    parser.add_argument("--compare", action="store_true", help="exit 1 if something became worse than in coverage.json")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N findings of each rule with their source")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="which sample")
    parser.add_argument("--limit", type=float, default=1800, metavar="SECONDS", help="for one package")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="packages at a time (seconds are honest with 1 only)")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None) -> int:
    """0: measured; 1: something became worse, or a run died; 2: nothing could be measured."""
    options = arguments(given)
    if options.child:
        child(options.child)
        return 0
    try:
        return run(options)
    except CorpusError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
