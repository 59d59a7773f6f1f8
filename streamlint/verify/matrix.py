"""Verdicts of several GPUs as one matrix, rule by GPU: text, Markdown and JSON, made from what the workers sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from streamlint.verify import report
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Verdict
from streamlint.verify.fleet import Member
from streamlint.verify.runner import Result
from streamlint.verify.session import Results

_OPEN = (Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED)


@dataclass
class Column:
    """A platform: a GPU, its driver and its CUDA, with the verdicts of all workers that have one."""

    name: str
    facts: dict[str, Any]
    workers: list[str] = field(default_factory=list)
    results: Results = field(default_factory=dict)
    disagreements: list[str] = field(default_factory=list)  # between GPUs of one kind

    def add(self, member: Member) -> None:
        """Take in what a worker has found: a decided verdict before one that is not."""
        self.workers.append(member.name)
        for identity, result in member.results.items():
            before = self.results.get(identity)
            if before is None or (before.judgement.verdict in _OPEN and result.judgement.verdict not in _OPEN):
                self.results[identity] = result
            elif result.judgement.verdict not in _OPEN and result.judgement.verdict is not before.judgement.verdict:
                verdicts = f"{before.judgement.verdict.value} and, by {member.name}, {result.judgement.verdict.value}"
                text = f"{_called(result.case)} on {self.name}: {verdicts}"
                self.disagreements.append(text)

    def by_key(self) -> dict[tuple[str, str, str], Result]:
        """The results by case; GPUs with little memory run them with sizes of their own."""
        return {result.case.key: result for result in self.results.values()}


def columns(members: Sequence[Member]) -> list[Column]:
    """One for each platform that has results, by name."""
    found: dict[str, Column] = {}
    for member in sorted(members, key=lambda member: (member.platform, member.name)):
        if member.results:
            found.setdefault(member.platform, Column(member.platform, member.facts)).add(member)
    return list(found.values())


def lost(members: Sequence[Member]) -> list[str]:
    """Each worker that did not come to its end, with the reason and what it owes."""
    losses = []
    for member in members:
        if member.lost:
            owed = f"; {len(member.missed)} of its {len(member.cases)} cases were not run" if member.cases else ""
            losses.append(f"worker {member.name}: {member.lost}{owed}")
    return losses


def full(members: Sequence[Member]) -> str:
    """The matrix as text."""
    found = columns(members)
    heads = [f"[{number}]" for number in range(1, len(found) + 1)]
    lines = [f"{head} {column.name} ({', '.join(column.workers)})" for head, column in zip(heads, found, strict=True)]
    rows = [("rule", *heads), *_rows(found)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(heads) + 1)]
    lines += ["", *("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows)]
    lines += _remarks(found, members, "", heads)
    return "\n".join([*lines, "", counts(members)])


def markdown(members: Sequence[Member]) -> str:
    """The matrix for a page or a pull request."""
    found = columns(members)
    lines = ["| rule | " + " | ".join(column.name.replace("|", "\\|") for column in found) + " |", "|---" * (len(found) + 1) + "|"]
    lines += ["| " + " | ".join(row) + " |" for row in _rows(found)]
    lines += _remarks(found, members, "* ", [column.name for column in found])
    return "\n".join([*lines, "", counts(members)])


def as_json(members: Sequence[Member]) -> str:
    """For each platform what a run there says; the matrix by case; who was lost."""
    found = columns(members)
    tables = {column.name: column.by_key() for column in found}
    content = {
        "platforms": [
            {"platform": column.facts, "workers": column.workers, "cases": [result.as_json() for result in column.results.values()]}
            for column in found
        ],
        "matrix": [
            {
                **dict(zip(("rule", "case", "api"), key, strict=True)),
                "verdicts": {name: table[key].judgement.verdict.value for name, table in tables.items() if key in table},
            }
            for key in _keys(found)
        ],
        "lost": [{"worker": member.name, "reason": member.lost, "not_run": len(member.missed)} for member in members if member.lost],
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def counts(members: Sequence[Member]) -> str:
    """``2 GPUs, 10 cases: 10 CONFIRMED; 1 worker lost``."""
    found = columns(members)
    gone = sum(bool(member.lost) for member in members)
    results = [result for column in found for result in column.results.values()]
    more = f"; {gone} worker{'s' * (gone != 1)} lost" if gone else ""
    return f"{len(found)} platform{'s' * (len(found) != 1)}, {report.counts(results)}{more}"


def _keys(found: Sequence[Column]) -> list[tuple[str, str, str]]:
    return list(dict.fromkeys(key for column in found for key in column.by_key()))


def _rows(found: Sequence[Column]) -> list[tuple[str, ...]]:
    rules = sorted({key[0] for key in _keys(found)})
    return [(rule, *(_cell(rule, column) for column in found)) for rule in rules]


def _cell(rule: str, column: Column) -> str:
    """How often each verdict came, ``3 CONFIRMED, 1 REFUTED``."""
    verdicts_by_head = Counter(result.judgement.verdict for key, result in column.by_key().items() if key[0] == rule)
    return ", ".join(f"{verdicts_by_head[verdict]} {verdict.value}" for verdict in Verdict if verdicts_by_head[verdict]) or "-"


def _remarks(found: Sequence[Column], members: Sequence[Member], mark: str, heads: Sequence[str]) -> list[str]:
    """What the table does not show: cases whose verdicts differ, and workers without one."""
    differ = []
    tables = [column.by_key() for column in found]
    for key in _keys(found):
        verdicts_by_head = [(head, table[key].judgement.verdict) for head, table in zip(heads, tables, strict=True) if key in table]
        if len({verdict for _, verdict in verdicts_by_head if verdict not in _OPEN}) > 1:
            verdicts = ", ".join(f"{verdict.value} on {head}" for head, verdict in verdicts_by_head)
            differ.append(f"{key[0]} {key[1]} [{key[2]}]: {verdicts}")
    differ += [line for column in found for line in column.disagreements]
    lines = ["", "They differ:", "", *(f"{mark}{line}" for line in differ)] if differ else []
    gone = lost(members)
    return lines + (["", "Lost:", "", *(f"{mark}{line}" for line in gone)] if gone else [])


def _called(case: Case) -> str:
    return f"{case.rule} {case.name} [{case.api}]"
