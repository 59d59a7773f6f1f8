"""What ``check`` prints of a report, and the exit code for it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator

from streamlint import TYPE_CHECKING
from streamlint.commands import fixing
from streamlint.commands.running import profile_of
from streamlint.findings.confidence import rank
from streamlint.report import View, render
from streamlint.report.terminal import Paint, line, printable, tame, wants_color
from streamlint.support.cells import Cells
from streamlint.support.errors import ConfigError
from streamlint.support.lazy import lazy
from streamlint.support.reading import Unreadable, foreign_language, is_notebook, read_source
from streamlint.support.writing import write_output

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping
    from typing import Any

    from streamlint.commands import unused
    from streamlint.config.settings import Resolver
    from streamlint.findings import Finding, Report, measured
    from streamlint.report import entries, statistics
else:
    (unused,) = lazy("streamlint.commands", "unused")
    (measured,) = lazy("streamlint.findings", "measured")
    entries, statistics = lazy("streamlint.report", "entries", "statistics")

CLEAN, FOUND, FAILED = 0, 1, 2


def tell(options: argparse.Namespace, done: fixing.Fixed, targets: list[tuple[str, str | None]], resolver: Resolver) -> int:
    report, cells = done.report, fixing.cells_of(options, done)
    if options.sort == "confidence":
        report.findings.sort(key=lambda finding: -rank(finding))
    if report.models and not options.quiet:
        report.remarks += [printable for printable in [unused.warning(report, options.paths)] if printable is not None]
    if options.paths == ["-"] and fixing.wanted(options):
        sys.stdout.write(fixing.passed_on(options, done))
        targets = [(format, file) for format, file in targets if file]
    if not options.fix_only:
        _print_findings(options, report, targets, cells)
    if options.verbose and not options.quiet:
        used = ", ".join(line(str(path)) for path in resolver.sources())
        print(f"configuration: {used or 'none'}", file=sys.stderr)
        print(*foreign_notebooks(report.linted), sep="", end="", file=sys.stderr)
    _print_remarks(options, done, cells)
    return exit_code(options, done)


def _costs(options: argparse.Namespace, report: Report) -> dict[Finding, Mapping[str, Any]] | None:
    """What a recorded run says of the findings, which are put in the order of their costs. None without ``--profile``."""
    profile = profile_of(options)
    if profile is None:
        return None
    found = {finding: known for finding in report.findings if (known := profile.of(finding)) is not None}
    report.findings.sort(key=lambda finding: -entries.cost_of(found.get(finding)))
    return found


def _print_findings(options: argparse.Namespace, report: Report, targets: list[tuple[str, str | None]], cells: Cells) -> None:
    for format, file in targets:
        text = _rendered(options, report, format, file, cells)
        if file is None:
            sys.stdout.write(text)
            continue
        write(file, text)


def _rendered(options: argparse.Namespace, report: Report, format: str, file: str | None, cells: Cells) -> str:
    color = file is None and wants_color(options.color, sys.stdout)
    columns, links = 80, False
    if on_terminal := sys.stdout.isatty() and file is None:
        import shutil  # start-up: for terminals

        columns, links = min(shutil.get_terminal_size((80, 24)).columns, 120), color
    costs = _costs(options, report)
    first = options.sort == "confidence"
    view = View(report, color, max(columns, 40), links, _evidence(report), options.unsafe_fixes, not on_terminal, costs, first, cells)
    if options.statistics:
        return statistics.render(view, as_json=format.startswith("json"))
    return render(format, view)


def _evidence(report: Report) -> dict[Finding, dict[str, object]]:
    if not report.findings:
        return {}
    return {finding: record for finding in report.findings if (record := measured.of_finding(finding))}


def _print_remarks(options: argparse.Namespace, done: fixing.Fixed, cells: Cells) -> None:
    """Everything that is no finding: on stderr, the summary last."""
    report = done.report
    sys.stdout.flush()  # where both go to one place, the findings come first
    paint = Paint(wants_color(options.color, sys.stderr))
    if options.coverage_file:
        import json  # start-up: for the option alone

        write(options.coverage_file, json.dumps(report.coverage, indent=2, default=str) + "\n")
    if options.quiet:
        return
    for problem in report.problems:
        place = f"{line(problem.file)}:{cells.place(problem.file, problem.row, problem.column)}"
        print(f"{paint('warning', 'warning')}: {place}: {line(problem.message)}", file=sys.stderr)
    for remark in report.remarks:
        print(f"{paint('warning', 'warning')}: {printable(remark)}", file=sys.stderr)
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


def foreign_notebooks(files: Iterable[str]) -> Iterator[str]:
    """Lines about the notebooks among some files that hold no Python, for who wants to know."""
    for file in filter(is_notebook, files):
        with contextlib.suppress(Unreadable, ValueError):
            if language := foreign_language(read_source(file)):
                yield f"skipped {line(file)}: a notebook in {line(language)}\n"


def write(file: str, text: str | bytes) -> None:
    """Write what a command makes.

    Raises ConfigError where that is refused.
    """
    try:
        write_output(file, text)
    except OSError as error:
        raise ConfigError(f"cannot write {file}: {error.strerror}") from None


def summary_line(report: Report, mended: int = 0) -> str:
    """What a run did: ``212 files, 9 mention CUDA, 0 findings``."""
    parts = [count_of(report.files, "file"), f"{report.relevant} mention{'s' * (report.relevant == 1)} CUDA"]
    notes = [f"{mended} fixed"] if mended else []
    notes += [f"{report.unsure} less sure"] if report.unsure else []
    notes += [f"{len(report.baselined)} more in the baseline"] if report.baselined else []
    return ", ".join([*parts, count_of(len(report.findings), "finding")]) + (f" ({', '.join(notes)})" if notes else "")


def exit_code(options: argparse.Namespace, done: fixing.Fixed) -> int:
    """0 without findings, 1 with some, in every format alike; 2 where a fault of the linter has cost rules what they would report."""
    report = done.report
    if any(problem.fault for problem in report.problems):
        return FAILED
    if options.exit_non_zero_on_fix and done.mended:
        return FOUND
    if options.exit_zero or options.fix_only:
        return CLEAN
    return FOUND if report.findings else CLEAN


def say(options: argparse.Namespace, text: str) -> None:
    if not options.quiet:
        sys.stdout.flush()
        print(line(text), file=sys.stderr)


def count_of(number: int, noun: str) -> str:
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
