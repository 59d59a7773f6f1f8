"""What is told of what was found: comments that hide findings, the rules of each file, baselines, and one finding for copies of a file."""

from __future__ import annotations

import collections
import os
from collections.abc import Collection, Mapping
from pathlib import Path

from streamlint.catalog import UNUSED
from streamlint.files import Found, matches, shown
from streamlint.findings import Finding, Report, Step
from streamlint.fingerprint import Statements, with_fingerprints
from streamlint.record import replace
from streamlint.selection import expand


def settle(report: Report, files: Mapping[str, Found], commented: Collection[str], statements: Statements) -> None:
    """Leave those findings in a report that are told of these files; ``commented`` are those with comments of ours.

    A file that was read only because another imports it is not reported on.
    """
    found = _without_copies([finding for finding in report.findings if finding.span.file in files], report.texts)
    kept = _kept(report, with_fingerprints(found, statements), files, commented)
    report.findings = with_fingerprints(sorted(kept, key=Finding.sort_key), statements)
    report.linted = list(files)
    _hold_against_baselines(report, files)


def codes_of(file: Found) -> frozenset[str]:
    """The rules that are on for a file: without those that the configuration ignores there."""
    settings = file.settings
    path, ignored = Path(os.path.abspath(file.path)), frozenset[str]()
    for pattern, words in settings.per_file_ignores:
        negated = pattern.glob.startswith("!")
        plain = replace(pattern, glob=pattern.glob.removeprefix("!"))
        if matches(plain, path) != negated:
            ignored |= expand(words)
    return settings.codes - ignored


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
    from streamlint import suppress

    text, strict = report.texts[file.path], file.settings.require_reasons
    outcome = suppress.suppress(file.path, text, file.language, findings, require_reasons=strict)
    report.problems += outcome.problems
    return outcome.findings + (suppress.unused(file.path, outcome.suppressions, ran) if UNUSED in ran else [])


def _hold_against_baselines(report: Report, files: Mapping[str, Found]) -> None:
    """Put the findings aside that a baseline knows, and tell which of its entries are stale."""
    paths = {found.settings.baseline for found in files.values()}
    if not any(paths):
        return
    from streamlint import baseline

    known = {path: baseline.load(path) for path in paths if path is not None}
    fresh: list[Finding] = []
    for finding in report.findings:
        path = files[finding.span.file].settings.baseline
        old = path is not None and known[path].hides(finding)
        (report.baselined if old else fresh).append(finding)
    report.findings = fresh
    for path, entries in known.items():
        report.baseline = shown(str(path))
        mine = [file for file, found in files.items() if found.settings.baseline == path]
        ran = frozenset[str]().union(*(codes_of(files[file]) for file in mine))
        if stale := entries.stale(mine, ran):
            listed = "".join(f"\n  {entry['filename']}: {entry['code']} {entry['message']}" for entry in stale)
            noun = "entry is" if len(stale) == 1 else "entries are"
            report.remarks.append(f"baseline {shown(str(path))}: {len(stale)} {noun} stale; write it anew with --write-baseline{listed}")


def _without_copies(findings: list[Finding], texts: Mapping[str, str]) -> list[Finding]:
    """One finding for files that are byte for byte the same: the places in the copies are steps of the first one's trail.

    The first is the one nearest to the root, where the original stands. The engine still sees every copy, because what links against one
    may not see the other.
    """
    first_of: dict[tuple[object, ...], int] = {}
    kept: list[Finding] = []
    for finding in sorted(findings, key=lambda finding: (finding.span.file.count("/"), Finding.sort_key(finding))):
        span = finding.span
        key = (texts.get(span.file) or span.file, finding.code, span.row, span.column, finding.message)
        if key in first_of and kept[first_of[key]].span.file != span.file:
            first = kept[first_of[key]]
            step = Step("the same in this file, a copy byte for byte", span)
            kept[first_of[key]] = replace(first, trail=(*first.trail, step))
        else:
            first_of[key] = len(kept)
            kept.append(finding)
    return kept
