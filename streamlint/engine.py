"""From source texts to findings: front ends, interpreter, checks, and which code wins where several stand at one operation."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamlint import models
from streamlint.findings import Category, Finding, Problem, Report


@dataclass(frozen=True, slots=True)
class Source:
    """One file's text. ``path`` is shown in findings as it stands; ``language`` is ``python``, ``cuda`` or ``cython``."""

    path: str
    text: str
    language: str


@dataclass(frozen=True, slots=True)
class Options:
    """What decides findings, apart from the sources. Hashable, so that it can key a cache."""

    codes: frozenset[str] = frozenset()
    default_stream: str = "auto"  # auto, legacy, per-thread
    target_device: str = "maybe"  # maybe, cuda
    hidden_sync: str = "hot-loops"
    user_models: tuple[tuple[str, Any], ...] = field(default=(), hash=False)
    coverage: bool = False


# Of the codes on one operation the first of these wins; others follow their category (semantics: cause before effect).
_PRECEDENCE = ("SL013", "SL018", "SL014", "SL027", "SL026")
_BY_CATEGORY = (Category.ERROR, Category.DEADLOCK, Category.RACE, Category.STALL, Category.PORTABILITY)


def analyse(sources: Sequence[Source], options: Options, jobs: int = 1) -> Report:
    """Findings of the sources, in order, before suppressions. ``jobs`` processes share the work; the findings are the same."""
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are many small objects that live until the end
    try:
        return _analyse(sources, options, jobs)
    finally:
        if collecting:
            gc.enable()


def _analyse(sources: Sequence[Source], options: Options, jobs: int) -> Report:
    from streamlint.analysis import Analysis
    from streamlint.interpreter.index import Program
    from streamlint.workers import shared

    report = Report(files=len(sources))
    program = Program()
    for source in sources:
        _lower(source, options, program, report)
    analysis = Analysis(program, options)
    found: list[Finding] = []
    for part in shared(analysis.check, list(program.files), jobs):
        found.extend(part.findings)
        report.problems.extend(part.problems)
        analysis.coverage.merge(part.coverage)
    report.findings = sorted(winners(found), key=Finding.sort_key)
    if options.coverage:
        report.coverage = analysis.coverage.summary()
    return report


def _lower(source: Source, options: Options, program: Any, report: Report) -> None:
    from streamlint.frontends import UnreadableSource

    language = "cuda" if source.language == "cuda" else "python"
    if source.language == "cython":
        return  # Cython has no front end yet
    try:
        if language == "cuda":
            from streamlint.frontends.cuda import lower
        else:
            from streamlint.frontends.python import lower
        module = lower(source.path, source.text)
    except UnreadableSource as error:
        report.problems.append(Problem(source.path, error.message, error.row, error.column))
        return
    program.add(module, _models(language, options))
    if language == "python":
        from streamlint.frontends.inline import modules_in

        module.inline = modules_in(module)
        for number, inner in enumerate(module.inline, 1):
            program.add(inner, _models("cuda", options), key=f"{source.path}#inline{number}")


def _models(language: str, options: Options) -> models.Models:
    return models.load(language, options.user_models) if options.user_models else models.builtin(language)


def best(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding a place and code: the one with the shortest trail."""
    best: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        key = (finding.span, finding.code)
        held = best.get(key)
        if held is None or (len(finding.trail), finding.message) < (len(held.trail), held.message):
            best[key] = finding
    return best.values()


def winners(findings: Iterable[Finding]) -> Iterator[Finding]:
    """One code an operation; the others are listed as related."""
    places: dict[Any, list[Finding]] = {}
    for finding in best(findings):
        places.setdefault(finding.span, []).append(finding)
    for group in places.values():
        group.sort(key=_rank)
        winner, *others = group
        yield replace(winner, related=tuple(f.code for f in others)) if others else winner


def _rank(finding: Finding) -> tuple[int, int, str]:
    first = _PRECEDENCE.index(finding.code) if finding.code in _PRECEDENCE else len(_PRECEDENCE)
    return (first, _BY_CATEGORY.index(finding.category), finding.code)
