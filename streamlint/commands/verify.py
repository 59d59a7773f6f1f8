"""``streamlint verify``: the templates, or, given paths, what the findings there look like on this machine's GPU."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from streamlint.checks.catalog import UNREADABLE
from streamlint.checks.rules import code_of
from streamlint.commands.parser import Parser
from streamlint.commands.reporting import summary_line
from streamlint.commands.running import lint
from streamlint.config.settings import FORMATS
from streamlint.findings import measured
from streamlint.report import View, render
from streamlint.report.terminal import line, wants_color
from streamlint.support.cells import Cells
from streamlint.support.errors import did_you_mean
from streamlint.verify import answers, command, questions, templates
from streamlint.verify.answers import with_verdicts
from streamlint.verify.options import FailedError, add_arguments, targets_of
from streamlint.verify.outcome import exit_code, fail, save, write_reports
from streamlint.verify.page import render as as_page
from streamlint.verify.progress import Progress
from streamlint.verify.session import run_cases

if TYPE_CHECKING:
    from streamlint.findings import Finding, Report
    from streamlint.verify.session import Machine, Results

CLEAN, NOTHING_RAN = 0, 2
PATH_FORMATS = (*FORMATS, "html")


EXAMPLES = (
    ("streamlint verify", "all rules' templates"),
    ("streamlint verify --rule SL003", "those of one rule"),
    ("streamlint verify src/", "the findings in src/, with their own facts"),
    ("streamlint verify --output-format html:verify.html", "a page with timelines"),
)


def build_parser() -> Parser:
    """The parser of ``verify``."""
    parser = Parser("verify", "Run the rules' templates on this machine's GPU, beside what they predict.", EXAMPLES)
    parser.add_argument("paths", nargs="*", metavar="PATH", help="verify the findings in these files and folders, with their own facts")
    add_arguments(parser)
    return parser


def main(words: list[str], machine: Machine | None = None) -> int:
    """Run templates on the GPU and compare with their predictions."""
    parser = build_parser()
    options = parser.read(words)
    if not options.paths:
        return command.run(options, machine)
    if options.self_test:
        parser.error("--self-test is of the templates: it takes no path")
    if options.executor or options.scheduler:
        parser.error("--executor is of the templates: it takes no path")
    try:
        with contextlib.ExitStack() as stack:
            return _verify_paths(options, machine, stack)
    except FailedError as problem:
        return fail(str(problem))


def _taken_unread(report: Report) -> list[Finding]:
    """The findings about code that was not read, taken out of a report: nothing about them can be run."""
    unread = [finding for finding in report.findings if finding.code == UNREADABLE]
    report.findings = [finding for finding in report.findings if finding.code != UNREADABLE]
    return unread


def _verify_paths(options: argparse.Namespace, machine: Machine | None, stack: contextlib.ExitStack) -> int:
    targets = targets_of(options, PATH_FORMATS)
    _demand_rules(options.rule)
    report = lint([*options.paths, *(word for rule in options.rule for word in ("--select", rule))])
    cells = Cells()
    for problem in report.problems:
        print(line(f"warning: {problem.file}:{cells.place(problem.file, problem.row, problem.column)}: {problem.message}"), file=sys.stderr)
    for finding in _taken_unread(report):
        span = finding.span
        print(line(f"warning: {span.file}:{cells.place(span.file, span.row, span.column)}: {finding.message}"), file=sys.stderr)
    progress = Progress(quiet=options.quiet)
    progress.say(summary_line(report))
    if not report.findings:
        _write(targets, report, {}, {}, None)
        return CLEAN
    try:
        ready = command.prepare(options, machine, progress, stack)
    except FailedError as problem:
        # What the linter found stands, and may have taken a while; what is known of its rules goes with it. No verdict is this machine's.
        _write([target for target in targets if target[0] != "html"], report, _known(report), {}, None)
        raise FailedError(f"the findings were not verified: {problem}") from None
    found, _ = questions.questions(report.findings, templates.load(), ready.memory)
    progress.say(f"{len(found)} distinct set{'s' * (len(found) != 1)} of facts to run")
    results: Results = {}

    def tell() -> None:
        through = [question for question in found if question.case.identity in results]
        progress.clear()
        verdicts = answers.by_finding(through, results, ready.name)
        cases = answers.as_cases(through, results, cells.at)
        page = {"platform": ready.facts, "cases": cases, "remarks": ready.remarks}
        _write(targets, report, {**_known(report), **verdicts}, page, verdicts)
        progress.say(answers.counts(verdicts, report.findings, len(found) - len(through)))
        if not options.no_save:
            save(options, ready.facts, answers.to_keep(cases), progress)

    chosen = [question.case for question in found]
    with command.reported_if_interrupted(chosen, results, tell, always=True):
        run_cases(ready.machine, chosen, options.timeout, progress, into=results)
    tell()
    if not results:
        return NOTHING_RAN
    return exit_code(results.values(), self_test=False, strict=options.strict)


def _demand_rules(words: list[str]) -> None:
    if unknown := [word for word in words if word not in code_of()]:
        raise FailedError(f"unknown rule '{unknown[0]}'{did_you_mean(unknown[0], code_of())}")


def _known(report: Report) -> dict[Finding, Mapping[str, Any]]:
    """What was measured before, here or elsewhere."""
    return {finding: found for finding in report.findings if (found := measured.of_finding(finding)) is not None}


def _write(
    targets: list[tuple[str, str | None]],
    report: Report,
    evidence: Mapping[Finding, Mapping[str, Any]],
    page: Mapping[str, Any],
    verdicts: Mapping[Finding, Mapping[str, Any]] | None,
) -> None:
    """The findings in each format. ``verdicts``: those of this run, which formats without a place for evidence have in the message."""

    def rendered(format: str, file: str | None) -> str:
        if format == "html":
            return as_page(page.get("platform", {}), page.get("cases", []), page.get("remarks", []))
        color = file is None and wants_color("auto", sys.stdout)
        whole = file is not None or not sys.stdout.isatty()
        columns = min(shutil.get_terminal_size((80, 24)).columns, 120) if sys.stdout.isatty() else 80
        shown = with_verdicts(report, verdicts or {}, format)
        return render(
            format, View(shown, color, max(columns, 40), links=color and sys.stdout.isatty(), evidence=evidence, whole_lines=whole)
        )

    write_reports(targets, rendered)
