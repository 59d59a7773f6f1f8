"""Findings, problems and counts as JSON, and back: exactly, or not at all."""

from __future__ import annotations

from collections import Counter

from streamlint import TYPE_CHECKING
from streamlint.findings import Category, Edit, Finding, Fix, Problem, Span, Step

if TYPE_CHECKING:
    from typing import Any


def of_span(span: Span) -> list[Any]:
    return [span.file, *span.at]


def of_finding(finding: Finding) -> list[Any]:
    """A finding as plain data."""
    return [
        finding.code,
        finding.name,
        finding.category.value,
        finding.message,
        of_span(finding.span),
        [[step.message, of_span(step.span)] for step in finding.trail],
        finding.help,
        of_fix(finding.fix),
        finding.facts,
        finding.qualname,
        list(finding.related),
        [[of_span(one), of_span(other)] for one, other in finding.pairs],
        finding.fingerprint,
        [of_span(span) for span in finding.covers],
        finding.shown,
    ]


def to_finding(record: list[Any]) -> Finding:
    """The finding that a record was made of."""
    code, name, category, message, span, trail, help, fix, facts, qualname, related, pairs, fingerprint, covers, shown = record
    return Finding(
        code,
        name,
        Category(category),
        message,
        Span(*span),
        tuple(Step(text, Span(*at)) for text, at in trail),
        help,
        to_fix(fix),
        facts,
        qualname,
        tuple(related),
        tuple((Span(*one), Span(*other)) for one, other in pairs),
        fingerprint,
        tuple(Span(*at) for at in covers),
        shown,
    )


def of_fix(fix: Fix | None) -> list[Any] | None:
    """A fix as plain data."""
    return [fix.message, [[edit.content, of_span(edit.span)] for edit in fix.edits], fix.applicability] if fix else None


def to_fix(record: list[Any] | None) -> Fix | None:
    """The fix that a record was made of."""
    if record is None:
        return None
    message, edits, applicability = record
    return Fix(message, tuple(Edit(content, Span(*span)) for content, span in edits), applicability)


def of_problem(problem: Problem) -> list[Any]:
    return [problem.file, problem.message, problem.row, problem.column, problem.lost]


def to_problem(record: list[Any]) -> Problem:
    return Problem(*record)


def of_part(part: Any, coverage: bool) -> list[Any]:
    """What one file gave; places of launches and copies only where they are asked for."""
    counted = part.coverage
    places = [[[*of_span(span), name, known] for (span, name), known in table.items()] for table in (counted.launches, counted.copies)]
    return [
        [of_finding(finding) for finding in part.findings],
        [of_problem(problem) for problem in part.problems],
        [*(places if coverage else [[], []]), dict(counted.opaque) if coverage else {}, counted.roots, counted.runs, counted.over_budget],
        sorted(part.own_rows),
    ]


def to_part(record: list[Any]) -> Any:
    """The part that a record was made of."""
    from streamlint.analysis import Part
    from streamlint.interpreter.run import Coverage

    findings, problems, (launches, copies, opaque, roots, runs, over_budget), own_rows = record
    tables = [{(Span(*row[:5]), row[5]): row[6] for row in table} for table in (launches, copies)]
    coverage = Coverage(tables[0], tables[1], Counter(opaque), roots, runs, over_budget)
    return Part([to_finding(item) for item in findings], [to_problem(item) for item in problems], coverage, set(own_rows))


def holds(findings: list[Finding]) -> bool:
    """Whether findings come back from their records as they were: facts may hold what JSON does not know."""
    return all(_plain(value) for finding in findings for value in finding.facts.values())


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(type(key) is str and _plain(item) for key, item in value.items())
    return value is None or type(value) in (str, int, float, bool)
