"""From a place to the reasons for its silence: first those that need no run, then what the paths of the program show."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamlint.checks.rules import all_rules
from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver, Settings
from streamlint.discovery.files import Found, discover, left_out
from streamlint.discovery.screening import is_generated
from streamlint.findings import Finding, Part, Problem, Report, Span
from streamlint.hazards.explaining import RELEASED, SYNCHRONOUS, Silenced, silenced
from streamlint.hazards.findings import context_of
from streamlint.runner.linter import How, run
from streamlint.runner.parsing import Parser
from streamlint.runner.tasks import Task, kinds
from streamlint.silence.answer import Answer, rows_in
from streamlint.silence.line import Line, dig
from streamlint.support.cells import Cells
from streamlint.support.errors import ConfigError, PathError
from streamlint.support.lines import split_lines
from streamlint.support.paths import display_path
from streamlint.support.reading import Unreadable, decode, is_notebook, language_of, read_source
from streamlint.support.recursion import deeper
from streamlint.triage import precedence, suppress
from streamlint.triage.filters import codes_of
from streamlint.triage.layout import Layout, layout
from streamlint.waits.findings import hot_waits, passed_over
from streamlint.waits.judge import HotWaits
from streamlint.waits.reasons import NO_LOOP

_CELL = re.compile(r"(?P<file>.*\.ipynb):(?:cell )?(?P<cell>\d+)", re.IGNORECASE)
ALL_LOOPS = "all-loops"
POSSIBLE = "possible"


def explain(paths: Sequence[str | Path], place: str, resolver: Resolver) -> Answer:
    """The reasons why no finding stands at ``FILE:LINE`` when ``paths`` are linted, in a notebook at ``FILE:cell NUMBER:LINE``.

    Raises ConfigError for a place that is none, PathError for a file that does not exist.
    """
    answer = explain_each(paths, [place], resolver)[0]
    if not is_notebook(answer.file):
        return answer
    cells = Cells()

    def at(row: int) -> tuple[int, int, str]:
        found = cells.row(answer.file, row)
        return (found.cell, found.row, found.text) if found is not None else (1, 1, "")

    return answer.in_cells(at)


def explain_each(paths: Sequence[str | Path], places: Sequence[str], resolver: Resolver) -> list[Answer]:
    """The reasons for several places, in their order, from one run. Raises as `explain` does."""
    found = {item.path: item for item in discover(paths, resolver).files}
    answers: list[Answer] = []
    questions: list[tuple[Answer, Found, str]] = []
    for place in places:
        answer = Answer(*_place(place))
        answers.append(answer)
        mine = found.get(answer.file)
        if mine is None:
            _explain_undiscovered(answer, answer.file, resolver)
        elif (text := _read(answer, mine)) is not None:
            rows = split_lines(text)
            if answer.row > len(rows):
                raise ConfigError(f"--explain-silence {place}: the file has {len(rows)} lines")
            answer.source = rows[answer.row - 1].strip()
            questions.append((answer, mine, text))
    if questions:
        looked = _Looked(frozenset(mine.path for _, mine, _ in questions))
        report = run(paths, resolver, How(engine=looked))
        for answer, mine, text in questions:
            _explain(answer, mine, text, looked.group_of(mine.path), report)
    return answers


def _explain(answer: Answer, mine: Found, text: str, group: _Group | None, report: Report) -> None:
    reported = [finding for finding in report.findings if finding.span.file == mine.path and finding.span.row == answer.row]
    for finding in reported:
        answer.add("found", f"this line is not silent: {finding.message}", finding.code)
    if reported:
        return
    if group is None:
        answer.add("unread", "this file is not read: no trigger word of a rule's library occurs in it, and no file that counts needs it")
    elif (problem := group.problem_of(mine.path)) is not None:
        answer.add("unread", f"the file could not be parsed: {problem.message} (line {problem.row})", "", problem.row)
    else:
        with deeper():
            _tell(answer, mine, text, layout(text, mine.language), group, report)


@dataclass(slots=True)
class _Group:
    """The sources of one set of options, among which files are that were asked about, and what all rules find in them."""

    options: Options
    parser: Parser
    _parts: dict[Options, list[Part]] = field(default_factory=dict)
    _silenced: list[Silenced] | None = None
    _waits: dict[Options, list[HotWaits]] = field(default_factory=dict)

    @property
    def parts(self) -> list[Part]:
        return self.found(self.options)

    def problem_of(self, path: str) -> Problem | None:
        """Why a file was not read."""
        return next(iter(self.parser.problems_of(path)), None) if self.parser.is_lost(path) else None

    def found(self, options: Options) -> list[Part]:
        """What the rules find under some options."""
        if options not in self._parts:
            tasks = [Task(self.parser, options, kind) for kind in kinds(options) if kind.codes]
            self._parts[options] = [task.part if task.part is not None else task.find() for task in tasks]
        return self._parts[options]

    def silenced(self) -> list[Silenced]:
        """What orders keep silent."""
        if self._silenced is None:
            self._silenced = list(silenced(self.parser.sources, self.options, self.parser.representation))
        return self._silenced

    def passed_over(self, path: str, holds: Callable[[Span], bool]) -> Iterator[tuple[str, Span, str]]:
        """The waits of a place that are not reported: the rule, the place, and why; of one in no loop that counts, also why it is none with
        all loops, if that says more; nothing where that reports it."""
        wide, known = replace(self.options, hidden_sync=ALL_LOOPS), dict[tuple[str, Span], str]()
        for code, span, why in passed_over(self._hot(self.options), path):
            if not holds(span):
                continue
            if why == NO_LOOP and wide != self.options:
                known = known or {(other, place): each for other, place, each in passed_over(self._hot(wide), path)}
                more = known.get((code, span), "")
                why = f'{why}, and with hidden-sync = "{ALL_LOOPS}" {more}' if more not in ("", NO_LOOP) else more
            yield code, span, why

    def _hot(self, options: Options) -> list[HotWaits]:
        """What is known of the waits of the host under some options."""
        if options not in self._waits:
            self._waits[options] = hot_waits(self.parser.sources, options, self.parser.representation)
        return self._waits[options]


@dataclass(slots=True)
class _Looked:
    """An engine that looks with every rule at the sources among which files are. It reports what those find that were asked for."""

    paths: frozenset[str]
    groups: list[_Group] = field(default_factory=list)

    def __call__(self, sources: Sequence[Source], options: Options) -> Report:
        report = Report()
        if all(source.path not in self.paths for source in sources):
            return report
        group = _Group(replace(options, codes=frozenset(), coverage=False), Parser(sources))
        self.groups.append(group)
        report.problems = group.parser.problems() + [problem for part in group.parts for problem in part.problems]
        requested = (finding for part in group.parts for finding in part.findings if finding.code in options.codes)
        report.findings = sorted(precedence.winners(requested), key=Finding.sort_key)
        return report

    def group_of(self, path: str) -> _Group | None:
        """The sources among which a file is."""
        return next((group for group in self.groups if any(source.path == path for source in group.parser.sources)), None)


def _place(text: str) -> tuple[str, int]:
    file, colon, row = text.rpartition(":")
    if (inside := _CELL.fullmatch(file)) is not None or is_notebook(file):
        return _place_in_cell(text, inside, row)
    if not colon or not row.isdigit() or not int(row):
        raise ConfigError(f"--explain-silence: expected FILE:LINE, not '{text}'")
    if not os.path.isfile(file):
        raise PathError(f"{file}: no such file")
    return display_path(file), int(row)


def _place_in_cell(text: str, inside: re.Match[str] | None, row: str) -> tuple[str, int]:
    """The file and the row of its program."""
    if inside is None or not row.isdigit():
        raise ConfigError(f"--explain-silence: expected NOTEBOOK:cell NUMBER:LINE, not '{text}'")
    file, cell = inside["file"], int(inside["cell"])
    if not os.path.isfile(file):
        raise PathError(f"{file}: no such file")
    cells = Cells()
    found = cells.program_row(file, cell, int(row)) if cells.row(file, 1) is not None else 1
    if found is None:
        raise ConfigError(f"--explain-silence {text}: the notebook has no such line of Python")
    return display_path(file), found


def _explain_undiscovered(answer: Answer, file: str, resolver: Resolver) -> None:
    """A file that this run would not read."""
    path = Path(os.path.abspath(file))
    settings = resolver.of_file(path)
    if language_of(file) is None:
        answer.add("unread", "the file's name is none of a language that is read")
    elif left_out(path, False, settings):
        answer.add("unread", "the file is excluded: by a pattern of the configuration, by default or by .gitignore (--no-default-excludes)")
    else:
        answer.add("unread", "the file lies outside of the paths that were given")


def _read(answer: Answer, found: Found) -> str | None:
    """The file's text; None where it cannot be read or is not looked at."""
    try:
        data = read_source(found.path)
        if is_generated(data, found):
            answer.add("unread", "the file is generated, and was not named itself")
            return None
        return decode(data, found.language, found.path)[0]
    except Unreadable as error:
        answer.add("unread", f"the file cannot be read: {error}")
        return None


