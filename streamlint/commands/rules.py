"""``streamlint rules``: the list of all rules, and which are on in this project."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.checks.catalog import UNREADABLE
from streamlint.checks.rules import all_rules
from streamlint.commands.check_options import add_configuration_files, add_rules
from streamlint.commands.parser import Parser
from streamlint.commands.running import configured
from streamlint.config.selection import names_unreadable
from streamlint.config.settings import Resolver, Settings
from streamlint.report.entries import page
from streamlint.report.pages import summary

if TYPE_CHECKING:
    from typing import Any

    from streamlint.checks.base import Check

EXAMPLES = (
    ("streamlint rules", "all rules, as this folder is configured"),
    ("streamlint rules --enabled --preview", "what `check --preview` would run"),
    ("streamlint rules --isolated --format json", "for a program, without this folder's configuration"),
)
NONE = "-"
NARROWEST = 40  # columns of a summary beside the rest
INDENT = " " * 7
HEADS = ("code", "rule", "here", "default", "fix", "languages")


def build_parser() -> Parser:
    """The parser of ``rules``."""
    parser = Parser("rules", "List all rules, and say which are on in the current folder.", EXAMPLES)
    parser.add_argument("--enabled", action="store_true", help="only rules that are on here")
    parser.add_argument("--output-format", "--format", choices=("text", "json", "markdown"), default="text", help="default: text")
    add_rules(parser.add_argument_group("rules"))
    add_configuration_files(parser.add_argument_group("configuration"))
    return parser


def main(words: list[str]) -> int:
    """Print the list of rules."""
    options = build_parser().read(words)
    settings = Resolver(*configured(options)).of_folder(Path.cwd())
    rows = [row for row in (_row(rule, settings) for rule in all_rules().values()) if row["enabled"] or not options.enabled]
    if options.output_format == "json":
        print(json.dumps(rows, indent=2))
    elif options.output_format == "markdown":
        print(_markdown(rows))
    else:
        print(_table(rows))
    return 0


def is_on(code: str, settings: Settings) -> bool:
    """Whether a rule is on, before per-file ignores. SL000 is on until it is named, as in a run."""
    if code == UNREADABLE:
        return not any(names_unreadable(layer.unwanted) for layer in settings.selectors)
    return code in settings.codes


def _row(rule: type[Check], settings: Settings) -> dict[str, Any]:
    return {
        "code": rule.code,
        "name": rule.name,
        "summary": summary(rule),
        "category": rule.category.value,
        "severity": rule.category.severity.value,
        "default": rule.default,
        "enabled": is_on(rule.code, settings),
        "fixes": list(rule.fixes),
        "languages": list(rule.languages),
        "url": page(rule.name),
    }


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    here = "on" if row["enabled"] else "off"
    return (row["code"], row["name"], here, row["default"], ", ".join(row["fixes"]) or NONE, ", ".join(row["languages"]))


def _table(rows: list[dict[str, Any]]) -> str:
    """A line for each rule. On a terminal summaries are folded below themselves, and stand on lines of their own where it is narrow."""
    cells = [HEADS, *map(_cells, rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    room = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 0
    lines = []
    for row, tells in zip(cells, ["finds", *(row["summary"] for row in rows)], strict=True):
        padded = [f"{cell:<{width}}  " for cell, width in zip(row, widths, strict=True)]
        lead = "".join(padded)
        if room and room < len(lead) + NARROWEST:
            lines.append("".join(padded[:-1]).rstrip())
            lines += textwrap.wrap(f"{tells} ({row[-1]})", max(room, NARROWEST), initial_indent=INDENT, subsequent_indent=INDENT)
            continue
        wrapped = textwrap.wrap(tells, room - len(lead)) if room else [tells]
        lines += [lead + wrapped[0], *(" " * len(lead) + more for more in wrapped[1:])]
    return "\n".join(lines)


def _markdown(rows: list[dict[str, Any]]) -> str:
    lines = [f"| {' | '.join(HEADS)} | finds |", "|---" * (len(HEADS) + 1) + "|"]
    for row in rows:
        code, name, *rest = _cells(row)
        cells = (code, f"[{name}]({row['url']})", *rest, row["summary"].replace("|", "\\|"))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
