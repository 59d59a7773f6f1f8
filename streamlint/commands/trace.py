"""``streamlint trace``: what findings cost in a recorded run, and which of its stalls have no finding."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from streamlint.checks.catalog import UNREADABLE
from streamlint.commands.check_options import add_color, add_exclusions, add_rules, add_settings, positive
from streamlint.commands.parser import Parser
from streamlint.commands.reporting import CLEAN, FOUND, say, write
from streamlint.commands.running import as_check, demand_files, report_of, resolver_of
from streamlint.commands.stalls import give_reasons
from streamlint.config.targets import read_targets
from streamlint.findings import Report, measured
from streamlint.report.terminal import Paint, line, printable, wants_color
from streamlint.runner import progress
from streamlint.support.cells import Cells
from streamlint.support.errors import PathError, StreamlintError
from streamlint.support.reading import Unreadable, decode, language_of, read_bytes
from streamlint.trace.analysis import costs_of
from streamlint.trace.join import Seen, join
from streamlint.trace.model import Trace
from streamlint.trace.names import Names
from streamlint.trace.readers.opening import read
from streamlint.trace.recording import form, sessions
from streamlint.trace.recording import run as record_run
from streamlint.trace.recording.program import OUTPUT
from streamlint.trace.rendering import FORMATS, View, render
from streamlint.trace.rendering.words import last_line, part
from streamlint.trace.results import Costs, Joined

_REPORTS = (".html", ".json", ".md", ".sarif", ".txt")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*(%|ns|us|µs|ms|s)$")
_UNITS = {"ns": 1, "us": 10**3, "µs": 10**3, "ms": 10**6, "s": 10**9}
EXAMPLES = (
    ("streamlint trace trace.json src/", "a trace of PyTorch's profiler"),
    ("streamlint trace report.sqlite src/", "an export of Nsight Systems"),
    ("streamlint trace --run train.py -- --epochs 1", "run a program here, recorded"),
    ("streamlint trace --run -m package.train src/", "run a module; lint src/"),
    ("streamlint trace run.slt --output-format html:trace.html", "a page with timelines"),
    ("streamlint trace run.slt --fail-over 5%", "exit 1 only if findings cost more than that"),
)


def build_parser() -> Parser:
    """The parser of ``trace``."""
    parser = Parser("trace", "Say what findings cost in a recorded run, and which of its stalls have no finding.", EXAMPLES)
    parser.add_argument("words", nargs="*", metavar="FILE [PATH]", help="a recording, then files and folders to lint (default: .)")
    group = parser.add_argument_group("recording")
    group.add_argument(
        "--run", action="store_true", help="run the script that stands in place of FILE, recorded; '--' begins its arguments"
    )
    group.add_argument("-m", "--module", metavar="MODULE", help="with --run: run a module instead of a script")
    group.add_argument(
        "--root", metavar="FOLDER", default="", help="with --run: the folder of your code (default: all that is not installed)"
    )
    group.add_argument("--share", metavar="PERCENT", default="", help="with --run: record parts of two seconds, so much of the time")
    group = parser.add_argument_group("costs")
    group.add_argument("--threshold", type=_amount, metavar="AMOUNT", help="what a place must cost to be COSTS: 2%%, 5ms (default: 0.5%%)")
    group.add_argument("--fail-over", type=_amount, metavar="AMOUNT", help="exit 1 only if findings cost more than this together: 5%%, 1s")
    group.add_argument("-e", "--exit-zero", action="store_true", help="exit 0 even when findings cost something")
    group.add_argument(
        "--top", type=positive, default=10, metavar="N", help="how many places are shown with all their figures (default: 10)"
    )
    add_rules(parser.add_argument_group("rules"))
    add_exclusions(parser.add_argument_group("files"))
    group = parser.add_argument_group("output")
    group.add_argument(
        "--output-format", action="append", metavar="FORMAT[:FILE]", help=f"{', '.join(FORMATS)}; repeatable, each with a file"
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write there instead of to stdout; with --run: the recording (run.slt)")
    add_color(group)
    group.add_argument("-q", "--quiet", action="store_true", help="print what was asked for only")
    add_settings(parser.add_argument_group("configuration"))
    return parser


def main(words: list[str]) -> int:
    """Lint, read or make the recording, and report."""
    words, program = _split(words)
    parser = build_parser()
    options = parser.read(words)
    recording, paths = _named(parser, options)
    targets = read_targets(options.output_format or ["full"], FORMATS, None if options.run else options.output_file)
    check = as_check(options, paths)
    resolver = resolver_of(check)
    with progress.reporting(options.quiet):
        report = report_of(check, resolver)
        progress.finish()
    demand_files(check, report.files)
    _drop_unread(options, report)
    if options.run:
        _record(options, program if options.module else [str(options.script), *program], recording)
    names = Names([*report.linted, *(finding.span.file for finding in report.findings)])
    trace = read(recording, [Path(path) for path in paths])
    costs = costs_of(trace, names)
    joined = join(costs, report.findings, Seen.of(trace, names), report.texts, _border(options, costs))
    give_reasons(joined, names, paths, resolver, options.top)
    _print(options, targets, _view(options, joined, trace, report, recording, names))
    say(options, last_line(joined))
    return _exit_code(options, joined)


def _split(words: list[str]) -> tuple[list[str], list[str]]:
    """The words for us, and those for the program that is run."""
    if "--run" not in words or "--" not in words:
        return words, []
    at = words.index("--")
    return words[:at], words[at + 1 :]


def _named(parser: Parser, options: argparse.Namespace) -> tuple[Path, list[str]]:
    """The recording, and the paths to lint. With ``--run`` the script is put into the options."""
    if not options.run:
        return _recorded(parser, options)
    words = list(options.words)
    if options.output_file and Path(options.output_file).suffix in _REPORTS:
        parser.error("with --run, -o names the recording; a report is written by --output-format FORMAT:FILE")
    options.script = None if options.module else words.pop(0) if words else None
    if options.script is None and not options.module:
        parser.error("which program? Name a script, or a module with -m")
    if options.script is not None and not Path(options.script).is_file():
        raise PathError(f"{options.script}: no such file")
    return Path(options.output_file or OUTPUT), words or ["."]


def _recorded(parser: Parser, options: argparse.Namespace) -> tuple[Path, list[str]]:
    """A recording that is there, and the paths to lint."""
    words = list(options.words)
    if options.module:
        parser.error("-m needs --run")
    if options.share:
        parser.error("--share needs --run")
    if options.root:
        parser.error("--root needs --run: of a recording that is there, name the code behind it: streamlint trace run.slt src/")
    if not words:
        parser.error("which recording? Name one, or record a program: streamlint trace --run train.py")
    return Path(words[0]), words[1:] or ["."]


def _drop_unread(options: argparse.Namespace, report: Report) -> None:
    """Take what is no finding about a line out of a report, and say it."""
    problems = [(problem.file, problem.row, problem.message) for problem in report.problems]
    problems += [(one.span.file, one.span.row, one.message) for one in report.findings if one.code == UNREADABLE]
    report.findings = [finding for finding in report.findings if finding.code not in (UNREADABLE, "SL900")]
    if not options.quiet:
        paint, cells = Paint(wants_color(options.color, sys.stderr)), Cells()
        for file, row, message in problems:
            print(f"{paint('warning', 'warning')}: {line(file)}:{cells.line(file, row)}: {line(message)}", file=sys.stderr)
        for remark in report.remarks:
            print(f"{paint('warning', 'warning')}: {printable(remark)}", file=sys.stderr)


def _record(options: argparse.Namespace, program: Sequence[str], recording: Path) -> None:
    """Run the program; what it made before it failed is read all the same."""
    session = sessions.new()
    words = ["-m", options.module, *program] if options.module else list(program)
    code = record_run(words, recording, root=options.root, session=session, share=options.share)
    if form.head(recording).get("session") != session.id:
        raise StreamlintError(f"nothing was recorded: {words[1] if options.module else words[0]} ended with exit code {code}")
    if code:
        say(options, f"warning: {words[1] if options.module else words[0]} ended with exit code {code}; what it did before is reported")


def _border(options: argparse.Namespace, costs: Costs) -> int | None:
    return None if options.threshold is None else _nanoseconds(options.threshold, costs.wall)


def _view(options: argparse.Namespace, joined: Joined, trace: Trace, report: Report, recording: Path, names: Names) -> View:
    texts = dict(report.texts)
    places = [cost.place.file for cost in joined.costs.costs]
    for file in dict.fromkeys(places):
        if file not in texts and names.is_linted(file):
            texts[file] = _text(file)
    evidence = {finding: known for finding in report.findings if (known := measured.of_finding(finding))}
    return View(joined, trace, report, str(recording), names, texts, evidence, top=options.top)


def _text(file: str) -> str:
    try:
        return decode(read_bytes(file), language_of(file) or "python")[0]
    except Unreadable:
        return ""


def _print(options: argparse.Namespace, targets: Sequence[tuple[str, str | None]], view: View) -> None:
    for format, file in targets:
        view.color = file is None and wants_color(options.color, sys.stdout)
        on_terminal = file is None and sys.stdout.isatty()
        view.width = max(min(shutil.get_terminal_size((100, 24)).columns, 120), 60) if on_terminal else 100
        view.links = view.color and on_terminal
        text = render(format, view)
        if file is None:
            sys.stdout.write(text)
        else:
            write(file, text)


def _exit_code(options: argparse.Namespace, joined: Joined) -> int:
    """1 where a finding costs something, or more than was allowed."""
    if options.exit_zero:
        return CLEAN
    if options.fail_over is not None:
        amount, unit = options.fail_over
        over = part(joined, joined.named) * 100 > amount if unit == "%" else joined.named > _nanoseconds(options.fail_over, 0)
        return FOUND if over else CLEAN
    return FOUND if any(one.standing == "COSTS" for one in joined.judged) else CLEAN


def _amount(text: str) -> tuple[float, str]:
    """A share of the wall time, or a time."""
    match = _AMOUNT.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"'{text}' is neither a share nor a time: write 5%, 20ms or 1.5s")
    return float(match[1]), match[2]


def _nanoseconds(amount: tuple[float, str], wall: int) -> int:
    value, unit = amount
    return round(wall * value / 100) if unit == "%" else round(value * _UNITS[unit])