def _tell(answer: Answer, mine: Found, text: str, places: Layout, group: _Group, report: Report) -> None:
    """What the run knows of a line at which nothing is reported."""
    parser, options = group.parser, group.options
    raw = _all(group.parts)
    rows = places.statement_at(answer.row)
    if _found(answer, mine, text, raw, rows, report):
        return
    for setting, wide, what in _wider(options):
        for finding in _at(_all(group.found(wide)), mine.path, rows):
            answer.add("hidden", f"`{finding.name}` {what} only with {setting} (--preview)", finding.code)
    _explain_elsewhere(answer, mine.path, rows, list(precedence.winners(raw)))
    for part in group.parts:
        for problem in part.problems:
            if problem.file == mine.path:
                answer.add("cut", f"{problem.message}: nothing was found there")
    context = context_of(parser.sources, options, parser.representation)
    line = Line(context, mine.path, rows, places, split_lines(text))
    for one in group.silenced():
        if line.holds(one.finding.span) or line.holds(one.operation):
            _tell_silenced(answer, line, one)
    for code, span, why in group.passed_over(mine.path, line.holds):
        if not why:
            answer.add("hidden", f'`{all_rules()[code].name}` looks at this loop only with hidden-sync = "{ALL_LOOPS}" (--preview)', code)
            continue
        kind = "loop" if why == NO_LOOP else "round"
        answer.add(kind, f"`{line.quote(span)}` may make the host wait, but {why}", code, span.row, *rows_in(why))
    dig(answer, line)


