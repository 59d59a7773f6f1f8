"""Verify's output formats, made from results alone."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from xml.etree import ElementTree

from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment, Verdict, shown_share
from streamlint.verify.runner import Result

_BAR = 5  # signs


def as_json(platform: Mapping[str, Any], results: Sequence[Result], missed: Sequence[Case] = ()) -> str:
    """The JSON of the published shape: ``platform`` and ``cases``; of an interrupted run also the cases that were ``not_run``."""
    content: dict[str, Any] = {"platform": dict(platform), "cases": [result.as_json() for result in results]}
    if missed:
        content["not_run"] = [dict(zip(("rule", "case", "api"), case.key, strict=True)) for case in missed]
    return json.dumps(content, indent=2, ensure_ascii=False)


def counts(results: Sequence[Result]) -> str:
    """``12 cases: 10 CONFIRMED, 2 NOT OBSERVED``."""
    found = Counter(result.judgement.verdict for result in results)
    parts = [f"{found[verdict]} {verdict.value}" for verdict in Verdict if found[verdict]]
    return f"{len(results)} case{'' if len(results) == 1 else 's'}: " + (", ".join(parts) or "none ran")


def verdict_line(result: Result) -> str:
    """``  SL010 fetching_thread [cuda]: CONFIRMED``."""
    return f"  {result.case.rule} {result.case.name} [{result.case.api}]: {result.judgement.verdict.value}"


def full(name: str, results: Sequence[Result]) -> str:
    """A table with one line a case, and the counts. The bars: how much of the prediction misuse and remedy showed."""
    rows = [(r.case.rule, r.case.name, r.case.api, r.judgement.verdict.value, bars(r), f"{r.seconds:.1f} s") for r in results]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(6)]
    lines = [name, "", "bars: how much of the prediction the misuse showed, and the remedy", ""]
    for row, result in zip(rows, results, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=False)] + [row[-1].rjust(widths[-1])]
        lines.append("  ".join([*cells, result.judgement.reason]).rstrip())
    return "\n".join([*lines, "", counts(results)])


def bars(result: Result) -> str:
    """``█████|░░░░░``, misuse and remedy; a cost is shown as a share of the dearer one. Blank where there is no figure."""
    shares = [shown_share(result.case.experiment, side) for side in (result.misuse, result.remedy)]
    if result.case.experiment is Experiment.COSTS:
        middles = [statistics.median(side["ms"]) if side.get("ms") else None for side in (result.misuse, result.remedy)]
        most = max((middle for middle in middles if middle is not None), default=0.0)
        shares = [None if middle is None or not most else middle / most for middle in middles]
    return "|".join(" " * _BAR if share is None else ("█" * round(share * _BAR)).ljust(_BAR, "░") for share in shares)


def markdown(name: str, results: Sequence[Result]) -> str:
    """A table for a page or a pull request."""
    lines = [f"**{name}**", "", "| rule | case | API | prediction | verdict | figures | seconds |", "|---|---|---|---|---|---|---|"]
    for result in results:
        case = result.case
        cells = (case.rule, case.name, case.api, case.prediction, result.judgement.verdict.value, result.judgement.reason)
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + f" | {result.seconds:.1f} |")
    return "\n".join([*lines, "", counts(results)])


def junit(name: str, results: Sequence[Result]) -> str:
    """A test suite, a test case a case: REFUTED fails, INCONCLUSIVE is an error, UNSUPPORTED is skipped."""
    found = Counter(result.judgement.verdict for result in results)
    suite = ElementTree.Element(
        "testsuite",
        name=f"streamlint verify on {name}",
        tests=str(len(results)),
        failures=str(found[Verdict.REFUTED]),
        errors=str(found[Verdict.INCONCLUSIVE]),
        skipped=str(found[Verdict.UNSUPPORTED]),
        time=f"{sum(result.seconds for result in results):.2f}",
    )
    for result in results:
        case, judgement = result.case, result.judgement
        row = ElementTree.SubElement(
            suite, "testcase", classname=f"{case.rule}.{case.api}", name=f"{case.name}: {case.prediction}", time=f"{result.seconds:.2f}"
        )
        kind = {Verdict.REFUTED: "failure", Verdict.INCONCLUSIVE: "error", Verdict.UNSUPPORTED: "skipped"}.get(judgement.verdict)
        target = ElementTree.SubElement(row, kind or "system-out")
        if kind:
            target.set("message", f"{judgement.verdict.value}: {judgement.reason}")
        else:
            target.text = f"{judgement.verdict.value}: {judgement.reason}"
    ElementTree.indent(suite)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(suite, encoding="unicode")
