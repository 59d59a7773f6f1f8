"""``streamlint check``."""

from __future__ import annotations

import sys
from pathlib import Path

from streamlint import TYPE_CHECKING, progress
from streamlint.commands import fixing
from streamlint.commands.check_options import build_parser
from streamlint.commands.running import demand_files, keep_changed, report_of, resolver_of, targets_of
from streamlint.commands.telling import CLEAN, FOUND, count_of, say, tell, write
from streamlint.config import Resolver
from streamlint.errors import ConfigError
from streamlint.report.terminal import Paint, line, tame, wants_color

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from streamlint.findings import Report


def main(words: list[str]) -> int:
    """Lint, print, and say how it went."""
    options = build_parser().read(["--add-ignore=" if word == "--add-ignore" else word for word in words])
    options.words, options.paths = words, options.paths or ["."]
    if "-" in options.paths and len(options.paths) > 1:
        raise ConfigError("'-' reads standard input and takes no other path")
    if (options.executor is None) != (options.scheduler is None):
        raise ConfigError("--executor dask needs --scheduler ADDRESS" if options.executor else "--scheduler needs --executor dask")
    if options.watch and options.shard is None:
        from streamlint.commands.watch import watch

        return watch(options.paths, lambda: _run(options))
    return _run(options)


def _run(options: argparse.Namespace) -> int:
    with progress.told(options.quiet):
        return _run_told(options)


def _run_told(options: argparse.Namespace) -> int:
    resolver = resolver_of(options)
    if options.shard is not None:
        from streamlint.commands.shard import run_shard

        return run_shard(options, resolver)
    if options.show_settings:
        return _show_settings(options, resolver)
    if options.show_files:
        return _show_files(options, resolver)
    targets = targets_of(options, resolver)
    if options.explain_silence:
        return _explain_silence(options, resolver, targets)
    options.fixes = not options.write_baseline and fixing.worth_finding(options, [format for format, _ in targets])

    def look(instead: Mapping[str, bytes] | None = None) -> Report:
        report = report_of(options, resolver, instead)
        demand_files(options, report.files)
        if options.since is not None:
            keep_changed(options, report)
        return report

    report = look()
    progress.finish()
    if options.write_baseline:
        return _write_baseline(options, report)
    if options.add_ignore is not None:
        return _add_ignores(options, report)
    done = fixing.fix(options, report, look) if fixing.wanted(options) else fixing.Fixed(report)
    progress.finish()
    if options.diff:
        return _diff(options, done)
    if options.paths != ["-"]:
        fixing.write(done)
    return tell(options, done, targets, resolver)


def _diff(options: argparse.Namespace, done: fixing.Fixed) -> int:
    fixing.print_diff(done, Paint(wants_color(options.color, sys.stdout)))
    more = 0 if options.unsafe_fixes else fixing.unsafe_left(done.report)
    say(options, f"would fix {count_of(len(done.mended), 'finding')}" + (f"; {more} more with --unsafe-fixes" if more else ""))
    return FOUND if done.mended and not options.exit_zero else CLEAN


def _write_baseline(options: argparse.Namespace, report: Report) -> int:
    from streamlint import baseline

    listed = baseline.write(Path(options.write_baseline), report.findings, report.linted)
    say(options, f"wrote {count_of(listed, 'finding')} to {options.write_baseline}")
    return CLEAN


def _add_ignores(options: argparse.Namespace, report: Report) -> int:
    """Writes comments for all findings but those about comments."""
    from streamlint.ignores import add_to_files

    if options.paths == ["-"]:
        raise ConfigError("--add-ignore writes to files, not to standard input")
    findings = [finding for finding in report.findings if finding.code != "SL900"]
    hidden = add_to_files(findings, options.add_ignore.strip(), report.texts)
    say(options, f"added comments for {count_of(hidden, 'finding')}")
    if left := len(findings) - hidden:
        say(options, f"no comment could be added for {count_of(left, 'finding')}")
    return CLEAN if not left else FOUND


def _explain_silence(options: argparse.Namespace, resolver: Resolver, targets: list[tuple[str, str | None]]) -> int:
    """Answers why no finding stands at a line: in JSON where that is asked for, else as text."""
    import json

    from streamlint.silence import explain

    answer = explain(options.paths, options.explain_silence, resolver, options.jobs)
    for format, file in targets:
        text = json.dumps(answer.as_json(), indent=2) + "\n" if format.startswith("json") else answer.as_text()
        if file is None:
            sys.stdout.write(text)
        else:
            write(file, text)
    return CLEAN


def _show_files(options: argparse.Namespace, resolver: Resolver) -> int:
    from streamlint.files import discover

    found = discover(options.paths, resolver).files
    print(*(tame(line(file.path)) for file in found), sep="\n", end="\n" if found else "")
    demand_files(options, len(found))
    return CLEAN


def _show_settings(options: argparse.Namespace, resolver: Resolver) -> int:
    """The settings of the first file, as ruff shows them."""
    import dataclasses

    from streamlint.files import discover

    found = [] if options.paths == ["-"] else discover(options.paths, resolver).files
    settings = found[0].settings if found else resolver.of_folder(Path.cwd())
    print(f"# settings for {line(found[0].path) if found else '.'}")
    for field in dataclasses.fields(settings):
        print(f"{field.name.replace('_', '-')} = {line(_setting(getattr(settings, field.name)))}")
    print(f"rules = {', '.join(sorted(settings.codes))}")
    return CLEAN


def _setting(value: object) -> str:
    if isinstance(value, tuple):
        return "[" + ", ".join(_setting(item) for item in value) + "]"
    if hasattr(value, "glob") and hasattr(value, "root"):
        return f"{getattr(value, 'glob', '')!r} in {getattr(value, 'root', '')}" if not isinstance(value, Path) else str(value)
    return str(value) if isinstance(value, Path) else repr(value)
