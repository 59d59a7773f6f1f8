"""The modes of ``check`` that print no findings: patches, baselines, comments, files, settings."""

from __future__ import annotations

import sys
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.commands import fixing
from streamlint.commands.diff import print_diff
from streamlint.commands.reporting import CLEAN, FOUND, count_of, say
from streamlint.commands.running import demand_files
from streamlint.config.settings import Resolver, Settings
from streamlint.discovery.files import discover
from streamlint.report.terminal import Paint, line, tame, wants_color
from streamlint.support.errors import ConfigError
from streamlint.support.records import names_of
from streamlint.triage import baseline
from streamlint.triage.ignores import add_to_files

if TYPE_CHECKING:
    import argparse

    from streamlint.findings import Report


def instead(options: argparse.Namespace, done: fixing.Fixed) -> int:
    """Note the findings in a baseline or in comments, or show what fixes would change."""
    if options.write_baseline:
        return _write_baseline(options, done.report)
    return _add_ignores(options, done.report) if options.add_ignore is not None else _diff(options, done)


def _diff(options: argparse.Namespace, done: fixing.Fixed) -> int:
    print_diff(done, Paint(wants_color(options.color, sys.stdout)))
    more = 0 if options.unsafe_fixes else fixing.unsafe_left(done.report)
    say(options, f"would fix {count_of(len(done.mended), 'finding')}" + (f"; {more} more with --unsafe-fixes" if more else ""))
    return FOUND if done.mended and not options.exit_zero else CLEAN


def _write_baseline(options: argparse.Namespace, report: Report) -> int:
    listed = baseline.write(Path(options.write_baseline), report.findings, report.linted)
    say(options, f"wrote {count_of(listed, 'finding')} to {options.write_baseline}")
    return CLEAN


def _add_ignores(options: argparse.Namespace, report: Report) -> int:
    """Writes comments for all findings but those about comments."""
    if options.paths == ["-"]:
        raise ConfigError("--add-ignore writes to files, not to standard input")
    findings = [finding for finding in report.findings if finding.code != "SL900"]
    hidden = add_to_files(findings, options.add_ignore.strip(), report.texts)
    say(options, f"added comments for {count_of(hidden, 'finding')}")
    if left := len(findings) - hidden:
        say(options, f"no comment could be added for {count_of(left, 'finding')}")
    return CLEAN if not left else FOUND


def show_files(options: argparse.Namespace, resolver: Resolver) -> int:
    found = discover(options.paths, resolver).files
    print(*(tame(line(file.path)) for file in found), sep="\n", end="\n" if found else "")
    demand_files(options, len(found))
    return CLEAN


def show_settings(options: argparse.Namespace, resolver: Resolver) -> int:
    """The settings of the first file, as ruff shows them."""
    found = [] if options.paths == ["-"] else discover(options.paths, resolver).files
    settings = found[0].settings if found else resolver.of_folder(Path.cwd())
    print(f"# settings for {line(found[0].path) if found else '.'}")
    for name in names_of(Settings):
        print(f"{name.replace('_', '-')} = {line(_setting(getattr(settings, name)))}")
    print(f"rules = {', '.join(sorted(settings.codes))}")
    return CLEAN


def _setting(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_setting(item) for item in value) + "]"
    if hasattr(value, "glob") and hasattr(value, "root"):
        return f"{getattr(value, 'glob', '')!r} in {getattr(value, 'root', '')}" if not isinstance(value, Path) else str(value)
    return str(value) if isinstance(value, Path) else repr(value)
