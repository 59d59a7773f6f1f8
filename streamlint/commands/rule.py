"""``streamlint rule``: a rule's page, from its docstring and from what was measured."""

from __future__ import annotations

import json
import sys
from typing import Any

from streamlint import measured
from streamlint.checks.base import HEADINGS, Check
from streamlint.commands.parser import Parser
from streamlint.errors import ConfigError, did_you_mean
from streamlint.report.entries import page
from streamlint.report.terminal import Paint, wants_color
from streamlint.rules import all_rules, code_of


def main(words: list[str]) -> int:
    """Print the pages of rules."""
    parser = Parser("rule", "Explain rules, with what was measured about them.")
    parser.add_argument("rules", nargs="*", metavar="RULE", help="codes or names")
    parser.add_argument("--all", action="store_true", help="all rules")
    parser.add_argument("--output-format", choices=("text", "markdown", "json"), default="text", help="default: text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="when to colour (default: auto)")
    options = parser.read(words)
    if not options.rules and not options.all:
        parser.error("name a rule, or --all")
    rules = list(all_rules().values()) if options.all else [_rule(word) for word in options.rules]
    if options.output_format == "json":
        pages = [as_data(rule) for rule in rules]
        print(json.dumps(pages if options.all or len(pages) > 1 else pages[0], indent=2, default=str))
        return 0
    paint = Paint(options.output_format == "text" and wants_color(options.color, sys.stdout))
    print("\n".join(_painted(markdown(rule), paint) for rule in rules), end="")
    return 0


def markdown(rule: type[Check]) -> str:
    """A rule's page."""
    sections = rule.documentation()
    status = {"on": "on by default", "preview": "preview: on with `--preview` or when selected by name", "off": "off unless selected"}
    kind = f"{rule.category.value} · {rule.category.severity.value} · {status[rule.default]}"
    parts = [f"# {rule.name} ({rule.code})", kind, sections[""]]
    for heading in [*HEADINGS, *(heading for heading in sections if heading not in (*HEADINGS, ""))]:
        if heading in sections:
            parts.append(f"## {heading}\n\n{sections[heading]}")
    if table := _measured(rule):
        parts.append(f"## Measured\n\n{table}")
    return "\n\n".join(part for part in parts if part) + "\n"


def as_data(rule: type[Check]) -> dict[str, Any]:
    """A rule's page as plain data."""
    sections = rule.documentation()
    return {
        "code": rule.code,
        "name": rule.name,
        "category": rule.category.value,
        "severity": rule.category.severity.value,
        "default": rule.default,
        "summary": sections.pop(""),
        "sections": sections,
        "url": page(rule.name),
        "evidence": [dict(record) for record in measured.records(rule.code)],
    }


def _rule(word: str) -> type[Check]:
    if word not in code_of():
        raise ConfigError(f"unknown rule '{word}'{did_you_mean(word, code_of())}")
    return all_rules()[code_of()[word]]


def _measured(rule: type[Check]) -> str:
    """What was measured, an entry a case."""
    lines = []
    for record in measured.records(rule.code):
        title = " · ".join(str(record[key]) for key in ("case", "api") if record.get(key))
        lines.append(f"* **{record.get('verdict', '')}** {title}: {record.get('summary') or record.get('prediction', '')}")
        place = " · ".join(part for part in (measured.platform_text(record.get("platform")), str(record.get("date") or "")) if part)
        lines += [f"  {place}"] if place else []
        lines += [f"  {side}: {measured.figures(record[side])}" for side in ("misuse", "remedy") if record.get(side)]
    return "\n".join(lines)


def _painted(text: str, paint: Paint) -> str:
    if not paint.on:
        return text
    return "\n".join(paint(line, "strong") if line.startswith("#") else line for line in text.split("\n"))
