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


def analyse(sources: Sequence[Source], options: Options) -> Report:
    """Findings of the sources, in order, before suppressions."""
    collecting = gc.isenabled()
    gc.disable()  # syntax trees are many small objects that live until the end
    try:
        return _analyse(sources, options)
    finally:
        if collecting:
            gc.enable()


def _analyse(sources: Sequence[Source], options: Options) -> Report:
    from streamlint.checks.base import registry
    from streamlint.interpreter.index import Program
    from streamlint.interpreter.run import Coverage, Settings

    report = Report(files=len(sources))
    checks = [check() for code, check in registry().items() if not options.codes or code in options.codes]
    program, coverage = Program(), Coverage()
    settings = Settings(options.default_stream, options.target_device)
    for source in sources:
        _lower(source, options, program, report)
    found: list[Finding] = []
    for file in list(program.files.values()):
        found.extend(_check_file(file, checks, coverage, settings, report))
    report.findings = sorted(_winners(found), key=Finding.sort_key)
    if options.coverage:
        report.coverage = _summary(coverage)
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


def _check_file(file: Any, checks: Sequence[Any], coverage: Any, settings: Any, report: Report) -> Iterator[Finding]:
    from streamlint.interpreter.facts import facts_of
    from streamlint.interpreter.roots import roots_of

    facts = facts_of(file, settings.default_stream)
    found: list[Finding] = []
    for check in checks:
        found.extend(check.on_map(facts))
    needs = tuple(check.needs for check in checks if check.needs)
    everything = len(needs) < len(checks)
    for root in roots_of(file):
        if not (everything or _wanted(root, needs)):
            continue
        coverage.roots += 1
        try:
            found.extend(_check_root(file, root, facts, checks, coverage, settings))
        except Exception as error:
            # A fault of ours costs one root, never the run; it is told.
            where = root.function.at if root.function is not None else (1, 1, 1, 1)
            coverage.failures.append(f"{file.path}:{where[0]}: {root.qualname}: {type(error).__name__}: {error}")
            report.problems.append(Problem(file.path, f"internal error in {root.qualname}: {type(error).__name__}: {error}", where[0], where[1]))
    found = sorted(_best(found), key=Finding.sort_key)
    for check in checks:
        yield from check.fold([finding for finding in found if finding.code == check.code], facts)


def _wanted(root: Any, needs: Any) -> bool:
    """Whether what a check needs stands in a root's text or in what it calls."""
    from streamlint.interpreter.relevance import satisfies_text

    if root.function is None or root.file.is_cuda:
        return satisfies_text("\n".join(f.module.text for f in (root.file, *root.file.neighbours())), needs)
    found: bool = root.file.relevance.satisfies(root.function, needs)
    return found


def _check_root(file: Any, root: Any, facts: Any, checks: Sequence[Any], coverage: Any, settings: Any) -> Iterator[Finding]:
    from streamlint.interpreter.explore import Explorer
    from streamlint.interpreter.trace import Trace

    explorer = Explorer(file.program, root, coverage, settings)
    runs = list(explorer.paths())
    pinned = explorer.pinned_places()
    for run in runs:
        trace = Trace(run.machine.operations, run.machine.conflicts, facts, pinned)
        for check in checks:
            for operation in trace.operations:
                yield from check.on_operation(operation, trace)
        for conflict in list(trace.conflicts):
            settled = explorer.settled(run, conflict)
            if settled is not None:
                for check in checks:
                    yield from check.on_conflict(settled, trace)


def _best(findings: Iterable[Finding]) -> Iterable[Finding]:
    """One finding a place and code: the one with the shortest trail."""
    best: dict[tuple[Any, ...], Finding] = {}
    for finding in findings:
        key = (finding.span, finding.code)
        held = best.get(key)
        if held is None or (len(finding.trail), finding.message) < (len(held.trail), held.message):
            best[key] = finding
    return best.values()


def _winners(findings: Iterable[Finding]) -> Iterator[Finding]:
    """One code an operation; the others are listed as related."""
    places: dict[Any, list[Finding]] = {}
    for finding in _best(findings):
        places.setdefault(finding.span, []).append(finding)
    for group in places.values():
        group.sort(key=_rank)
        winner, *others = group
        yield replace(winner, related=tuple(f.code for f in others)) if others else winner


def _rank(finding: Finding) -> tuple[int, int, str]:
    first = _PRECEDENCE.index(finding.code) if finding.code in _PRECEDENCE else len(_PRECEDENCE)
    return (first, _BY_CATEGORY.index(finding.category), finding.code)


def _summary(coverage: Any) -> dict[str, object]:
    launches, copies = list(coverage.launches.values()), list(coverage.copies.values())
    return {
        "roots": coverage.roots,
        "runs": coverage.runs,
        "over_budget": coverage.over_budget,
        "launches": len(launches),
        "launches_known": sum(launches),
        "copies": len(copies),
        "copies_known": sum(copies),
        "opaque": coverage.opaque.most_common(20),
        "failures": coverage.failures,
    }
