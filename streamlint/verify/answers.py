"""Findings with what their own facts showed, for the report formats of ``check``."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from streamlint.findings import Finding, Report, as_facts
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Verdict
from streamlint.verify.questions import Question
from streamlint.verify.runner import Result
from streamlint.verify.session import Results

At = Callable[[str, int], tuple[int | None, int]]  # the cell of a row of a file, if it is a notebook, and the row in there
SHOW_EVIDENCE = ("full", "json", "json-lines")  # formats with a place of their own for it; the others get it in the message


def evidence_of(question: Question, result: Result, platform: str) -> dict[str, Any]:
    """What a finding's ``evidence`` says once its facts have been run."""
    case = result.case
    notes = f" ({'; '.join(question.notes)})" if question.notes else ""
    return {
        "verdict": result.judgement.verdict.value,
        "level": level_of(case),
        "platform": platform,
        "date": datetime.date.today().isoformat(),
        "summary": f"{case.prediction}: {result.judgement.reason} [{case.name}, {case.api}{_given(case.facts)}]{notes}",
    }


def level_of(case: Case) -> str:
    """``facts`` where the run took facts of the finding, ``template`` where it could take none, so that any finding has the same answer."""
    return "facts" if case.facts else "template"


def _given(facts: Sequence[tuple[str, Any]]) -> str:
    return "".join(f", {name} {value}" for name, value in facts)


def by_finding(questions: Sequence[Question], results: Results, platform: str) -> dict[Finding, dict[str, Any]]:
    """The evidence of each finding that a template answers."""
    return {
        finding: evidence_of(question, results[question.case.identity], platform) for question in questions for finding in question.findings
    }


def as_cases(questions: Sequence[Question], results: Results, at: At) -> list[dict[str, Any]]:
    """Each distinct run in the shape of verify's JSON, with the facts that asked for it.

    ``at`` gives the places of findings in notebooks.
    """
    cases: dict[tuple[object, ...], dict[str, Any]] = {}
    for question in questions:
        result = results[question.case.identity]
        case = cases.setdefault(question.case.identity, {**result.as_json(), "level": level_of(question.case), "asked": [], "findings": []})
        for finding in question.findings:
            facts = {"facts": as_facts(finding.known), "notes": list(question.notes)}
            if facts not in case["asked"]:
                case["asked"].append(facts)
            cell, row = at(finding.span.file, finding.span.row)
            case["findings"].append({"file": finding.span.file, "cell": cell, "row": row, "message": finding.message})
    return list(cases.values())


def to_keep(cases: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The cases as evidence: without the places of the findings, which are nobody else's business."""
    return [{key: value for key, value in case.items() if key != "findings"} for case in cases]


def with_verdicts(report: Report, evidence: Mapping[Finding, Mapping[str, Any]], format: str) -> Report:
    """The report for one format: where that has no place for evidence, the verdict is part of the message."""
    if format in SHOW_EVIDENCE:
        return report
    return replace(report, findings=[_judged(finding, evidence.get(finding)) for finding in report.findings])


def _judged(finding: Finding, evidence: Mapping[str, Any] | None) -> Finding:
    if evidence is None:
        return finding
    return replace(finding, message=f"{finding.message} [verify: {evidence['verdict']} on {evidence['platform']}]")


def counts(evidence: Mapping[Finding, Mapping[str, Any]], findings: Sequence[Finding], missed: int = 0) -> str:
    """``5 findings: 3 CONFIRMED, 1 REFUTED, 1 without a template``. ``missed``: sets of facts that were not run."""
    found = Counter(evidence[finding]["verdict"] for finding in findings if finding in evidence)
    parts = [f"{found[verdict.value]} {verdict.value}" for verdict in Verdict if found[verdict.value]]
    left = sum(finding not in evidence for finding in findings)
    parts += [f"{left} without a {'verdict' if missed else 'template for it'}"] if left else []
    return f"{len(findings)} finding{'s' * (len(findings) != 1)}: {', '.join(parts) or 'nothing to verify'}"
