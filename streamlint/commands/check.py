"""``streamlint check``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from streamlint import TYPE_CHECKING, progress
from streamlint.commands import fixing
from streamlint.commands.check_options import build_parser, inline_settings, overrides
from streamlint.config import FORMATS, Resolver, Settings, apply, load
from streamlint.errors import ConfigError, PathError
from streamlint.reading import MOST_BYTES
from streamlint.report.terminal import Paint, line, tame, told, wants_color
from streamlint.targets import read_targets

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from streamlint.cache.store import Store
    from streamlint.cluster.client import Cluster
    from streamlint.findings import Finding, Report

CLEAN, FOUND, FAILED = 0, 1, 2


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
    resolver = _resolver(options)
    if options.shard is not None:
        from streamlint.commands.shard import run_shard

        return run_shard(options, resolver)
    if options.show_settings:
        return _show_settings(options, resolver)
    if options.show_files:
        return _show_files(options, resolver)
    targets = _targets(options, resolver)
    if options.explain_silence:
        return _explain_silence(options, resolver, targets)
    options.fixes = not options.write_baseline and fixing.worth_finding(options, [format for format, _ in targets])

    def look(instead: Mapping[str, bytes] | None = None) -> Report:
        report = _lint(options, resolver, instead)
        _demand_files(options, report.files)
        if options.since is not None:
            _keep_changed(options, report)
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
    return _tell(options, done, targets, resolver)


def _tell(options: argparse.Namespace, done: fixing.Fixed, targets: list[tuple[str, str | None]], resolver: Resolver) -> int:
    report = done.report
    if report.models and not options.quiet:
        from streamlint.commands.unused import warning

        report.remarks += [told for told in [warning(report, options.paths)] if told is not None]
    if options.paths == ["-"] and fixing.wanted(options):
        sys.stdout.write(next((after for _, after in done.texts.values()), None) or _input(options).decode("utf-8", "replace"))
        targets = [(format, file) for format, file in targets if file]
    if not options.fix_only:
        _print_findings(options, report, targets)
    if options.verbose and not options.quiet:
        used = ", ".join(line(str(path)) for path in resolver.sources())
        print(f"configuration: {used or 'none'}", file=sys.stderr)
    _print_remarks(options, done)
    return exit_code(options, done)


def lint(words: list[str]) -> Report:
    """What ``check`` finds with this command line, for other commands."""
    options = build_parser().read(words)
    options.fixes = False
    report = _lint(options, _resolver(options))
    _demand_files(options, report.files)
    return report


def _resolver(options: argparse.Namespace) -> Resolver:
    fixed = None
    inline: dict[str, Any] = {}
    for text in options.config:
        if "=" in text and not os.path.exists(text):
            inline.update(inline_settings(text))
        elif fixed:
            raise ConfigError("--config names more than one file")
        else:
            fixed = load(Path(os.path.abspath(text)))
    if options.isolated:
        if fixed:
            raise ConfigError("--isolated ignores configuration files, --config names one")
        fixed = Settings()
    if inline:
        apply(Settings(), inline, Path.cwd(), "--config")
    attributes = {"force_exclude": options.force_exclude, "default_excludes": options.default_excludes}
    if options.write_baseline:
        attributes["baseline"] = None  # what is listed anew is looked at as a whole
    return Resolver(fixed, [("--config", inline), ("command line", overrides(options))], **attributes)


def _lint(options: argparse.Namespace, resolver: Resolver, instead: Mapping[str, bytes] | None = None) -> Report:
    from streamlint import linter

    coverage = options.coverage or options.coverage_file is not None
    if options.paths == ["-"]:
        name = options.stdin_filename or "-"
        data = next(iter(instead.values())) if instead else _input(options)
        return linter.run_text(data, name, resolver, coverage, fixes=options.fixes)
    store = None if instead else _store(options, resolver)
    told = {"fixes": options.fixes, "trials": fixing.wanted(options)}
    cluster = _cluster(options)
    jobs = options.jobs if cluster is None else 1  # Dask has threads here: nothing is forked beside them
    report = linter.run(options.paths, resolver, coverage, jobs, **told, store=store, instead=instead, cluster=cluster)
    if store is not None and store.trouble:
        report.remarks.append(store.trouble)
    return report


def _cluster(options: argparse.Namespace) -> Cluster | None:
    """Where the files are analysed, if not here; asked once a run."""
    if options.executor is None:
        return None
    if not hasattr(options, "cluster"):
        from streamlint.cluster.client import Cluster

        options.cluster = Cluster(options.scheduler)
    cluster: Cluster = options.cluster
    return cluster


def _store(options: argparse.Namespace, resolver: Resolver) -> Store | None:
    """What earlier runs found; None with ``--no-cache``, or ``STREAMLINT_NO_CACHE`` in the environment."""
    if options.no_cache or os.environ.get("STREAMLINT_NO_CACHE", "").lower() in ("1", "true", "yes"):
        return None
    from streamlint.cache.store import open_store

    if not hasattr(options, "store"):
        options.store = open_store(resolver.of_folder(Path.cwd()).cache_dir)
    store: Store = options.store
    return store


def _input(options: argparse.Namespace) -> bytes:
    """Standard input, read once."""
    if not hasattr(options, "stdin"):
        if sys.stdin is None:
            raise ConfigError("standard input is closed")
        options.stdin = sys.stdin.buffer.read(MOST_BYTES + 1)
        if len(options.stdin) > MOST_BYTES:
            raise ConfigError(f"standard input is larger than {MOST_BYTES >> 20} MiB")
    data: bytes = options.stdin
    return data


def _diff(options: argparse.Namespace, done: fixing.Fixed) -> int:
    fixing.print_diff(done, Paint(wants_color(options.color, sys.stdout)))
    more = 0 if options.unsafe_fixes else fixing.unsafe_left(done.report)
    _say(options, f"would fix {_count(len(done.mended), 'finding')}" + (f"; {more} more with --unsafe-fixes" if more else ""))
    return FOUND if done.mended and not options.exit_zero else CLEAN


def _write_baseline(options: argparse.Namespace, report: Report) -> int:
    from streamlint import baseline

    listed = baseline.write(Path(options.write_baseline), report.findings, report.linted)
    _say(options, f"wrote {_count(listed, 'finding')} to {options.write_baseline}")
    return CLEAN


def _keep_changed(options: argparse.Namespace, report: Report) -> None:
    from streamlint.changes import Changes

    changes = Changes(options.since)
    first = Path(options.stdin_filename or ".") if options.paths == ["-"] else Path(options.paths[0])
    changes.check(first if first.is_dir() else first.parent)
    report.findings = changes.keep(report.findings)
    report.remarks += changes.remarks


def _add_ignores(options: argparse.Namespace, report: Report) -> int:
    """Writes comments for all findings but those about comments."""
    from streamlint.ignores import add_to_files

    if options.paths == ["-"]:
        raise ConfigError("--add-ignore writes to files, not to standard input")
    findings = [finding for finding in report.findings if finding.code != "SL900"]
    hidden = add_to_files(findings, options.add_ignore.strip(), report.texts)
    _say(options, f"added comments for {_count(hidden, 'finding')}")
    if left := len(findings) - hidden:
        _say(options, f"no comment could be added for {_count(left, 'finding')}")
    return CLEAN if not left else FOUND


def _say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        sys.stdout.flush()
        print(line(text), file=sys.stderr)


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
            _write(file, text)
    return CLEAN


def _targets(options: argparse.Namespace, resolver: Resolver) -> list[tuple[str, str | None]]:
    """Formats, and the file that each is written to (None: stdout)."""
    asked = options.output_format or [resolver.of_folder(Path.cwd()).output_format]
    return read_targets(asked, FORMATS, options.output_file)


def _print_findings(options: argparse.Namespace, report: Report, targets: list[tuple[str, str | None]]) -> None:
    for format, file in targets:
        color = file is None and wants_color(options.color, sys.stdout)
        text = _rendered(options, report, format, color, file)
        if file is None:
            sys.stdout.write(text)
            continue
        _write(file, text)


def _write(file: str, text: str) -> None:
    from streamlint.writing import write_output

    try:
        write_output(file, text)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None


def _rendered(options: argparse.Namespace, report: Report, format: str, color: bool, file: str | None) -> str:
    from streamlint.report import View, render

    columns, links = 80, False
    if on_terminal := sys.stdout.isatty() and file is None:
        import shutil

        columns, links = min(shutil.get_terminal_size((80, 24)).columns, 120), color
    view = View(report, color, max(columns, 40), links, _evidence(report), options.unsafe_fixes, whole_lines=not on_terminal)
    if options.statistics:
        from streamlint.report import statistics

        return statistics.render(view, as_json=format.startswith("json"))
    return render(format, view)


def _evidence(report: Report) -> dict[Finding, dict[str, object]]:
    if not report.findings:
        return {}
    from streamlint.measured import of_finding

    return {finding: record for finding in report.findings if (record := of_finding(finding))}


def _print_remarks(options: argparse.Namespace, done: fixing.Fixed) -> None:
    """Everything that is no finding: on stderr, the summary last."""
    report = done.report
    sys.stdout.flush()  # where both go to one place, the findings come first
    paint = Paint(wants_color(options.color, sys.stderr))
    if options.coverage_file:
        import json

        _write(options.coverage_file, json.dumps(report.coverage, indent=2, default=str) + "\n")
    if options.quiet:
        return
    for problem in report.problems:
        place = f"{line(problem.file)}:{problem.row}:{problem.column}"
        print(f"{paint('warning', 'warning')}: {place}: {line(problem.message)}", file=sys.stderr)
    for remark in report.remarks:
        print(f"{paint('warning', 'warning')}: {told(remark)}", file=sys.stderr)
    if options.coverage:
        print("coverage:", *map(tame, _block(report.coverage)), sep="\n", file=sys.stderr)
    if options.timings:
        rows = [f"  {stage:<10} {seconds * 1000:8.1f} ms" for stage, seconds in report.timings.items()]
        print("timings:", *rows, sep="\n", file=sys.stderr)
    if options.show_fixes and done.mended:
        print("fixed:", *fixing.shown_fixes(done.mended), sep="\n", file=sys.stderr)
    if not options.fix_only and (text := fixing.footer(report, options.unsafe_fixes)):
        print(text, file=sys.stderr)
    print(summary_line(report, len(done.mended)), file=sys.stderr)


def summary_line(report: Report, mended: int = 0) -> str:
    """What a run did: ``212 files, 9 mention CUDA, 0 findings``."""
    parts = [_count(report.files, "file"), f"{report.relevant} mention{'s' * (report.relevant == 1)} CUDA"]
    notes = [f"{mended} fixed"] if mended else []
    notes += [f"{len(report.baselined)} more in the baseline"] if report.baselined else []
    return ", ".join([*parts, _count(len(report.findings), "finding")]) + (f" ({', '.join(notes)})" if notes else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"


def _block(value: object, depth: int = 1) -> list[str]:
    """Nested dictionaries as indented lines."""
    if not isinstance(value, dict):
        return [f"{'  ' * depth}{line(str(value))}"]
    lines = []
    for key, inner in value.items():
        if isinstance(inner, dict):
            lines += [f"{'  ' * depth}{line(str(key))}:", *_block(inner, depth + 1)]
        elif isinstance(inner, (list, tuple)):
            lines += [f"{'  ' * depth}{line(str(key))}:", *(f"{'  ' * (depth + 1)}{line(str(item))}" for item in inner)]
        else:
            lines.append(f"{'  ' * depth}{line(str(key))}: {line(str(inner))}")
    return lines


def _demand_files(options: argparse.Namespace, count: int) -> None:
    """A run that looked at nothing must not pass for a clean one, unless a hook's exclusions emptied its list."""
    if count == 0 and not options.force_exclude:
        raise PathError(f"no lintable file in {', '.join(options.paths)}")


def exit_code(options: argparse.Namespace, done: fixing.Fixed) -> int:
    """0 without findings, 1 with some, in every format alike; 2 where a fault of the linter has cost rules what they would tell."""
    report = done.report
    if any(problem.fault for problem in report.problems):
        return FAILED
    if options.exit_non_zero_on_fix and done.mended:
        return FOUND
    if options.exit_zero or options.fix_only:
        return CLEAN
    return FOUND if report.findings else CLEAN


def _show_files(options: argparse.Namespace, resolver: Resolver) -> int:
    from streamlint.files import discover

    found = discover(options.paths, resolver).files
    print(*(tame(line(file.path)) for file in found), sep="\n", end="\n" if found else "")
    _demand_files(options, len(found))
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
