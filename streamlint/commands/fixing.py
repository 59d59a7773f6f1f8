"""``--fix``, ``--diff`` and what goes with them."""

from __future__ import annotations

import argparse
import collections
import difflib
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from streamlint.repairs import Repairs, repairs
from streamlint.report.terminal import Paint, plain

if TYPE_CHECKING:
    from streamlint.findings import Finding, Report

MOST_PASSES = 10
CARRY_FIXES = ("full", "concise", "grouped", "json", "json-lines", "sarif", "rdjson")


@dataclass(slots=True)
class Fixed:
    """What was mended, and what is left."""

    report: Report
    mended: list[Finding] = field(default_factory=list)
    text: str | None = None  # of standard input


def wanted(options: argparse.Namespace) -> bool:
    """Whether files, or standard input, are to change."""
    return bool(options.fix or options.fix_only or options.diff)


def worth_finding(options: argparse.Namespace, formats: list[str]) -> bool:
    """Whether anything of this run shows fixes."""
    return wanted(options) or options.unsafe_fixes or options.statistics or any(format in CARRY_FIXES for format in formats)


def fix(options: argparse.Namespace, report: Report, lint: Callable[[bytes | None], Report]) -> Fixed:
    """Apply fixes and lint again, until nothing is left to mend."""
    done = Fixed(report)
    for _ in range(MOST_PASSES):
        step = repairs(done.report, options.unsafe_fixes)
        if not step.mended:
            break
        done.mended += step.mended
        if options.paths == ["-"]:
            (done.text,) = step.texts.values()
            done.report = lint(done.text.encode())
        else:
            _write(step, done.report)
            done.report = lint(None)
    return done


def _write(step: Repairs, report: Report) -> None:
    from streamlint.rewriting import rewrite

    for file, text in step.texts.items():
        rewrite(file, report.trials[file].text, text)  # type: ignore[attr-defined]


def diff(options: argparse.Namespace, report: Report, paint: Paint) -> int:
    """Print what would change; how many findings it would mend."""
    step = repairs(report, options.unsafe_fixes)
    styles = {"+": "help", "-": "error", "@": "label"}
    for file, text in sorted(step.texts.items()):
        before = report.trials[file].text.splitlines(keepends=True)  # type: ignore[attr-defined]
        for line in difflib.unified_diff(before, text.splitlines(keepends=True), plain(file), plain(file)):
            body = line.rstrip("\n")
            mark = "" if line.endswith("\n") else "\n\\ No newline at end of file"
            sys.stdout.write((paint(body, styles[body[0]]) if body[:1] in styles else body) + mark + "\n")
        sys.stdout.write("\n")
    return len(step.mended)


def shown_fixes(mended: list[Finding]) -> list[str]:
    """What was mended, by file and rule."""
    counts: dict[str, collections.Counter[tuple[str, str]]] = {}
    for finding in mended:
        counts.setdefault(finding.span.file, collections.Counter())[finding.code, finding.name] += 1
    lines = []
    for file, rules in sorted(counts.items()):
        lines.append(f"  {plain(file)}:")
        lines += [f"    {count} x {code} ({name})" for (code, name), count in sorted(rules.items())]
    return lines


def footer(report: Report, unsafe: bool) -> str:
    """How many findings ``--fix`` would mend, and how many more ``--unsafe-fixes``."""
    kinds = collections.Counter(finding.fix.applicability for finding in report.findings if finding.fix)
    now = kinds["safe"] + (kinds["unsafe"] if unsafe else 0)
    parts = [f"{now} fixable with --fix"] if now else []
    if kinds["unsafe"] and not unsafe:
        parts.append(f"{kinds['unsafe']} more with --unsafe-fixes" if now else f"{kinds['unsafe']} fixable with --fix --unsafe-fixes")
    return f"[*] {', '.join(parts)}" if parts else ""
