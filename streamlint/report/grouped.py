"""Findings under their files."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from streamlint.findings import Finding
from streamlint.report import View
from streamlint.report.terminal import Paint, line, tame


def render(view: View) -> str:
    """A heading a file, a line a finding, places in a column."""
    paint = Paint(view.color)
    parts = []
    for file, group in itertools.groupby(view.report.findings, key=lambda finding: finding.span.file):
        lines = "".join(line + "\n" for line in _lines(list(group), view, paint))
        parts.append(f"{paint(tame(line(file)), 'strong')}:\n{lines}\n")
    return "".join(parts)


def _lines(findings: list[Finding], view: View, paint: Paint) -> Iterator[str]:
    places = [view.cells.place(found.span.file, found.span.row, found.span.column) for found in findings]
    room = max(map(len, places))
    for finding, place in zip(findings, places, strict=True):
        rule = f"{paint(finding.name, finding.severity.value)} [{finding.code}]"
        yield f"  {place:<{room}}  {rule} {view.fix_mark(finding)}{line(finding.message)}"
