"""What holds for any program. Each property takes files, and raises AssertionError where it does not hold."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import replace
from unittest import mock

import tree_sitter
import tree_sitter_cuda
from fuzzing.places import Rewritten, starts
from fuzzing.rewriting import Choice, Rewrite, add_dead, parses, rewritten
from rename import File
from waiting import within

from streamlint.checks.base import registry
from streamlint.commands.fixing import MOST_PASSES
from streamlint.config.options import Options, Source
from streamlint.config.settings import Resolver, Settings
from streamlint.findings import Finding, Problem, Report, Span
from streamlint.runner import engine, linter, parsing, tasks
from streamlint.runner.repairs import repairs
from streamlint.support.lines import split_lines

ALL = Options(codes=frozenset(registry()))
POSSIBLE = replace(ALL, evidence="possible")
SECONDS = 20.0  # of processor time, for programs of at most some hundred lines
FAULTS = ("internal error", "nested too deeply")


@contextlib.contextmanager
def bare() -> Iterator[list[str]]:
    """The faults that the linter turns into messages, with where they came from."""
    faults: list[str] = []

    class Noted(Problem):
        def __init__(self, file: str, message: str, row: int = 1, column: int = 1, lost: bool = False, fault: bool = False) -> None:
            super().__init__(file, message, row, column, lost, fault)
            if any(word in message for word in FAULTS):
                faults.append(message + "\n" + "".join(traceback.format_exc().splitlines(keepends=True)[-9:]))

    with mock.patch.object(parsing, "Problem", Noted), mock.patch.object(tasks, "Problem", Noted):
        yield faults


def lint(files: Sequence[File], options: Options = ALL) -> Report:
    """What the engine says, without a fault and in time."""
    sources = [Source(file.name, file.text, file.language) for file in files]
    with bare() as faults, within(SECONDS):
        report = engine.analyse(sources, options)
    assert not faults, faults[0]
    return report


def survives(files: Sequence[File]) -> Report:
    """No fault, bounded time, and all that is told lies inside of the files."""
    report = lint(files)
    lines = {file.name: split_lines(file.text.removeprefix("\ufeff")) for file in files}
    for finding in report.findings:
        for span in (finding.span, *(step.span for step in finding.trail), *itertools.chain(*finding.pairs), *finding.covers):
            _inside(span, lines[span.file])
    for problem in report.problems:
        assert 1 <= problem.row <= len(lines[problem.file]), problem
        assert 1 <= problem.column <= len(lines[problem.file][problem.row - 1]) + 1, problem
    return report


def _inside(span: Span, lines: Sequence[str]) -> None:
    assert 1 <= span.row <= span.end_row <= len(lines), span
    assert 1 <= span.column <= len(lines[span.row - 1]) + 1, span
    assert 1 <= span.end_column <= len(lines[span.end_row - 1]) + 1, span
    assert (span.row, span.column) <= (span.end_row, span.end_column), span


def survives_bytes(data: bytes, name: str) -> Report:
    """The same for bytes as they lie in a file, with what decodes and screens them."""
    with bare() as faults, within(SECONDS):
        report = linter.run_text(data, name, Resolver(Settings.of(select=["ALL"])))
    assert not faults, faults[0]
    assert not [problem for problem in report.problems if any(fault in problem.message for fault in FAULTS)]
    text = report.texts.get(name)
    for finding in report.findings:
        assert text is not None
        _inside(finding.span, split_lines(text.removeprefix("\ufeff")))
    return report


Place = tuple[str, str, int]  # code, file, offset


def places(files: Sequence[File], findings: Sequence[Finding]) -> set[Place]:
    begins = {file.name: starts(file.text) for file in files}
    return {(f.code, f.span.file, begins[f.span.file][f.span.row - 1] + f.span.column - 1) for f in findings}


def _compared(files: Sequence[File], rewrite: Rewrite, choice: Choice) -> tuple[set[Place], set[Place], dict[str, Rewritten]] | None:
    made = rewritten(files, rewrite, choice)
    if made is None:
        return None
    after = [File(file.name, file.language, made[file.name].text) for file in files]
    told, retold = lint(files), lint(after)
    now = {(f.code, f.span.file, made[f.span.file].was_at(f.span.row, f.span.column)) for f in retold.findings}
    return places(files, told.findings), now, made


# Rules that ask whether a body does one thing alone (a spin, a branch that limits what it tests): dead code in it is another shape.
SHAPES = frozenset({"SL020", "SL024"})


def same_findings(files: Sequence[File], rewrite: Rewrite, choice: Choice) -> bool:
    """A rewrite that means nothing moves the findings, and changes none. Whether it applied."""
    found = _compared(files, rewrite, choice)
    if found is None:
        return False
    before, after, made = found
    if rewrite is add_dead:
        before = {place for place in before if place in after or place[0] not in SHAPES}
    assert before == after, _shown(files, made, before - after, after - before)
    return True


_READS = re.compile(r"\.(?:item|tolist|cpu|numpy|all|any)\(")
"""What makes the host wait for a value, or asks whether it is true."""


def no_new_findings(files: Sequence[File], rewrite: Rewrite, choice: Choice) -> bool:
    """A rewrite that may order, keep or change what it reaches silences findings, and adds none.

    Work behind a copy is what the copy holds up, so a copy that may wait (SL001) can be shown to cost something by it. Where all that is
    possible is asked for, another code may have the place. A copy that the host waits for right behind it holds up nothing, and is
    told only where something stands between; so is a read (SL020) right behind another one.
    """
    found = _compared(files, rewrite, choice)
    if found is None:
        return False
    before, after, made = found
    if any(code == "SL001" for code, _, _ in after - before):
        possible = lint(files, POSSIBLE).findings
        before |= places(files, [replace(f, code="SL001") for f in possible if "SL001" in (f.code, *f.related)])
        if any("ynchronize" in file.text for file in files):
            before |= {place for place in after if place[0] == "SL001"}
    if sum(len(_READS.findall(file.text)) for file in files) > 1:
        before |= {place for place in after if place[0] == "SL020"}
    assert after <= before, _shown(files, made, set(), after - before)
    return True


def _shown(files: Sequence[File], made: dict[str, Rewritten], lost: set[Place], new: set[Place]) -> str:
    texts = {file.name: file.text for file in files}
    rows = [
        f"{word}: {code} {name}:{texts[name].count(chr(10), 0, max(at, 0)) + 1}: {texts[name][max(at, 0) :].splitlines()[:1]}"
        for word, found in (("lost", lost), ("new", new))
        for code, name, at in sorted(found)
    ]
    return "\n".join([*rows, *(f"--- {name}\n{one.before}\n--- {name}, rewritten\n{one.text}" for name, one in made.items())])


def order_is_nothing(files: Sequence[File], order: Sequence[int]) -> None:
    """The same report, whatever order the files are in."""
    one, two = lint(files), lint([files[index] for index in order])
    assert one.findings == two.findings, f"order {order}\n" + "\n---\n".join(f.text for f in files)
    assert sorted(map(str, one.problems)) == sorted(map(str, two.problems))


def fixes_settle(file: File, unsafe: bool) -> int:
    """``--fix`` comes to an end, parses, and brings no finding. How many findings it mended."""
    resolver, mended, text = Resolver(Settings.of(select=["ALL"])), 0, file.text
    with bare() as faults, within(2 * SECONDS):
        report = linter.run_text(text.encode(), file.name, resolver, fixes=True)
        for _ in range(MOST_PASSES + 1):
            if report.problems:  # what does not parse is not mended
                assert mended == 0, report.problems
            step = repairs(report, unsafe)
            if not step.mended:
                break
            before, text = text, step.texts[file.name]
            mended += len(step.mended)
            assert text != before, "a fix that changes nothing"
            assert not breaks(before, text, file.language), f"it parses no more:\n{before}\n--- mended\n{text}"
            count = len(report.findings)
            report = linter.run_text(text.encode(), file.name, resolver, fixes=True)
            assert len(report.findings) < count, f"{step.mended}\n{before}\n--- mended\n{text}\n{report.findings}"
        else:
            raise AssertionError(f"fixes do not settle:\n{text}")
    assert not faults, faults[0]
    return mended


def breaks(before: str, after: str, language: str) -> bool:
    """Whether a text that parsed does so no more."""
    if language == "python":
        return parses(before) and not parses(after)
    return language == "cuda" and errors(after) > errors(before)


@functools.cache
def _parser() -> tree_sitter.Parser:
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cuda.language()))


def errors(text: str) -> int:
    """Places that tree-sitter cannot make sense of."""
    cursor, count = _parser().parse(text.encode()).walk(), 0
    while True:
        node = cursor.node
        count += node is not None and (node.is_error or node.is_missing)
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            return count


def spent() -> float:
    """Processor time of this process."""
    return time.process_time()
