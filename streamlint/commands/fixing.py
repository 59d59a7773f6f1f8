"""``--fix``, ``--diff`` and what goes with them."""

from __future__ import annotations

import argparse
import collections
from collections.abc import Callable, Mapping

from streamlint import TYPE_CHECKING
from streamlint.report.terminal import line, tame
from streamlint.support.cells import Cells
from streamlint.support.lazy import lazy
from streamlint.support.paths import display_path
from streamlint.support.reading import Unreadable, encode, is_notebook, language_of, read_source
from streamlint.support.records import field, record
from streamlint.triage.rewriting import rewrite

if TYPE_CHECKING:
    from streamlint.findings import Finding, Report
    from streamlint.runner import repairs
else:
    (repairs,) = lazy("streamlint.runner", "repairs")

MOST_PASSES = 10
CARRY_FIXES = ("full", "concise", "grouped", "json", "json-lines", "sarif", "rdjson")


@record(slots=True)
class Fixed:
    """What was mended, and what is left."""

    report: Report
    mended: list[Finding] = field(default_factory=list)
    texts: dict[str, tuple[str, str]] = field(default_factory=dict)  # by file: before and after
    read: dict[str, bytes] = field(default_factory=dict)  # by file: what the text before was read from


def wanted(options: argparse.Namespace) -> bool:
    """Whether files, or standard input, are to change."""
    return bool(options.fix or options.fix_only or options.diff)


def worth_finding(options: argparse.Namespace, formats: list[str]) -> bool:
    """Whether anything of this run shows fixes."""
    return wanted(options) or options.unsafe_fixes or options.statistics or any(format in CARRY_FIXES for format in formats)


def fix(options: argparse.Namespace, report: Report, lint: Callable[[Mapping[str, bytes]], Report]) -> Fixed:
    """Apply fixes and re-lint, until nothing is left to fix. Nothing is written."""
    done = Fixed(report)
    now: dict[str, bytes] = {}
    for _ in range(MOST_PASSES):
        step = repairs.repairs(done.report, options.unsafe_fixes)
        if not step.mended:
            break
        done.mended += step.mended
        for file, text in step.texts.items():
            before = done.report.trials[file].text  # type: ignore[attr-defined]
            done.texts[file] = (done.texts[file][0] if file in done.texts else before, text)
            done.read.setdefault(file, _read(options, file))
            now[file] = _encoded(text, file, done.read[file], options)
        done.report = lint(now)
    return done


def _read(options: argparse.Namespace, file: str) -> bytes:
    if options.paths == ["-"]:
        return bytes(options.stdin)
    try:
        return read_source(file)
    except Unreadable:
        return b""  # writing it will fail


def _encoded(text: str, file: str, data: bytes, options: argparse.Namespace) -> bytes:
    if options.paths == ["-"] and not is_notebook(file):
        return text.encode()
    try:
        return encode(text, data, language_of(file) or "python", file)
    except (UnicodeError, Unreadable):
        return text.encode("utf-8", "surrogatepass")  # writing it will fail


def passed_on(options: argparse.Namespace, done: Fixed) -> str:
    """What standard input is after the fixes."""
    data = options.stdin
    for file, (_, after) in done.texts.items():
        if not is_notebook(file):
            return after
        data = _encoded(after, file, data, options)
    return str(data.decode("utf-8", "replace"))


def cells_of(options: argparse.Namespace, done: Fixed) -> Cells:
    """The places in notebooks of a report that was made after the fixes."""
    if options.paths != ["-"]:
        return Cells()
    name = display_path(options.stdin_filename or "-")
    return Cells({name: passed_on(options, done).encode()} if is_notebook(name) else {})


def write(done: Fixed) -> None:
    """Give the files their new texts."""
    for file, (before, after) in sorted(done.texts.items()):
        rewrite(file, before, after)


def shown_fixes(mended: list[Finding]) -> list[str]:
    """What was mended, by file and rule."""
    counts: dict[str, collections.Counter[tuple[str, str]]] = {}
    for finding in mended:
        counts.setdefault(finding.span.file, collections.Counter())[finding.code, finding.name] += 1
    lines = []
    for file, rules in sorted(counts.items()):
        lines.append(tame(f"  {line(file)}:"))
        lines += [f"    {count} x {code} ({name})" for (code, name), count in sorted(rules.items())]
    return lines


def unsafe_left(report: Report) -> int:
    """How many findings only ``--unsafe-fixes`` would mend."""
    return sum(finding.fix is not None and finding.fix.applicability == "unsafe" for finding in report.findings)


def footer(report: Report, unsafe: bool) -> str:
    """How many findings ``--fix`` would mend, and how many more ``--unsafe-fixes``."""
    kinds = collections.Counter(finding.fix.applicability for finding in report.findings if finding.fix)
    now = kinds["safe"] + (kinds["unsafe"] if unsafe else 0)
    parts = [f"{now} fixable with --fix"] if now else []
    if kinds["unsafe"] and not unsafe:
        parts.append(f"{kinds['unsafe']} more with --unsafe-fixes" if now else f"{kinds['unsafe']} fixable with --fix --unsafe-fixes")
    return f"[*] {', '.join(parts)}" if parts else ""
