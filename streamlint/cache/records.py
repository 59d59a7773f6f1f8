"""Findings, problems and counts as JSON, and back: exactly, or not at all."""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.findings import Category, Edit, Finding, Fix, Part, Problem, Span, Step

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
    return [problem.file, problem.message, problem.row, problem.column, problem.lost, problem.fault]


def to_problem(record: list[Any]) -> Problem:
    return Problem(*record)


def of_part(part: Part) -> list[Any]:
    """What a task gave."""
    findings, problems = map(of_finding, part.findings), map(of_problem, part.problems)
    return [[*findings], [*problems], part.cut, part.coverage, part.own_rows, part.built]


def to_part(record: list[Any]) -> Part:
    """The part that a record was made of."""
    findings, problems, cut, coverage, own_rows, built = record
    return Part([*map(to_finding, findings)], [*map(to_problem, problems)], cut, to_coverage(coverage), own_rows, built)


def to_coverage(record: dict[str, Any]) -> dict[str, object]:
    """The figures that a record was made of."""
    return {key: [tuple(item) for item in field] if key == "opaque" else field for key, field in record.items()}


def holds(findings: list[Finding]) -> bool:
    """Whether findings come back from their records as they were: facts may hold what JSON does not know."""
    return all(_plain(value) for finding in findings for value in finding.facts.values())


def _plain(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_plain, value))
    if isinstance(value, dict):
        return all(type(key) is str and _plain(item) for key, item in value.items())
    return value is None or type(value) in (str, int, float, bool)
