"""One line a finding."""

from __future__ import annotations

from streamlint.report import View
from streamlint.report.terminal import Paint, line


def render(view: View) -> str:
    """``path:row:column: name [CODE] message``."""
    paint = Paint(view.color)
    lines = []
    for finding in view.report.findings:
        span = finding.span
        place = view.cells.place(span.file, span.row, span.column)
        rule = f"{paint(finding.name, finding.severity.value)} [{finding.code}]"
        lines.append(f"{paint(line(span.file), 'strong')}:{place}: {rule} {view.fix_mark(finding)}{line(finding.message)}\n")
    return "".join(lines)
