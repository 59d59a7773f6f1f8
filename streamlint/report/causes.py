"""Findings with one cause: formats for people show them once, with all places. Formats for programs list each place."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.findings import Finding, Span


def by_cause(findings: Iterable[Finding]) -> list[tuple[Finding, tuple[Span, ...]]]:
    """Each finding that is shown, with the further places of the same cause, in their order."""
    groups: dict[object, list[Finding]] = {}
    for number, finding in enumerate(findings):
        groups.setdefault(_cause(finding) or number, []).append(finding)
    return [(first, tuple(other.span for other in others)) for first, *others in groups.values()]


def _cause(finding: Finding) -> tuple[object, ...] | None:
    """What findings of one cause share: rule, function and words, and where their traces begin. None where a finding is its own cause."""
    begin = next((step for step in finding.trail if step.span != finding.span), None)
    if begin is None:
        return None
    fix = (finding.fix.message, finding.fix.applicability) if finding.fix is not None else None
    return (finding.code, finding.span.file, finding.qualname, finding.message, finding.help, finding.related, fix, begin)
