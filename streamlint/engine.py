"""From source texts to findings: front ends, interpreter, checks."""

from __future__ import annotations

import contextlib
import functools
import itertools
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from streamlint import guard, models, progress
from streamlint.errors import ConfigError
from streamlint.findings import Finding, Problem, Report
from streamlint.memory import Parsed, freeze, seldom_collected
from streamlint.options import Options, Source
from streamlint.precedence import winners

if TYPE_CHECKING:
    from streamlint.analysis import Analysis, Part
    from streamlint.cache.store import Store
    from streamlint.cache.trees import Trees
    from streamlint.cache.units import Units
    from streamlint.cluster.client import Cluster
    from streamlint.frontends.cuda_headers import Headers
    from streamlint.incremental import Incremental
    from streamlint.program import Module
    from streamlint.whole import WholeTask

WORTH_A_PROCESS = 1 << 16  # characters
PARSING, CHECKING = "parsing", "checking"
Keep = Callable[[Any, Mapping[str, Sequence[Finding]], "Incremental | None"], None]


def analyse(
    sources: Sequence[Source],
    options: Options,
    jobs: int = 1,
    keep: Keep | None = None,
    units: Units | None = None,
    cluster: Cluster | None = None,
) -> Report:
    """Findings of the sources, in order, before suppressions. ``jobs`` processes share the work; the findings are the same.

    ``keep`` is handed the program that was made of them, what was found by file, and who keeps it. What ``units`` hold is not
    analysed again.
    With a ``cluster`` its workers do what processes here would do.
    """
    with seldom_collected():
        return _analyse(sources, options, jobs, keep, units, cluster)


def _analyse(
    sources: Sequence[Source], options: Options, jobs: int, keep: Keep | None, units: Units | None, cluster: Cluster | None
) -> Report:
    start = time.perf_counter()
    work = _work(sources, options, jobs, units)
    tasks = _whole_tasks(work, options, units)
    work.ready()
    report = work.report
    report.timings["  lower"] = time.perf_counter() - start
    freeze()  # what is collected from now on, a file at a time, is what its paths leave behind
    progress.known(len(sources) - len(work.open))
    if work.open or any(task.part is None for task in tasks):
        _check(work, tasks, options, jobs, cluster)
    found = join(report, work.parts(), options, _parts(tasks))
    report.timings["  check"] = time.perf_counter() - start - report.timings["  lower"]
    report.built = work.built()
    if keep is not None:
        for finding in (each for task in tasks if task.part is not None for each in task.part.findings):
            found.setdefault(finding.span.file, []).append(finding)
        keep(work.program, found, work)
    return report


def join(report: Report, parts: Iterable[tuple[str, Part]], options: Options, whole: Iterable[Part] = ()) -> dict[str, list[Finding]]:
    """Put what the files gave, and the program as a ``whole``, into a report; returns what was found by file, before precedence
    between files."""
    from streamlint.interpreter.run import Coverage

    found: dict[str, list[Finding]] = {}
    told: list[Finding] = []
    coverage, own_rows = Coverage(), set[str]()
    for part in whole:
        told += part.findings
        report.problems += part.problems
        coverage.merge(part.coverage)
    for path, part in parts:
        found.setdefault(path, []).extend(part.findings)
        report.problems.extend(part.problems)
        coverage.merge(part.coverage)
        own_rows |= part.own_rows
    report.own_rows = sorted(own_rows)
    report.findings = sorted(winners(itertools.chain(told, *found.values())), key=Finding.sort_key)
    if options.coverage:
        report.coverage = coverage.summary()
    return found


def told_once(problems: list[Problem]) -> list[Problem]:
    """A parser that is missing is a problem of the installation: it is told at the first file that wants it, with their number."""
    from streamlint.frontends import NOT_READ

    files: dict[str, list[str]] = {}
    for problem in problems:
        if problem.message.startswith(NOT_READ):
            files.setdefault(problem.message, []).append(problem.file)
    told = [problem for problem in problems if problem.message not in files]
    for message, mine in files.items():
        others = len(set(mine)) - 1
        more = f"left out, with {others} other{'s' * (others > 1)}:" if others else "left out:"
        told.append(Problem(min(mine), message.replace("left out:", more, 1)))
    return told


def parts_of(
    sources: Sequence[Source], options: Options, jobs: int, units: Units | None, only: Collection[str], whole: bool
) -> tuple[list[tuple[str, Part]], list[Part], list[Problem]]:
    """What some of the sources give among all of them, what all give as a ``whole`` if that is asked for, and what could not be read."""
    with seldom_collected():
        work = _work(sources, options, jobs, units)
        work.narrow(only)
        tasks = _whole_tasks(work, options, units) if whole else []
        work.ready()
        freeze()
        progress.known(sum(source.path in only for source in sources) - len(work.open))
        if work.open or any(task.part is None for task in tasks):
            _check(work, tasks, options, jobs, None)
        return list(work.parts()), _parts(tasks), work.report.problems


