"""What is reported of what was found: comments that hide findings, the rules of each file, files that could not be read, and baselines."""

from __future__ import annotations

import collections
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.checks.catalog import UNREADABLE, UNREADABLE_NAME, UNUSED
from streamlint.config.selection import expand, names_unreadable
from streamlint.discovery.files import Found, matches
from streamlint.findings import LEVELS, Category, Finding, Problem, Report, Span
from streamlint.findings.confidence import level
from streamlint.frontends import NOT_READ
from streamlint.support.lazy import lazy
from streamlint.support.paths import display_path
from streamlint.support.records import replace
from streamlint.triage.fingerprint import Statements, with_fingerprints

if TYPE_CHECKING:
    from streamlint.triage import baseline, suppress
else:
    baseline, suppress = lazy("streamlint.triage", "baseline", "suppress")


def apply_filters(report: Report, files: Mapping[str, Found], commented: Collection[str], statements: Statements) -> None:
    """Leave those findings in a report that count for these files; ``commented`` are those with comments of ours.

    A file that was read only because another imports it is not reported on.
    """
    found = [finding for finding in report.findings if finding.span.file in files]
    unread = {problem.file for problem in report.problems if problem.lost}
    kept = _kept(report, with_fingerprints(found, statements), files, commented) + _unreadable(report, files)
    report.findings = with_fingerprints(sorted(kept, key=Finding.sort_key), statements)
    report.linted = list(files)
    _hold_against_baselines(report, files, unread)
    _leave_out_unsure(report, files)


def reported_once(problems: list[Problem]) -> list[Problem]:
    """A parser that is missing is a problem of the installation: it is reported at the first file that wants it, with their number."""
    files: dict[str, list[str]] = {}
    for problem in problems:
        if problem.message.startswith(NOT_READ):
            files.setdefault(problem.message, []).append(problem.file)
    reported = [problem for problem in problems if problem.message not in files]
    for message, mine in files.items():
        others = len(set(mine)) - 1
        more = f"left out, with {others} other{'s' * (others > 1)}:" if others else "left out:"
        reported.append(Problem(min(mine), message.replace("left out:", more, 1)))
    return reported


def codes_of(file: Found) -> frozenset[str]:
    """The rules that are on for a file: without those that the configuration ignores there."""
    return file.settings.codes - expand(_ignored_there(file))


def _ignored_there(file: Found) -> list[str]:
    """The words that the per-file ignores of a file name."""
    path, words = Path(os.path.abspath(file.path)), list[str]()
    for pattern, ignored in file.settings.per_file_ignores:
        negated = pattern.glob.startswith("!")
        plain = replace(pattern, glob=pattern.glob.removeprefix("!"))
        if matches(plain, path) != negated:
            words += ignored
    return words


def _kept(report: Report, findings: list[Finding], files: Mapping[str, Found], commented: Collection[str]) -> list[Finding]:
    """The findings that no per-file ignore and no comment hides, and those about the comments."""
    by_file = collections.defaultdict(list)
    for finding in findings:
        by_file[finding.span.file].append(finding)
    kept: list[Finding] = []
    for file in sorted({*by_file, *commented}):
        ran = codes_of(files[file])
        mine = [finding for finding in by_file[file] if finding.code in ran]
        kept += _after_comments(report, files[file], mine, ran) if file in commented else mine
    return kept


def _after_comments(report: Report, file: Found, findings: list[Finding], ran: frozenset[str]) -> list[Finding]:
    text, strict = report.texts[file.path], file.settings.require_reasons
    outcome = suppress.suppress(file.path, text, file.language, findings, require_reasons=strict)
    report.problems += outcome.problems
    return outcome.findings + (suppress.unused(file.path, outcome.suppressions, ran) if UNUSED in ran else [])


def _hold_against_baselines(report: Report, files: Mapping[str, Found], unread: Collection[str]) -> None:
    """Put the findings aside that a baseline knows, and list which of its entries are stale; those of code that was not read may not be."""
    paths = {found.settings.baseline for found in files.values()}
    if not any(paths):
        return
    known = {path: baseline.load(path) for path in paths if path is not None}
    fresh: list[Finding] = []
    for finding in report.findings:
        path = files[finding.span.file].settings.baseline
        old = path is not None and known[path].hides(finding)
        (report.baselined if old else fresh).append(finding)
    report.findings = fresh
    for path, entries in known.items():
        report.baseline = display_path(str(path))
        mine = [file for file, found in files.items() if found.settings.baseline == path and file not in unread]
        ran = frozenset[str]().union(*(codes_of(files[file]) for file in mine))
        if stale := entries.stale(mine, ran):
            listed = "".join(f"\n  {entry['filename']}: {entry['code']} {entry['message']}" for entry in stale)
            noun = "entry is" if len(stale) == 1 else "entries are"
            report.remarks.append(
                f"baseline {display_path(str(path))}: {len(stale)} {noun} stale; write it anew with --write-baseline{listed}"
            )


def _leave_out_unsure(report: Report, files: Mapping[str, Found]) -> None:
    """Leave out what is less sure than the settings of its file ask for: last, so that comments and baselines still know it."""
    least = {file: LEVELS.index(found.settings.confidence) for file, found in files.items()}
    if any(least.values()):
        sure = [finding for finding in report.findings if LEVELS.index(level(finding)) >= least[finding.span.file]]
        report.unsure, report.findings = len(report.findings) - len(sure), sure


def _unreadable(report: Report, files: Mapping[str, Found]) -> list[Finding]:
    """Files and functions that could not be read, as findings; those that the configuration ignores by name are not reported at all."""
    lost = dict.fromkeys(problem for problem in report.problems if problem.lost and problem.file in files)
    report.problems = [problem for problem in report.problems if problem not in lost]
    kept = [problem for problem in lost if not ignores_unreadable(files[problem.file])]
    return [
        Finding(
            UNREADABLE,
            UNREADABLE_NAME,
            Category.PORTABILITY,
            problem.message,
            Span(problem.file, problem.row, problem.column, problem.row, problem.column),
        )
        for problem in kept
    ]


def ignores_unreadable(file: Found) -> bool:
    """Whether the configuration ignores SL000 for a file. A selection of other rules does not: what was not read was not linted."""
    return any(names_unreadable(layer.unwanted) for layer in file.settings.selectors) or names_unreadable(_ignored_there(file))
