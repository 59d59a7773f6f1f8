"""Runs cases on a machine, batch by batch, and says how far it is."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from streamlint.verify import report, runner
from streamlint.verify.building import Builds, Built, compiled
from streamlint.verify.care import Plan
from streamlint.verify.cases import VARIANTS, Case
from streamlint.verify.criteria import Judgement, Verdict
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Job, Result, Speaker

_MORE_RUNS = 2  # of a case that figures did not decide
Results = dict[tuple[object, ...], Result]


@contextlib.contextmanager
def orderly_end() -> Iterator[None]:
    """SIGTERM and SIGHUP unwind as Ctrl-C does, so that children are ended and folders removed on the way out."""

    def leave(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = [signal.signal(number, leave) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


class Machine(Protocol):
    """What a session needs of a GPU; :class:`streamlint.verify.device.Device` is one, tests have another."""

    def probe(self) -> dict[str, Any]: ...
    def prepare(self, probed: Mapping[str, object]) -> Plan: ...
    def missing(self, case: Case) -> str | None: ...
    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]: ...
    def spawn(self, jobs: Sequence[Job]) -> Speaker: ...


def run_cases(
    machine: Machine, cases: Sequence[Case], timeout: float, progress: Progress, *, swap: bool = False, into: Results | None = None
) -> Results:
    """The result of each distinct case. ``swap``: misuse and remedy change places (``--self-test``).

    ``into`` gets each result as it comes, so that what an interrupted run has is not lost.
    """
    results: Results = {} if into is None else into
    runnable: list[Case] = []
    for case in {case.identity: case for case in cases}.values():
        lack = machine.missing(case)
        if lack is None:
            runnable.append(case)
        else:
            results[case.identity] = _without_run(case, Verdict.UNSUPPORTED, lack)
    if any(map(compiled, runnable)):
        progress.say("compiling beside the first programs (cached for the next time) …")
    progress.total = 2 * len(runnable)
    with Builds(machine, runnable) as builds:
        for batch in builds.in_order(runnable):
            _run_batch(machine, batch, builds.of(batch), timeout, progress, swap, results)
    return results


def _run_batch(
    machine: Machine, batch: Sequence[Case], built: Built, timeout: float, progress: Progress, swap: bool, results: Results
) -> None:
    """Run what could be compiled, and say each verdict as it comes."""
    libraries, failures = built
    broken = {case.identity: problem for case in batch if (problem := _build_failure(case, failures)) is not None}
    for case in batch:
        if case.identity in broken:
            results[case.identity] = _without_run(case, Verdict.INCONCLUSIVE, f"it did not compile: {broken[case.identity]}")
            progress.say(report.verdict_line(results[case.identity]))
    whole = [case for case in batch if case.identity not in broken]
    if not whole:
        return

    def judged(result: Result) -> None:
        results[result.case.identity] = result
        progress.say(report.verdict_line(result))

    found = runner.run_batch(whole, machine.spawn, libraries, timeout, swap=swap, progress=progress.step, judged=judged)
    found = [_decided(machine, result, libraries, timeout, progress, swap) for result in found]
    results.update((result.case.identity, result) for result in found)


def _decided(machine: Machine, result: Result, libraries: Mapping[str, str], timeout: float, progress: Progress, swap: bool) -> Result:
    """The result, or that of another run where the figures were too noisy to decide. A hang or a crash is final."""
    for _ in range(_MORE_RUNS):
        if result.judgement.verdict is not Verdict.INCONCLUSIVE or "failure" in {**result.misuse, **result.remedy}:
            break
        progress.say(
            f"  {result.case.rule} {result.case.name} [{result.case.api}] decides nothing and is run again: {result.judgement.reason}"
        )
        (result,) = runner.run_batch([result.case], machine.spawn, libraries, timeout, swap=swap, progress=progress.step)
        progress.say(report.verdict_line(result))
    return result


def _without_run(case: Case, verdict: Verdict, reason: str) -> Result:
    return Result(case, Judgement(verdict, reason), {}, {}, 0.0)


def _build_failure(case: Case, failures: Mapping[str, str]) -> str | None:
    return next((failures[path] for variant in VARIANTS if (path := str(case.path(variant))) in failures), None)
