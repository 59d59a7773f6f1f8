"""``streamlint rule``: a rule's page, from its docstring and from what was measured."""

from __future__ import annotations

import json
import shutil
import sys
import textwrap

from streamlint.checks.base import Check
from streamlint.checks.rules import all_rules, code_of
from streamlint.commands import rules as table
from streamlint.commands.parser import Parser
from streamlint.report.pages import as_data, markdown
from streamlint.report.terminal import Paint, wants_color
from streamlint.support.errors import ConfigError, did_you_mean

EXAMPLES = (
    ("streamlint rule", "the table of rules, as `streamlint rules` prints it"),
    ("streamlint rule SL005", "a page"),
    ("streamlint rule d2h-read-before-sync", "the same, by name"),
    ("streamlint rule --all --output-format json", "all pages, for a program"),
)


def build_parser() -> Parser:
    """The parser of ``rule``."""
    parser = Parser("rule", "Explain rules, with what was measured about them.", EXAMPLES)
    parser.add_argument("rules", nargs="*", metavar="RULE", help="codes or names")
    parser.add_argument("--all", action="store_true", help="all rules")
    parser.add_argument("--output-format", choices=("text", "markdown", "json"), default="text", help="default: text")
    parser.add_argument("--color", choices=("auto", "always", "never"), default="auto", help="when to colour (default: auto)")
    return parser


def main(words: list[str]) -> int:
    """Print the pages of rules."""
    options = build_parser().read(words)
    if not options.rules and not options.all and options.output_format == "text":
        return table.main([])
    options.all = options.all or not options.rules
    rules = list(all_rules().values()) if options.all else [_rule(word) for word in options.rules]
    if options.output_format == "json":
        pages = [as_data(rule) for rule in rules]
        print(json.dumps(pages if options.all or len(pages) > 1 else pages[0], indent=2, default=str))
        return 0
    paint = Paint(options.output_format == "text" and wants_color(options.color, sys.stdout))
    columns = shutil.get_terminal_size((80, 24)).columns if options.output_format == "text" and sys.stdout.isatty() else 0
    print("\n".join(_painted(wrapped(markdown(rule), columns), paint) for rule in rules), end="")
    return 0


def _rule(word: str) -> type[Check]:
    if word not in code_of():
        raise ConfigError(f"unknown rule '{word}'{did_you_mean(word, code_of())}")
    return all_rules()[code_of()[word]]


def wrapped(text: str, columns: int) -> str:
    """A page whose paragraphs and list items fit a terminal (0: as it is); headings and code stay as they are."""
    if not columns:
        return text
    lines: list[str] = []
    code = joins = False
    for line in text.split("\n"):
        code ^= line.startswith("```")
        if code or not line or line.startswith(("```", "#")):
            lines.append(line)
            joins = False
        elif joins and not line.startswith(("-", "*", " ")):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
            joins = True
    return "\n".join(_folded(lines, max(min(columns, 120), 40)))


def _folded(lines: list[str], columns: int) -> list[str]:
    done: list[str] = []
    code = False
    for line in lines:
        code ^= line.startswith("```")
        if code or line.startswith(("```", "#")) or len(line) <= columns:
            done.append(line)
            continue
        lead = "  " if line.startswith(("-", "*", " ")) else ""
        done += textwrap.wrap(line, columns, subsequent_indent=lead, break_long_words=False, break_on_hyphens=False)
    return done


def _painted(text: str, paint: Paint) -> str:
    if not paint.on:
        return text
    return "\n".join(paint(line, "strong") if line.startswith("#") else line for line in text.split("\n"))
