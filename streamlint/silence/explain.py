"""From a place to the reasons for its silence: first those that need no run, then what the paths of the program tell."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from streamlint import engine, precedence, suppress
from streamlint.analysis import Analysis, Part
from streamlint.bare import bare
from streamlint.config import Resolver, Settings
from streamlint.errors import ConfigError, PathError
from streamlint.files import Found, discover, left_out, shown
from streamlint.findings import Finding, Problem, Report
from streamlint.hazards import findings as hazards
from streamlint.hazards.explaining import RELEASED, SYNCHRONOUS, Silenced, silenced
from streamlint.interpreter.index import Program
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower as to_ir
from streamlint.layout import Layout, layout
from streamlint.lines import split_lines
from streamlint.linter import run
from streamlint.options import Options, Source
from streamlint.reading import Unreadable, decode, language_of, read_bytes
from streamlint.rules import all_rules
from streamlint.screening import is_generated
from streamlint.silence.answer import Answer
from streamlint.silence.line import Line, dig
from streamlint.telling import codes_of
from streamlint.waits.findings import find, findings_of, hot_waits, passed_over
from streamlint.waits.judge import HotWaits
from streamlint.workers import shared

ALL_LOOPS = "all-loops"
POSSIBLE = "possible"


def explain(paths: Sequence[str | Path], place: str, resolver: Resolver, jobs: int = 1) -> Answer:
    """The reasons why no finding stands at ``FILE:LINE`` when ``paths`` are linted.

    Raises ConfigError for a place that is none, PathError for a file that does not exist.
    """
    file, row = _place(place)
    answer = Answer(file, row)
    found = discover(paths, resolver).files
    mine = next((item for item in found if item.path == file), None)
    if mine is None:
        _not_met(answer, file, resolver)
        return answer
    text = _read(answer, mine)
    if text is None:
        return answer
    places = layout(text, mine.language)
    rows = split_lines(text)
    if row > len(rows):
        raise ConfigError(f"--explain-silence {place}: the file has {len(rows)} lines")
    answer.source = rows[row - 1].strip()
    looked = _Looked(mine.path, jobs)
    report = run(paths, resolver, engine=looked)
    told = [finding for finding in report.findings if finding.span.file == mine.path and finding.span.row == row]
    for finding in told:
        answer.add("found", f"this line is not silent: {finding.message}", finding.code)
    if told:
        return answer
    if looked.problem is not None:
        answer.add("unread", f"the file could not be parsed: {looked.problem.message} (line {looked.problem.row})", "", looked.problem.row)
    elif looked.program is None or looked.options is None:
        answer.add("unread", "this file holds no root: no trigger word of a rule's library occurs in it, and no file that counts needs it")
    else:
        _tell(answer, mine, text, places, looked, report)
    return answer


@dataclass(slots=True)
class _Looked:
    """An engine that looks with every rule at the sources among which a file is. It reports what those find that were asked for."""

    path: str
    jobs: int
    options: Options | None = None
    sources: Sequence[Source] = ()
    program: Program | None = None
    waits: list[HotWaits] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    problem: Problem | None = None  # why the file was not read

    def __call__(self, sources: Sequence[Source], options: Options) -> Report:
        report = Report()
        if all(source.path != self.path for source in sources):
            return report
        every, headers = replace(options, codes=frozenset(), coverage=False), engine.headers_of(sources)
        program = Program()
        for source in sources:
            engine.lower(source, every, program, report, headers)
        if self.path not in program.files:
            self.problem = next((problem for problem in report.problems if problem.file == self.path), None)
        analysis = Analysis(program, every)
        parts = list(shared(analysis.check, list(program.files), self.jobs, instead=analysis.lose))
        self.program, self.options, self.parts, self.sources = program, every, parts, [bare(source) for source in sources]
        self.waits = hot_waits(self.sources, every, self.lowered)
        parts += [Part(findings_of(waits, every)) for waits in self.waits]
        parts.append(Part(hazards.find(self.sources, every, self.lowered).findings))
        report.problems += [problem for part in parts for problem in part.problems]
        asked_for = (finding for part in parts for finding in part.findings if finding.code in options.codes)
        report.findings = sorted(precedence.winners(asked_for), key=Finding.sort_key)
        return report

    def lowered(self, source: Source) -> ModuleIR | None:
        """The intermediate representation of a source."""
        file = self.program.files.get(source.path) if self.program is not None else None
        return to_ir(file.module) if file is not None else None


def _of_program(looked: _Looked, options: Options) -> list[Finding]:
    """What rules find that are asked of the program as a whole."""
    found = find(looked.sources, options, looked.lowered).findings
    return found + hazards.find(looked.sources, options, looked.lowered).findings


def _place(text: str) -> tuple[str, int]:
    file, colon, row = text.rpartition(":")
    if not colon or not row.isdigit() or not int(row):
        raise ConfigError(f"--explain-silence: expected FILE:LINE, not '{text}'")
    if not os.path.isfile(file):
        raise PathError(f"{file}: no such file")
    return shown(file), int(row)


def _not_met(answer: Answer, file: str, resolver: Resolver) -> None:
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
        data = read_bytes(found.path)
        if is_generated(data, found):
            answer.add("unread", "the file is generated, and was not named itself")
            return None
        return decode(data, found.language)[0]
    except Unreadable as error:
        answer.add("unread", f"the file cannot be read: {error}")
        return None


def _tell(answer: Answer, mine: Found, text: str, places: Layout, looked: _Looked, report: Report) -> None:
    """What the run tells of a line at which nothing is reported."""
    program, options = looked.program, looked.options
    assert program is not None
    assert options is not None
    raw = [finding for part in looked.parts for finding in part.findings]
    rows = places.statement_at(answer.row)
    if _found(answer, mine, text, raw, rows, report):
        return
    for setting, wide, what in _wider(options):
        for finding in _at([*_check(program, wide, mine.path), *_of_program(looked, wide)], mine.path, rows):
            answer.add("hidden", f"`{finding.name}` {what} only with {setting} (--preview)", finding.code)
    _told_elsewhere(answer, mine.path, rows, list(precedence.winners(raw)))
    for part in looked.parts:
        for problem in part.problems:
            if problem.file == mine.path:
                answer.add("cut", f"{problem.message}: nothing was found there")
    line = Line(program, options, mine.path, rows, places)
    for one in silenced(looked.sources, options, looked.lowered):
        if line.holds(one.finding.span) or line.holds(one.operation):
            _tell_silenced(answer, line, one)
    for code, span, why in passed_over(looked.waits, mine.path):
        if line.holds(span):
            answer.add("round", f"`{line.quote(span)}` may make the host wait, but {why}", code, span.row)
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
    """The settings that tell more than these do, and what they tell of a finding."""
    if options.hidden_sync != ALL_LOOPS:
        yield 'hidden-sync = "all-loops"', replace(options, hidden_sync=ALL_LOOPS), "looks at this loop"
    if options.evidence != POSSIBLE:
        yield 'evidence = "possible"', replace(options, evidence=POSSIBLE), "tells what is not shown to cost anything here"


def _check(program: Program, options: Options, path: str) -> list[Finding]:
    analysis = Analysis(program, options)
    return [f for name, file in program.files.items() if file.path == path for f in analysis.check(name).findings]


def _at(findings: list[Finding], file: str, rows: tuple[int, int]) -> list[Finding]:
    return [f for f in findings if f.span.file == file and rows[0] <= f.span.row <= rows[1]]


def _found(answer: Answer, mine: Found, text: str, raw: list[Finding], rows: tuple[int, int], report: Report) -> bool:
    """Findings that do stand at the line, and why they are not shown there."""
    kept = _at(list(precedence.winners(raw)), mine.path, rows)
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
    lost = _at(raw, mine.path, rows) if not kept else []
    for finding in lost:
        cause = next((w for w in precedence.winners(raw) if finding.code in w.related), None)
        if cause is not None:
            where = f"the finding {cause.code} in line {cause.span.row}, which names the cause"
            answer.add("given-way", f"gives way to {where}", finding.code, cause.span.row)
    return bool(kept) or bool(answer.reasons)


def _unselected(finding: Finding, settings: Settings) -> str:
    default = all_rules()[finding.code].default
    if finding.code in settings.codes:
        return "a per-file ignore of the configuration turns the rule off for this file"
    if default == "preview" and not settings.preview:
        return f"the rule is in preview: pass --preview, or --select {finding.code}"
    if default == "off":
        return f"the rule is off by default: pass --extend-select {finding.code}"
    return "the rule is not among those that were selected"


def _told_elsewhere(answer: Answer, file: str, rows: tuple[int, int], findings: list[Finding]) -> None:
    """Findings that name the line in their trail: one finding stands for several places."""
    for finding in findings:
        if any(step.span.file == file and rows[0] <= step.span.row <= rows[1] for step in finding.trail):
            where = f"line {finding.span.row}" + (f" of {finding.span.file}" if finding.span.file != file else "")
            answer.add("given-way", f"the finding in {where} names this line in its trail", finding.code, finding.span.row)
