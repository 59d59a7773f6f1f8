"""``streamlint evidence``: what was verified, where and when; taken from one machine to another."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from streamlint.checks.rules import code_of
from streamlint.commands.parser import Parser
from streamlint.report.terminal import line
from streamlint.support.errors import ConfigError, did_you_mean
from streamlint.support.writing import write_output
from streamlint.verify import evidence
from streamlint.verify.page import render

ACTIONS = ("list", "show", "export", "import")
EXAMPLES = (
    ("streamlint evidence list", "platforms, and how many verdicts of each"),
    ("streamlint evidence show SL003", "the verdicts on a rule"),
    ("streamlint evidence show --output-format html > verify.html", "a page with timelines"),
    ("streamlint evidence export mine.json", "what was verified on this machine"),
    ("streamlint evidence import mine.json", "and there it is on another"),
)
FORMATS = ("full", "json", "html")


def build_parser() -> Parser:
    """The parser of ``evidence``."""
    parser = Parser("evidence", "Show, export and import what was verified, where and when.", EXAMPLES)
    parser.add_argument("action", choices=ACTIONS, metavar="{" + ",".join(ACTIONS) + "}", help="what to do")
    parser.add_argument("words", nargs="*", metavar="RULE|FILE", help="rules to show; the file to write; the files to read")
    parser.add_argument("--platform", default="", metavar="TEXT", help="only platforms whose name holds this text")
    parser.add_argument("--shipped", action="store_true", help="export what came with streamlint as well")
    parser.add_argument("--evidence", type=Path, metavar="DIR", help="a folder instead of the user's own")
    parser.add_argument("--output-format", choices=FORMATS, default="full", help="of list and show (default: full)")
    return parser


def main(words: list[str]) -> int:
    """Run one of the actions; 0, or 2 where a file cannot be read or written."""
    options = build_parser().read(words)
    if options.action == "import":
        return _import(options)
    if options.action == "export":
        return _export(options)
    found = _chosen(options, evidence.everything(options.evidence))
    if options.action == "list":
        return _list(options, found)
    return _show(options, found)


def _chosen(options: argparse.Namespace, found: Sequence[evidence.Entry]) -> list[evidence.Entry]:
    wanted = options.platform.lower()
    return [entry for entry in found if wanted in str(entry["platform"]).lower()]


def _list(options: argparse.Namespace, found: Sequence[evidence.Entry]) -> int:
    if options.words:
        raise ConfigError("'list' takes no rule and no file; 'show' takes rules")
    by_platform: dict[str, list[evidence.Entry]] = {}
    for entry in found:
        by_platform.setdefault(str(entry["platform"]), []).append(entry)
    rows = [{"platform": name, **_counts(entries)} for name, entries in by_platform.items()]
    if options.output_format == "json":
        print(json.dumps(rows, indent=2, ensure_ascii=False))
        return 0
    for row in rows:
        verdicts = ", ".join(f"{count} {verdict}" for verdict, count in row["verdicts"].items())
        print(line(f"{row['platform']}: {row['cases']} cases of {row['rules']} rules, {verdicts}; last on {row['date']}"))
    if not rows:
        print("nothing was verified yet; run 'streamlint verify'", file=sys.stderr)
    return 0


def _counts(entries: Sequence[evidence.Entry]) -> dict[str, Any]:
    verdicts = Counter(str(entry["verdict"]) for entry in entries)
    return {
        "cases": len(entries),
        "rules": len({entry["rule"] for entry in entries}),
        "verdicts": dict(sorted(verdicts.items())),
        "date": max(str(entry.get("date", "")) for entry in entries),
    }


def _show(options: argparse.Namespace, found: Sequence[evidence.Entry]) -> int:
    for word in options.words:
        if word not in code_of():
            raise ConfigError(f"unknown rule '{word}'{did_you_mean(word, code_of())}")
    codes = {code_of()[word] for word in options.words}
    selected = [entry for entry in found if not codes or entry["rule"] in codes]
    if options.output_format == "json":
        print(json.dumps(selected, indent=2, ensure_ascii=False))
    elif options.output_format == "html":
        _page(selected)
    else:
        for entry in selected:
            print(line(_line(entry)))
        if not selected:
            print("nothing was verified of that", file=sys.stderr)
    return 0


def _page(selected: Sequence[evidence.Entry]) -> None:
    platforms = {str(entry["platform"]) for entry in selected}
    name = platforms.pop() if len(platforms) == 1 else f"{len(platforms)} platforms"
    try:
        page = render({"gpu": name}, selected, ())
    except ImportError:
        raise ConfigError("the page needs Jinja2, which is not installed; pip install jinja2") from None
    sys.stdout.write(page)


def _line(entry: Mapping[str, Any]) -> str:
    given = "".join(f", {name} {value}" for name, value in (entry.get("facts") or {}).items())
    versions = "".join(f", {name} {version}" for name, version in (entry.get("packages") or {}).items())
    head = f"{entry['rule']} {entry.get('case', '')} [{entry.get('api', '')}{given}] {entry['verdict']}"
    return f"{head}: {entry.get('reason', '')} ({entry['platform']}{versions}, {entry.get('date', '')})"


def _export(options: argparse.Namespace) -> int:
    if len(options.words) != 1:
        raise ConfigError("'export' takes one file ('-' is standard output)")
    whole = evidence.everything(options.evidence) if options.shipped else evidence.read(options.evidence or evidence.user_folder())
    found = _chosen(options, whole)
    text = evidence.export(found)
    if options.words[0] == "-":
        sys.stdout.write(text)
        return 0
    try:
        write_output(options.words[0], text)
    except OSError as problem:
        raise ConfigError(f"cannot write {options.words[0]}: {problem.strerror}") from None
    print(f"{len(found)} verdicts written to {options.words[0]}", file=sys.stderr)
    return 0


def _import(options: argparse.Namespace) -> int:
    if not options.words:
        raise ConfigError("'import' takes a file ('-' is standard input)")
    found: list[evidence.Entry] = []
    for word in options.words:  # all are read before any is kept
        if word == "-" and sys.stdin is None:
            raise ConfigError("standard input is closed")
        try:
            text = sys.stdin.read() if word == "-" else Path(word).read_text(encoding="utf-8")
            found += evidence.parse(text)
        except OSError as problem:
            raise ConfigError(f"cannot read {word}: {problem.strerror}") from None
        except (UnicodeDecodeError, evidence.UnreadableError) as problem:
            raise ConfigError(f"{word} is not to be imported: {problem}") from None
    for name, count in evidence.take_in(_chosen(options, found), options.evidence).items():
        print(f"{name}: {count} verdicts", file=sys.stderr)
    return 0
