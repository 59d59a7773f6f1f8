"""``streamlint verify``: options in, verdicts out. What concerns findings is in ``streamlint.commands.verify``.

Exit codes: 0 no prediction that ran is REFUTED, 1 one is, 2 nothing could run. ``--strict`` makes INCONCLUSIVE and UNSUPPORTED 1 too.
``--self-test`` lets misuse and remedy change places: 0 if no case is then CONFIRMED, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from streamlint.verify import device, evidence, page, report
from streamlint.verify.cases import Case
from streamlint.verify.far import run_far
from streamlint.verify.options import FORMATS, INSTALL, FailedError, choose, targets_of
from streamlint.verify.outcome import exit_code, fail, save, write_reports
from streamlint.verify.platforms import platform_facts
from streamlint.verify.progress import Progress
from streamlint.verify.questions import within
from streamlint.verify.runner import Result
from streamlint.verify.session import Machine, Results, orderly_end, run_cases

_NAMED = 12  # cases that a message lists


@dataclass
class Ready:
    """A GPU that answered."""

    machine: Machine
    name: str  # of the platform
    facts: dict[str, Any]
    memory: int  # bytes of the device that may be taken
    remarks: list[str] = field(default_factory=list)  # what was noticed about the machine, and what is done about it


def run(options: argparse.Namespace, machine: Machine | None = None) -> int:
    """Verify templates and report; returns the exit code."""
    try:
        with contextlib.ExitStack() as stack:
            if options.executor or options.scheduler:
                return run_far(options, stack)
            return _run(options, machine, stack)
    except FailedError as problem:
        return fail(str(problem))


def _run(options: argparse.Namespace, machine: Machine | None, stack: contextlib.ExitStack) -> int:
    chosen = choose(options.rule)
    targets = targets_of(options, FORMATS)
    progress = Progress(quiet=options.quiet)
    ready = prepare(options, machine, progress, stack)
    cases = [within(case, ready.memory) for template in chosen for case in template.cases]
    found: Results = {}

    def tell() -> list[Result]:
        results = [found[case.identity] for case in cases if case.identity in found]
        progress.clear()
        write_reports(targets, lambda format, _: _rendered(format, ready, results, _missed(cases, found)))
        if options.output_file or not any(file is None and format in ("full", "markdown") for format, file in targets):
            progress.say(report.counts(results))
        if not (options.self_test or options.no_save):
            save(options, ready.facts, [result.as_json() for result in results], progress)
        return results

    with reported_if_interrupted(cases, found, tell):
        run_cases(ready.machine, cases, options.timeout, progress, swap=options.self_test, into=found)
    return exit_code(tell(), self_test=options.self_test, strict=options.strict)


@contextlib.contextmanager
def reported_if_interrupted(cases: Sequence[Case], found: Results, tell: Callable[[], object], *, always: bool = False) -> Iterator[None]:
    """Cases that are done when Ctrl-C or a signal ends a run are reported and kept, the others are named. Another Ctrl-C ends that, too.

    ``always``: there is something to report even where no case is done.
    """
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        missed = _missed(cases, found)
        if found or always:
            tell()
        named = ", ".join(f"{case.rule} {case.name} [{case.api}]" for case in missed[:_NAMED])
        more = f" and {len(missed) - _NAMED} more" if len(missed) > _NAMED else ""
        fail(f"interrupted; not run: {named}{more}" if missed else "interrupted")
        raise


def _missed(cases: Sequence[Case], found: Results) -> list[Case]:
    return list({case.identity: case for case in cases if case.identity not in found}.values())


def prepare(options: argparse.Namespace, machine: Machine | None, progress: Progress, stack: contextlib.ExitStack) -> Ready:
    """Find the GPU, say what it is, and how it is dealt with; :class:`FailedError` if there is none that can be used.

    The stack undoes what this did: also after Ctrl-C and SIGTERM, nothing is left behind.
    """
    stack.callback(progress.clear)
    stack.enter_context(orderly_end())
    if machine is None:
        if importlib.util.find_spec("cupy") is None:
            raise FailedError(f"verify needs CuPy, which is not installed; {INSTALL}")
        machine = stack.enter_context(device.Device(options.device, memory=options.memory))
    probed = machine.probe()
    if "reason" in probed:
        raise FailedError(f"verify needs an NVIDIA GPU that CuPy can use ({probed['reason']}); if CuPy does not fit the driver, {INSTALL}")
    facts = platform_facts(probed, options.device)
    plan = machine.prepare(probed)
    if plan.stop is not None:
        raise FailedError(plan.stop)
    ready = Ready(machine, evidence.platform_name(facts), facts, plan.memory, plan.remarks)
    for line in (ready.name, *plan.remarks):
        progress.say(line)
    return ready


def _rendered(format: str, ready: Ready, results: Sequence[Result], missed: Sequence[Case] = ()) -> str:
    if format == "html":
        return page.render(ready.facts, [result.as_json() for result in results], ready.remarks)
    if format == "json":
        text = report.as_json(ready.facts, results, missed)
    elif format == "junit":
        text = report.junit(ready.name, results)
    else:
        text = (report.markdown if format == "markdown" else report.full)(ready.name, results)
    return text + "\n"