def _work(sources: Sequence[Source], options: Options, jobs: int, units: Units | None) -> Incremental:
    from streamlint.incremental import Incremental

    read = reader(sources, options, units)
    return Incremental(sources, read, units, lambda fresh: read.ahead(fresh, jobs), read.made_of if units is not None else None)


def _whole_tasks(work: Incremental, options: Options, units: Units | None) -> list[WholeTask]:
    from streamlint.whole import WholeTask, kinds

    def tree(path: str) -> Module | None:
        file = work.program.file_of(path)
        return file.module if file is not None else None

    return [WholeTask(work.sources, options, tree, kind, units) for kind in kinds()]


def _parts(tasks: Iterable[WholeTask]) -> list[Part]:
    return [task.part for task in tasks if task.part is not None]


def _check(work: Incremental, tasks: Iterable[WholeTask], options: Options, jobs: int, cluster: Cluster | None) -> None:
    from streamlint.analysis import Analysis, Part
    from streamlint.workers import FEWEST, as_done

    analysis = Analysis(work.program, options)
    check = work.check(analysis)
    wholes = {task.name: task for task in tasks if task.part is None}
    if cluster is not None and len(work.open) >= FEWEST:
        for task in wholes.values():
            task.done(task.find())
        _check_far(work, options, cluster, analysis)
        return

    def look(path: str) -> tuple[list[Part], dict[str, object]]:
        return ([wholes[path].find()], {}) if path in wholes else check(path)

    def size(path: str) -> int:
        return wholes[path].size if path in wholes else work.size(path)

    def lose(path: str, why: str) -> tuple[list[Part], dict[str, object]]:
        return [wholes[path].lose(Part(), why) if path in wholes else analysis.lose(path, why)], {}

    names = [*work.open, *wholes]
    fewest = 2 if sum(map(size, names)) >= WORTH_A_PROCESS else FEWEST
    for path, (parts, rests) in as_done(look, names, jobs, size, instead=lose, fewest=fewest, stage=CHECKING):
        if path in wholes:
            wholes[path].done(parts[0])
        else:
            work.done(path, parts, rests)


def _check_far(work: Incremental, options: Options, cluster: Cluster, analysis: Analysis) -> None:
    """Have the workers of a cluster check; what they found where build files say something else is looked at again here."""
    check, unlike = work.check(analysis), 0
    progress.stage(CHECKING, len(work.open))
    for path, answer in cluster.answers(work.job(options), work.open, work.size):
        if isinstance(answer, str):
            work.done(path, [analysis.lose(path, answer)], {})
        elif work.believes(answer):
            work.done(path, answer.parts, answer.rests)
        else:
            unlike += 1
            work.done(path, *check(path))
        progress.done()
    if unlike:
        files = "1 file was" if unlike == 1 else f"{unlike} files were"
        work.report.remarks.append(f"{files} analysed here: the Dask workers do not see the same build files, or not in this folder")


class Reader:
    """Adds sources to a program. Those that are read ahead are lowered in processes beside this one, and wait here."""

    def __init__(self, sources: Sequence[Source], options: Options, store: Store | None = None) -> None:
        self._options = options
        self._headers, self._parsed = functools.cache(lambda: headers_of(sources)), Parsed()
        self._trees: Trees | None = None
        if store is not None:
            from streamlint.cache.trees import Trees

            self._trees = Trees(store, self._headers)
        self._ahead: dict[str, Module | Problem] = {}

    def __call__(self, source: Source, program: Any, report: Report) -> None:
        """Add one of the sources; the report learns what cannot be read."""
        made = self._ahead.pop(source.path) if source.path in self._ahead else self._lowered(source)
        add(made, source, self._options, program, report)

    def ahead(self, sources: Sequence[Source], jobs: int) -> None:
        """Lower sources that are sure to be asked for, if that is worth a second process."""
        from streamlint.workers import FEWEST, as_done

        if jobs < 2 or len(sources) < FEWEST or sum(len(source.text) for source in sources) < WORTH_A_PROCESS:
            return
        if self._trees is not None:
            self._ahead.update((source.path, kept) for source in sources if (kept := self._trees.load(source)) is not None)
            sources = [source for source in sources if source.path not in self._ahead]
        from streamlint.bare import bare

        texts = {source.path: bare(source) for source in sources}
        self._import(sources)

        def work(path: str) -> Module | Problem:
            made = self._made(texts[path])
            if not isinstance(made, Problem):
                made.text = ""  # it is here already
            return made

        for path, made in as_done(work, list(texts), jobs, lambda path: len(texts[path].text), instead=Problem, stage=PARSING):
            if not isinstance(made, Problem):
                made.text = texts[path].text
            self._ahead[path] = made

    def made_of(self, source: Source) -> str:
        """A name for all that a source is lowered from; only where there is a store."""
        assert self._trees is not None
        return self._trees.key(source)

    def _import(self, sources: Sequence[Source]) -> None:
        """What the processes share: the parsers, and the C++ that is included."""
        with contextlib.suppress(Exception):  # what is missing is told for each file
            if any(source.language != "cuda" for source in sources):
                from streamlint.frontends.python import ready

                ready()
            if any(source.language == "cuda" for source in sources):
                import streamlint.frontends.cuda  # noqa: F401
        self._headers()

    def _lowered(self, source: Source) -> Module | Problem:
        kept = self._trees.load(source) if self._trees is not None else None
        return self._made(source) if kept is None else kept

    def _made(self, source: Source) -> Module | Problem:
        made = lowered(source, self._headers() if source.language == "cuda" else None)
        self._parsed.add(len(source.text))
        if self._trees is not None and not isinstance(made, Problem):
            self._trees.keep(source, made)
        return made


