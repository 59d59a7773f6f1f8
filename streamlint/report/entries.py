"""Findings as the plain data that machine formats share."""

from __future__ import annotations

from collections.abc import Mapping

from streamlint import TYPE_CHECKING
from streamlint.findings import Finding, Fix, Problem, Report, Span
from streamlint.findings.confidence import level, rank
from streamlint.findings.grounds import as_grounds
from streamlint.report import View
from streamlint.support.addresses import RULES
from streamlint.support.lazy import lazy
from streamlint.triage.fingerprint import Statements, with_fingerprints

if TYPE_CHECKING:
    from typing import Any

    from streamlint.checks import rules
    from streamlint.report import Evidence
else:
    (rules,) = lazy("streamlint.checks", "rules")

EVIDENCE_KEYS = ("verdict", "level", "platform", "date", "summary")


def entries(view: View, *, baselined: bool = False) -> list[dict[str, Any]]:
    """Findings and unreadable files in the shape of the JSON format, in order.

    With ``baselined`` the findings that a baseline hides are among them, and each row of a run with a baseline says so.
    """
    report = view.report
    rows = [_finding(finding, view) for finding in with_fingerprints(report.findings, Statements(report.texts))]
    if baselined and report.baseline:
        why = f"in the baseline {report.baseline}"
        rows = [row | {"baselined": ""} for row in rows]
        rows += [_finding(finding, view) | {"baselined": why} for finding in with_fingerprints(report.baselined, Statements(report.texts))]
    rows += [_problem(problem, view) for problem in report.problems]
    return sorted(rows, key=lambda row: (-row["rank"] if view.by_confidence else 0, *_order(row)))


def _order(row: Mapping[str, Any]) -> tuple[object, ...]:
    """By cost, where a recorded run says one; then by place."""
    return -cost_of(row.get("run")), row["filename"], row["cell"] or 0, row["location"]["row"], row["location"]["column"], row["code"]


def place_of(place: Mapping[str, Any], column: bool = True) -> str:
    """The place of an entry, or of a step, in words: ``row:column``, in a notebook ``cell number:row:column``."""
    at = place["location"]
    return f"cell {place['cell']}:" * (place["cell"] is not None) + str(at["row"]) + f":{at['column']}" * column


def page(name: str) -> str:
    """The address of a rule's page."""
    return f"{RULES}{name}/"


def evidence_of(finding: Finding, evidence: Evidence | None) -> dict[str, object] | None:
    """What `verify` found out about the finding or its rule, cut to the published keys."""
    record = (evidence or {}).get(finding) or (evidence or {}).get(finding.code)
    return {key: record.get(key) for key in EVIDENCE_KEYS} if record else None


def verified(finding: Finding, evidence: Mapping[str, object]) -> str:
    """What was measured, as a sentence part: whether a run settled the rule, its case, or these facts, but never this place of the code."""
    verdict, where = str(evidence["verdict"]), f"on {evidence['platform']}, {evidence['date']}"
    if evidence["level"] == "facts":
        return f"{verdict} {where}, with the facts of this finding: {evidence['summary']}"
    if evidence["level"] == "template":
        return f"{verdict} {where}, by the rule's template, which takes no fact of this finding: {evidence['summary']}"
    return f"rule {verdict.lower()} {where} (streamlint rule {finding.code})"


def costing(known: Mapping[str, Any]) -> str:
    """What a recorded run says of a finding, as a sentence part."""
    summary: str = known["cost"]["summary"] if known["cost"] else known["note"]
    return summary if known["standing"] == "COSTS" else f"{known['standing']}: {summary}"


def cost_of(known: Mapping[str, Any] | None) -> int:
    """What a recorded run says that a finding cost, in ns; 0 where nothing is known."""
    return int(known["cost"]["cost_ns"]) if known and known["cost"] else 0


def _finding(finding: Finding, view: View) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "category": finding.category.value,
        "severity": finding.severity.value,
        "message": finding.message,
        "filename": finding.span.file,
        **_places(finding.span, view),
        "trail": [{"message": step.message, "filename": step.span.file, **_places(step.span, view)} for step in finding.trail],
        "help": finding.help,
        "fix": _fix(finding.fix, view) if finding.fix else None,
        "facts": dict(finding.facts),
        "confidence": level(finding),
        "rank": rank(finding),
        "grounds": as_grounds(finding.grounds) if finding.grounds is not None else None,
        "related": list(finding.related),
        "evidence": evidence_of(finding, view.evidence),
        "url": page(finding.name),
        "fingerprint": finding.fingerprint,
        **({"run": dict(view.costs[finding])} if view.costs and finding in view.costs else {}),
    }


def _problem(problem: Problem, view: View) -> dict[str, Any]:
    rule = rules.UnreadableSource
    span = Span(problem.file, problem.row, problem.column, problem.row, problem.column)
    finding = Finding(rules.UNREADABLE, rule.name, rule.category, problem.message, span)
    (finding,) = with_fingerprints([finding], Statements({}))
    return {**_finding(finding, View(Report(), cells=view.cells)), "severity": "warning"}


def _fix(fix: Fix, view: View) -> dict[str, Any]:
    edits = [{"content": edit.content, "filename": edit.span.file, **_places(edit.span, view)} for edit in fix.edits]
    return {"applicability": fix.applicability, "message": fix.message, "edits": edits}


def _places(span: Span, view: View) -> dict[str, Any]:
    (cell, row), (_, end_row) = (view.cells.at(span.file, row) for row in (span.row, span.end_row))
    return {
        "cell": cell,
        "location": {"row": row, "column": span.column},
        "end_location": {"row": end_row, "column": span.end_column},
    }
