"""A run's findings as the editor gets them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from streamlint.checks.rules import UNREADABLE, UNUSED, UnreadableSource
from streamlint.findings import Finding, Fix, Problem, Report, Severity, Span
from streamlint.report.entries import costing, page
from streamlint.server.jobs import FindingRow, Range, Repair
from streamlint.server.positions import Lines, changes
from streamlint.support.lines import split_lines
from streamlint.trace.profile import Profile


def reported(
    report: Report, text: str, encoding: str, outside: Callable[[str], str], profile: Profile | None = None
) -> tuple[FindingRow, ...]:
    """The findings and problems of one file's report, in order of their places.

    ``outside`` gives the path that the client knows, ``profile`` what findings cost in a recorded run.
    """
    measure = _Measure(report.texts, text, encoding, outside)
    rows = [_finding(finding, measure, profile.of(finding) if profile else None) for finding in report.findings]
    rows += [_problem(problem, measure) for problem in report.problems]
    return tuple(sorted(rows, key=lambda row: (row.range, row.code)))


def repair_of(fix: Fix, text: str, encoding: str) -> Repair:
    """A fix of one file."""
    lines = Lines(text, encoding)
    return Repair(fix.message, fix.applicability, tuple((lines.range(edit.span), edit.content) for edit in fix.edits))


def change(title: str, kind: str, texts: Sequence[tuple[str, str]], encoding: str) -> Repair:
    """New texts for the parts of a document, each below the last one with a line between them."""
    edits: list[tuple[Range, str]] = []
    first = 0
    for before, after in texts:
        edits += [((place[0] + first, place[1], place[2] + first, place[3]), text) for place, text in changes(before, after, encoding)]
        first += len(split_lines(before)) + 1
    return Repair(title, kind, tuple(edits))


class _Measure:
    """Places of the file itself, and of those that trails lead to."""

    def __init__(self, texts: Mapping[str, str], text: str, encoding: str, outside: Callable[[str], str]) -> None:
        self.outside = outside
        self._lines = cache(lambda file: Lines(texts.get(file, ""), encoding))
        self._own = Lines(text, encoding)

    def own(self, span: Span) -> Range:
        return self._own.range(span)

    def other(self, span: Span, file: str) -> Range:
        return self._own.range(span) if span.file == file else self._lines(span.file).range(span)


def _finding(finding: Finding, measure: _Measure, known: Mapping[str, Any] | None) -> FindingRow:
    file, span = finding.span.file, finding.span
    if finding.code == UNREADABLE:
        span = Span(file, span.row, span.column, span.row, span.column + 1)  # a place without width is hard to see
    return FindingRow(
        finding.code,
        finding.severity.value,
        finding.message + (f"\ncost: {costing(known)}" if known else "") + (f"\nhelp: {finding.help}" if finding.help else ""),
        page(finding.name),
        measure.own(span),
        tuple((step.message, measure.outside(step.span.file), measure.other(step.span, file)) for step in finding.trail),
        finding.fingerprint,
        finding.code == UNUSED,
    )


def _problem(problem: Problem, measure: _Measure) -> FindingRow:
    """As on the command line a warning; it covers the letter that it is about."""
    place = measure.own(Span(problem.file, problem.row, problem.column, problem.row, problem.column + 1))
    return FindingRow(UNREADABLE, Severity.WARNING.value, problem.message, page(UnreadableSource.name), place)