def _tell_silenced(answer: Answer, line: Line, one: Silenced) -> None:
    """What stands against a finding that follows paths: an order, or a copy that the host waits for."""
    first, last = one.operation.row, one.finding.span.row
    if one.why == SYNCHRONOUS:
        answer.add(
            "facts", f"needs an asynchronous copy; that in line {first} is synchronous: the host waits for it", one.finding.code, first
        )
        return
    if one.why == RELEASED:
        where = f"line {first}" if one.operation.file == line.path else f"{one.operation.file}:{first}"
        answer.add("facts", f"{RELEASED} ({where})", one.finding.code, first)
        return
    pair = f"the operation in line {last} is ordered after that in line {first}"
    by = f"`{line.quote(one.by)}` in line {one.by.row} {one.why}"
    answer.add("order", f"{pair}: {by}", one.finding.code, first, last, one.by.row)


def _wider(options: Options) -> Iterator[tuple[str, Options, str]]:
    """The settings that report more than these do, and what they report of a finding."""
    if options.hidden_sync != ALL_LOOPS:
        yield 'hidden-sync = "all-loops"', replace(options, hidden_sync=ALL_LOOPS), "looks at this loop"
    if options.evidence != POSSIBLE:
        yield 'evidence = "possible"', replace(options, evidence=POSSIBLE), "tells what is not shown to cost anything here"


def _all(parts: list[Part]) -> list[Finding]:
    return [finding for part in parts for finding in part.findings]


def _at(findings: list[Finding], file: str, rows: tuple[int, int]) -> list[Finding]:
    return [f for f in findings if f.span.file == file and rows[0] <= f.span.row <= rows[1]]


def _found(answer: Answer, mine: Found, text: str, raw: list[Finding], rows: tuple[int, int], report: Report) -> bool:
    """Findings that do stand at the line, and why they are not shown there."""
    winners = list(precedence.winners(raw))
    kept = _at(winners, mine.path, rows)
    selected = codes_of(mine)
    visible = [f for f in kept if f.code in selected]
    outcome = suppress.suppress(mine.path, text, mine.language, visible, require_reasons=mine.settings.require_reasons)
    for finding in _at(report.findings, mine.path, rows):
        answer.add("place", f"the finding in line {finding.span.row} is about this statement", finding.code, finding.span.row)
    for finding in _at(report.baselined, mine.path, rows):
        answer.add("hidden", "the baseline lists this finding", finding.code, finding.span.row)
    for finding in kept:
        comment = next((s.comment.row for s in outcome.suppressions if finding.code in s.used), None)
        if finding.code not in selected:
            answer.add("hidden", _unselected(finding, mine.settings), finding.code)
        elif comment is not None and all(f.span != finding.span or f.code != finding.code for f in outcome.findings):
            answer.add("hidden", f"suppressed by the comment in line {comment}", finding.code, comment)
    if not kept:
        _given_way(answer, _at(raw, mine.path, rows), winners)
    return bool(kept) or bool(answer.reasons)


def _given_way(answer: Answer, lost: list[Finding], winners: list[Finding]) -> None:
    """Findings that stand nowhere, since others name their causes."""
    for finding in lost:
        cause = next((w for w in winners if finding.code in w.related), None)
        if cause is not None:
            where = f"the finding {cause.code} in line {cause.span.row}, which names the cause"
            answer.add("given-way", f"gives way to {where}", finding.code, cause.span.row)


def _unselected(finding: Finding, settings: Settings) -> str:
    default = all_rules()[finding.code].default
    if finding.code in settings.codes:
        return "a per-file ignore of the configuration turns the rule off for this file"
    if default == "preview" and not settings.preview:
        return f"the rule is in preview: pass --preview, or --select {finding.code}"
    if default == "off":
        return f"the rule is off by default: pass --extend-select {finding.code}"
    return "the rule is not among those that were selected"


def _explain_elsewhere(answer: Answer, file: str, rows: tuple[int, int], findings: list[Finding]) -> None:
    """Findings that name the line in their trail: one finding stands for several places."""
    for finding in findings:
        if any(step.span.file == file and rows[0] <= step.span.row <= rows[1] for step in finding.trail):
            where = f"line {finding.span.row}" + (f" of {finding.span.file}" if finding.span.file != file else "")
            answer.add("given-way", f"the finding in {where} names this line in its trail", finding.code, finding.span.row)
