"""``streamlint verify --executor dask``: the templates on the GPU of each worker of a Dask cluster, and one matrix of what came of it."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Sequence

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.support.lazy import lazy
from streamlint.verify import fleet, matrix
from streamlint.verify.fleet import Grid, Member, Order
from streamlint.verify.options import FailedError, choose, targets_of
from streamlint.verify.outcome import exit_code, fail, save, write_reports
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Result
from streamlint.verify.session import orderly_end

if TYPE_CHECKING:
    from streamlint.runner.cluster import client
else:
    (client,) = lazy("streamlint.runner.cluster", "client")

FORMATS = ("full", "json", "markdown")


def run_far(options: argparse.Namespace, stack: contextlib.ExitStack) -> int:
    """Verify on the workers of a cluster; returns the exit code."""
    if (options.executor is None) != (options.scheduler is None):
        needs = "--executor dask needs --scheduler ADDRESS" if options.executor else "--scheduler needs --executor dask"
        raise FailedError(needs)
    targets = targets_of(options, FORMATS)
    choose(options.rule)
    progress = Progress(quiet=options.quiet)
    stack.callback(progress.clear)
    stack.enter_context(orderly_end())
    try:
        cluster = client.Cluster(options.scheduler)
    except StreamlintError as problem:
        raise FailedError(str(problem)) from None
    stack.callback(cluster.close)
    return run_on(cluster, options, targets, progress)


def run_on(grid: Grid, options: argparse.Namespace, targets: Sequence[tuple[str, str | None]], progress: Progress) -> int:
    """Have the workers run the cases, report and keep what came of it."""
    cases = [case for template in choose(options.rule) for case in template.cases]
    members: list[Member] = []
    order = Order(options.device, options.memory, options.timeout, options.self_test)
    try:
        fleet.verify(grid, cases, order, progress, members)
    except (KeyboardInterrupt, SystemExit):
        for member in members:
            member.lost = member.lost or ("interrupted" if member.missed or not member.cases else "")
        if matrix.columns(members):
            _tell(options, targets, progress, members)
        fail("interrupted")
        raise
    results: list[Result] = [result for column in matrix.columns(members) for result in column.results.values()]
    if not results:
        raise FailedError("; ".join(["no worker has run anything", *matrix.lost(members)]))
    _tell(options, targets, progress, members)
    return exit_code(results, self_test=options.self_test, strict=options.strict)


def _tell(options: argparse.Namespace, targets: Sequence[tuple[str, str | None]], progress: Progress, members: list[Member]) -> None:
    """Report what the workers found, and keep it."""
    progress.clear()
    render = {"full": matrix.full, "json": matrix.as_json, "markdown": matrix.markdown}
    write_reports(targets, lambda format, _: render[format](members) + "\n")
    if options.output_file or not any(file is None and format != "json" for format, file in targets):
        for line in matrix.lost(members):
            progress.say(line)
        progress.say(matrix.counts(members))
    if not (options.self_test or options.no_save):
        for column in matrix.columns(members):
            save(options, column.facts, [result.as_json() for result in column.results.values()], progress)
