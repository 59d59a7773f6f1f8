"""A rule's page: from its docstring, and from what was measured."""

from __future__ import annotations

from typing import Any

from streamlint.checks.base import HEADINGS, Check
from streamlint.findings import measured
from streamlint.report.entries import page

STATUS = {"on": "on by default", "preview": "preview: on with `--preview` or when selected by name", "off": "off unless selected"}


def markdown(rule: type[Check]) -> str:
    """A rule's page as Markdown."""
    sections = rule.documentation()
    kind = f"{rule.category.value} · {rule.category.severity.value} · {STATUS[rule.default]}"
    parts = [f"# {rule.name} ({rule.code})", kind, sections[""]]
    for heading in [*HEADINGS, *(heading for heading in sections if heading not in (*HEADINGS, ""))]:
        if heading in sections:
            parts.append(f"## {heading}\n\n{sections[heading]}")
    parts.append(f"## Judged\n\n{measured.judged_text(rule.code)}")
    if table := _measured(rule):
        parts.append(f"## Measured\n\n{table}")
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(rule: type[Check]) -> str:
    """What a rule finds, on one line without a full stop."""
    return " ".join(rule.documentation()[""].split()).replace("``", "`").removesuffix(".")


def as_data(rule: type[Check]) -> dict[str, Any]:
    """A rule's page as plain data."""
    sections = rule.documentation()
    return {
        "code": rule.code,
        "name": rule.name,
        "category": rule.category.value,
        "severity": rule.category.severity.value,
        "default": rule.default,
        "fixes": list(rule.fixes),
        "languages": list(rule.languages),
        "summary": sections.pop(""),
        "sections": sections,
        "url": page(rule.name),
        "judged": dict(measured.judged().get(rule.code, {})),
        "evidence": [dict(record) for record in measured.records(rule.code)],
    }


def _measured(rule: type[Check]) -> str:
    """What was measured, an entry a case."""
    lines = []
    for record in measured.records(rule.code):
        title = " · ".join(str(record[key]) for key in ("case", "api") if record.get(key))
        lines.append(f"* **{record.get('verdict', '')}** {title}: {record.get('summary') or record.get('prediction', '')}")
        versions = [f"{name} {version}" for name, version in (record.get("packages") or {}).items()]
        place = " · ".join(
            part for part in (measured.platform_text(record.get("platform")), *versions, str(record.get("date") or "")) if part
        )
        lines += [f"  {place}"] if place else []
        lines += [f"  {side}: {measured.figures(record[side])}" for side in ("misuse", "remedy") if record.get(side)]
    return "\n".join(lines)
