"""From source texts to findings: files are parsed, and what the tasks find in all of them is joined."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from streamlint import models
from streamlint.cache.parts import Parts, says_the_same
from streamlint.config.options import Options, Source
from streamlint.findings import Finding, Part, Problem, Report
from streamlint.runner import progress
from streamlint.runner.parsing import WORTH_A_PROCESS, Parser
from streamlint.runner.tasks import Task, codes_of, kinds
from streamlint.runner.workers import FEWEST, as_done
from streamlint.support import guard, memory
from streamlint.support.errors import ConfigError
from streamlint.support.lazy import lazy
from streamlint.support.memory import freeze, seldom_collected
from streamlint.support.records import replace
from streamlint.triage.precedence import winners

if TYPE_CHECKING:
    from streamlint.cache.store import Store
    from streamlint.runner.cluster import job
    from streamlint.runner.cluster.client import Cluster
    from streamlint.runner.tasks import Task
else:
    (job,) = lazy("streamlint.runner.cluster", "job")

CHECKING = "checking"
Found = dict[str, list[Finding]]  # by file, before precedence
Keep = Callable[["Parser | None", Found], None]


def analyse(
    sources: Sequence[Source],
    options: Options,
    jobs: int = 1,
    keep: Keep | None = None,
    store: Store | None = None,
    cluster: Cluster | None = None,
) -> Report:
    """Findings of the sources, in order, before suppressions. ``jobs`` processes share the work; the findings are the same.

    ``keep`` gets the sources as they were parsed, and what was found by file. What a ``store`` holds is not searched for.
    With a ``cluster`` its workers do what processes here would do.
    """
    with seldom_collected():
        start = time.perf_counter()
        parser = Parser(sources, store)
        report = Report(files=len(sources))
        report.problems = _parsed(parser, jobs)
        report.timings["  lower"] = time.perf_counter() - start
        parts = _parts(parser, options, jobs, store, cluster, report)
        found = join(report, parts, options)
        report.timings["  check"] = time.perf_counter() - start - report.timings["  lower"]
        if keep is not None:
            keep(parser, found)
        return report


def parts_of(sources: Sequence[Source], options: Options, jobs: int, store: Store | None) -> tuple[Report, list[Part]]:
    """A report of what cannot be read, and what the tasks of the options give."""
    with seldom_collected():
        parser, report = Parser(sources, store), Report(files=len(sources))
        report.problems = _parsed(parser, jobs)
        return report, _parts(parser, options, jobs, store, None, report)


def join(report: Report, parts: Iterable[Part], options: Options) -> Found:
    """Put what the tasks gave into a report; returns what was found by file, before precedence."""
    parts = list(parts)
    found: Found = {}
    for part in parts:
        report.problems += part.problems
        report.own_rows = sorted({*report.own_rows, *part.own_rows})
        for finding in part.findings:
            found.setdefault(finding.span.file, []).append(finding)
    built = {(str(path), str(word)): [path, word, said] for part in parts for path, word, said in part.built}
    report.built = [built[key] for key in sorted(built)]
    report.findings = sorted(winners(finding for part in parts for finding in part.findings), key=Finding.sort_key)
    if options.coverage:
        report.coverage = _figures(parts)
    return found


def _figures(parts: Sequence[Part]) -> dict[str, object]:
    """The figures of ``--coverage``."""
    counted = {key: counts for part in parts for key, counts in part.coverage.items()}
    failures = [f"{problem.file}:{problem.row}: {problem.message}" for part in parts for problem in part.problems]
    return {**counted, "over_budget": sum(part.cut for part in parts), "failures": failures}


def _parsed(parser: Parser, jobs: int) -> list[Problem]:
    parser.ahead(jobs)
    problems = parser.problems()
    freeze()  # what is collected from now on is what the tasks leave behind
    return problems


def _parts(parser: Parser, options: Options, jobs: int, store: Store | None, cluster: Cluster | None, report: Report) -> list[Part]:
    _demand_models(parser.sources, options)
    kept = Parts(store, options) if store is not None else None
    tasks = [Task(parser, options, kind, kept) for kind in kinds(options)]
    waiting = {task.name: task for task in tasks if task.part is None}
    if waiting and cluster is not None and len(parser.sources) >= FEWEST:
        return _found_far(parser, options, cluster, report)
    _find(waiting, jobs)
    progress.known(len(parser.sources))
    return [task.part for task in tasks if task.part is not None]


def looked_for(parser: Parser, options: Options) -> Part:
    """What the rules of the options give together, in this process."""
    found = Part()
    for task in [Task(parser, options, kind) for kind in kinds(options) if kind.codes]:
        part = task.part if task.part is not None else _collected(task)
        found.findings += part.findings
        found.problems += part.problems
        found.built += part.built
        found.cut += part.cut
    return found


def _found_far(parser: Parser, options: Options, cluster: Cluster, report: Report) -> list[Part]:
    """Have the workers of a cluster look; rules run here once more where their build files say something else than those here."""
    names = sorted(codes_of(options))
    task = job.Job(os.getcwd(), tuple(parser.sources), options, parser.sent(), guard.seconds())
    progress.stage(CHECKING, len(names))
    parts, unlike = list[Part](), list[str]()
    for name, answer in cluster.answers(task, names, len):
        if isinstance(answer, str):
            what = f"internal error: {name} saw no file of this run: {answer}"
            parts.append(Part(problems=[Problem(parser.sources[0].path, what, fault=True)]))
        elif says_the_same(answer):
            parts.append(answer)
        else:
            unlike.append(name)
        progress.done()
    if unlike:
        parts.append(looked_for(parser, replace(options, codes=frozenset(unlike))))
        report.remarks.append("the Dask workers do not see the same build files, or not in this folder: what rests on these was asked here")
    return parts + [Task(parser, options, kind).find() for kind in kinds(options) if not kind.codes]


def _collected(task: Task) -> Part:
    """What a task finds in this process, which others follow."""
    part = task.find()
    memory.collect()
    return part


def _find(tasks: dict[str, Task], jobs: int) -> None:
    """Look for what the tasks are for, each in a process of its own if that is worth it: what a task leaves behind ends with it.

    Nodes and frames of facts hold each other, and to collect them took a quarter of the time of a run of 2,897 files.
    """
    fewest = 1 if sum(task.size for task in tasks.values()) >= WORTH_A_PROCESS else FEWEST
    found = as_done(
        lambda name: tasks[name].find() if hasattr(os, "fork") else _collected(tasks[name]),
        list(tasks),
        jobs,
        lambda name: tasks[name].size,
        instead=lambda name, why: tasks[name].lose(why),
        fewest=fewest,
        stage=CHECKING,
        each_anew=True,
    )
    for name, part in found:
        tasks[name].done(part)


def _demand_models(sources: Sequence[Source], options: Options) -> None:
    """The models can be read, the user's as well.

    Raises ConfigError where they cannot.
    """
    try:
        for language in {"cuda" if source.language == "cuda" else "python" for source in sources}:
            models.with_user_rows(language, options.user_models)
    except models.ModelError as error:  # in a file of ours that somebody is writing
        raise ConfigError(str(error)) from None