def reader(sources: Sequence[Source], options: Options, units: Units | None = None) -> Reader:
    """What adds one of these sources to a program. What the store of the units holds of it is not lowered again."""
    return Reader(sources, options, units.store if units is not None else None)


def headers_of(sources: Iterable[Source]) -> Headers | None:
    """The C++ sources, for those that include them."""
    texts = {source.path: source.text for source in sources if source.language == "cuda"}
    if not texts:
        return None
    from streamlint.frontends.cuda_headers import Headers

    return Headers(texts)


def lower(source: Source, options: Options, program: Any, report: Report, headers: Headers | None = None) -> None:
    """Add a source to a program; the report learns where it cannot be read. ``headers`` hold the macros that C++ includes."""
    add(lowered(source, headers), source, options, program, report)


def add(module: Module | Problem, source: Source, options: Options, program: Any, report: Report) -> None:
    """Add what became of a source to a program, or tell why it cannot be read."""
    if isinstance(module, Problem):
        report.problems.append(module)
    else:
        from streamlint.frontends import LOST, NOT_READ

        report.problems += [Problem(source.path, text, *at[:2], lost=True) for at, text in module.problems if text.startswith(LOST)]
        lost = [(at, message) for at, message in module.problems if message.startswith(NOT_READ)]  # C++ in its strings
        report.problems += [Problem(source.path, message, *at[:2]) for at, message in lost]
        take(module, source.language, options, program)


def take(module: Module, language: str, options: Options, program: Any) -> None:
    """Add a lowered source to a program, and the C++ in its strings."""
    program.add(module, _models(language, options))
    for number, inner in enumerate(module.inline, 1):
        program.add(inner, _models("cuda", options), key=f"{module.path}#inline{number}")


def lowered(source: Source, headers: Headers | None) -> Module | Problem:
    """A source lowered, with the C++ in its strings, or why it cannot be read."""
    from streamlint.frontends import MissingParser, UnreadableSource

    guard.at(source.path)
    try:
        module = _to_module(source, headers)
        if source.language == "python":
            from streamlint.frontends.inline import modules_in

            module.inline = modules_in(module)
        return module
    except UnreadableSource as error:
        return Problem(source.path, error.message, error.row, error.column, lost=not isinstance(error, MissingParser))
    except RecursionError:
        return Problem(source.path, "left out: code is nested too deeply", lost=True)
    except Exception as error:  # a fault of ours costs a file, never the run
        return Problem(source.path, f"left out: internal error while it was read: {type(error).__name__}: {error}", lost=True)
    finally:
        guard.at("")


def _to_module(source: Source, headers: Headers | None) -> Module:
    if source.language == "cuda":
        from streamlint.frontends.cuda import lower as from_cuda

        return from_cuda(source.path, source.text, headers)
    if source.language == "cython":
        from streamlint.frontends.cython import lower as from_cython

        return from_cython(source.path, source.text)
    from streamlint.bare import bare
    from streamlint.frontends.python import lower as from_python

    return from_python(source.path, bare(source).text)


def _models(language: str, options: Options) -> models.Models:
    try:
        if not options.user_models:
            return models.builtin(language)
        from streamlint.interpreter.own_rows import own_models

        return own_models(language, options.user_models)
    except models.ModelError as error:  # in a file of ours that somebody is writing
        raise ConfigError(str(error)) from None
