"""What a tool's answer is worth: found on the marked line, flagged in the clean twin; recall, false alarms, Youden's index by group."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from benchmarks.streambench.cases import BAD, CLEAN, Case

Place = tuple[str, str, str, int]  # case, version, file, row
Answer = Mapping[str, Sequence[tuple[str, str, int]]]
"""By ``CASE/VERSION``: hazard, file, row of each result that fits one."""


@dataclass(frozen=True)
class Outcome:
    """What a tool says of one case.

    ``elsewhere``: a fitting result stands in the bad program, but neither on an operation of the hazard nor on a call between.
    """

    case: Case
    found: bool
    flagged: bool
    elsewhere: bool = False


@dataclass(frozen=True)
class Row:
    """The counts of a group. ``unknown``: the tool said that it does not know."""

    name: str
    found: int
    bad: int
    flagged: int
    clean: int
    unknown: int = 0

    @property
    def recall(self) -> float:
        """The share of bad programs that were found."""
        return self.found / self.bad if self.bad else math.nan

    @property
    def alarms(self) -> float:
        """The share of clean programs that were flagged."""
        return self.flagged / self.clean if self.clean else math.nan

    @property
    def youden(self) -> float:
        """Recall less the rate of false alarms: 0 is guessing, 1 is right throughout (OWASP Benchmark's score)."""
        return self.recall - self.alarms


def answers(log: Mapping[str, Any], tree: Path, hazards: Mapping[str, Sequence[str]]) -> dict[str, list[tuple[str, str, int]]]:
    """The results of a SARIF log by program; ``hazards``: which of them a rule of the tool speaks of."""
    found: dict[str, list[tuple[str, str, int]]] = {}
    for result in (each for run in log["runs"] for each in run.get("results", ())):
        for place in result.get("locations", ())[:1]:
            physical = place["physicalLocation"]
            path = Path(unquote(urlparse(physical["artifactLocation"]["uri"]).path))
            path = path if path.is_absolute() else tree / path
            case, version, *rest = path.relative_to(tree).parts
            row = physical.get("region", {}).get("startLine", 0)
            for hazard in hazards.get(str(result.get("ruleId", "")).rpartition(".")[2], ()):
                found.setdefault(f"{case}/{version}", []).append((hazard, "/".join(rest), row))
    return found


def judge(case: Case, answer: Answer) -> Outcome:
    """Hold what a tool says of both versions against the case."""
    told = [(file, row) for hazard, file, row in answer.get(f"{case.name}/{BAD}", ()) if hazard == case.hazard]
    after = [(file, row) for hazard, file, row in answer.get(f"{case.name}/{CLEAN}", ()) if hazard == case.hazard]
    flagged = any(not case.alarms or place in case.alarms for place in after)
    found = bool(set(told) & {*case.marks, *case.links})
    return Outcome(case, found, flagged, elsewhere=bool(told) and not found)


def rows(outcomes: Iterable[Outcome], key: Callable[[Case], str]) -> list[Row]:
    """The counts by group."""
    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        groups.setdefault(key(outcome.case), []).append(outcome)
    return [count(name, group) for name, group in sorted(groups.items())]


def count(name: str, group: Sequence[Outcome]) -> Row:
    """The counts of some outcomes; a case of the quiet track has a clean version only."""
    bad = [one for one in group if one.case.bad]
    clean = [one for one in group if one.case.clean]
    return Row(name, sum(one.found for one in bad), len(bad), sum(one.flagged for one in clean), len(clean))


def table(title: str, found: Sequence[Row]) -> Iterator[str]:
    """A table in Markdown."""
    yield f"| {title} | found | recall | false alarms | rate | Youden | does not know |"
    yield "|---|---:|---:|---:|---:|---:|---:|"
    for row in found:
        cells = (_part(row.found, row.bad), _percent(row.recall), _part(row.flagged, row.clean), _percent(row.alarms))
        yield f"| {row.name} | {' | '.join(cells)} | {'-' if math.isnan(row.youden) else f'{row.youden:.2f}'} | {row.unknown} |"


def _part(hits: int, of: int) -> str:
    return f"{hits} of {of}" if of else "-"


def _percent(share: float) -> str:
    return "-" if math.isnan(share) else f"{100 * share:.1f} %"
