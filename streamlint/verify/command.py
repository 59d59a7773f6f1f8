"""``streamlint verify``: options in, verdicts out. What concerns findings is in ``streamlint.commands.verify``.

Exit codes: 0 no prediction that ran is REFUTED, 1 one is, 2 nothing could run. ``--strict`` makes INCONCLUSIVE and UNSUPPORTED 1 too.
``--self-test`` lets misuse and remedy change places: 0 if no case is then CONFIRMED, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from streamlint.errors import ConfigError
from streamlint.targets import read_targets
from streamlint.verify import evidence, report, templates
from streamlint.verify.asked import within
from streamlint.verify.cases import Case, Template
from streamlint.verify.criteria import Verdict
from streamlint.verify.lab import MEMORY_BYTES
from streamlint.verify.progress import Progress
from streamlint.verify.runner import Result
from streamlint.verify.session import Machine, Results, orderly_end, run_cases
from streamlint.writing import write_output

FORMATS = ("full", "json", "markdown", "html", "junit")
INSTALL = "install it with: pip install 'streamlint[cuda13]' (or 'streamlint[cuda12]' for a CUDA 12 driver)"
_NAMED = 12  # cases that a message lists
_UNITS = {"": 1 << 20, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class FailedError(Exception):
    """Nothing can run; the text says why, in one line."""


@dataclass
class Ready:
    """A GPU that answered."""

    machine: Machine
    name: str  # of the platform
    facts: dict[str, Any]
    memory: int  # bytes of the device that may be taken
    remarks: list[str] = field(default_factory=list)  # what was noticed about the machine, and what is done about it


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``streamlint verify``."""
    parser.add_argument("--rule", action="append", default=[], metavar="CODE|NAME", help="verify this rule only; repeatable")
    parser.add_argument(
        "--output-format",
        action="append",
        default=[],
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(FORMATS)}; with paths, those of check, and html; repeatable (default: full)",
    )
    parser.add_argument("--output-file", "-o", metavar="FILE", help="write the report there instead of to standard output")
    parser.add_argument("--evidence", metavar="DIR", help="keep the results in this folder instead of the user's own")
    parser.add_argument("--no-save", action="store_true", help="do not keep the results as evidence")
    parser.add_argument("--self-test", action="store_true", help="swap misuse and remedy: nothing may then be CONFIRMED")
    parser.add_argument("--strict", action="store_true", help="exit 1 on INCONCLUSIVE and UNSUPPORTED too")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="which of the visible GPUs; default: 0")
    parser.add_argument(
        "--memory", type=size, default=MEMORY_BYTES, metavar="SIZE", help="device memory to use at most, 512M or 2G; default: 1G"
    )
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="deadline of one program; default: 30")
    parser.add_argument("--executor", choices=("dask",), help="have each worker of a cluster run the templates on its own GPU: trust it")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the cluster's scheduler, such as tcp://host:8786")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress and no remarks")


def size(text: str) -> int:
    """``512M`` or ``2GiB`` in bytes; a number alone counts MiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write 512M or 2G")
    return int(float(found[1]) * _UNITS[found[2]])


def run(options: argparse.Namespace, machine: Machine | None = None) -> int:
    """Verify templates and report; returns the exit code."""
    try:
        with contextlib.ExitStack() as stack:
            if options.executor or options.scheduler:
                from streamlint.verify.far import run_far

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

    with told_if_interrupted(cases, found, tell):
        run_cases(ready.machine, cases, options.timeout, progress, swap=options.self_test, into=found)
    return exit_code(tell(), self_test=options.self_test, strict=options.strict)


@contextlib.contextmanager
def told_if_interrupted(cases: Sequence[Case], found: Results, tell: Callable[[], object], *, always: bool = False) -> Iterator[None]:
    """What is through when Ctrl-C or a signal ends a run is told and kept, and what is not is named. Another Ctrl-C ends that, too.

    ``always``: there is something to tell even where nothing is through.
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


def exit_code(results: Iterable[Result], *, self_test: bool, strict: bool) -> int:
    """The exit code of a run with these results."""
    verdicts = {result.judgement.verdict for result in results}
    if verdicts <= {Verdict.UNSUPPORTED}:
        return 2
    if self_test:
        return int(Verdict.CONFIRMED in verdicts)
    failing = {Verdict.REFUTED} | ({Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED} if strict else set())
    return int(bool(verdicts & failing))


def choose(wanted: Sequence[str]) -> list[Template]:
    """The templates of these rules, by code or name; all, if none is named."""
    known = templates.load()
    by_word = {word.lower(): template for template in known.values() for word in (template.rule, template.name)}
    if unknown := [word for word in wanted if word.lower() not in by_word]:
        raise FailedError(f"no templates for {', '.join(unknown)}; there are some for {', '.join(known)}")
    codes = {by_word[word.lower()].rule for word in wanted}
    return [template for code, template in known.items() if not wanted or code in codes]


def targets_of(options: argparse.Namespace, known: Sequence[str]) -> list[tuple[str, str | None]]:
    """Formats, and the file that each is written to (``None``: standard output)."""
    try:
        found = read_targets(options.output_format or ["full"], known, options.output_file)
    except ConfigError as problem:
        raise FailedError(str(problem)) from None
    if any(name == "html" for name, _ in found) and importlib.util.find_spec("jinja2") is None:
        raise FailedError(f"the HTML page needs Jinja2, which is not installed; {INSTALL}")
    return found


def prepare(options: argparse.Namespace, machine: Machine | None, progress: Progress, stack: contextlib.ExitStack) -> Ready:
    """Find the GPU, say what it is, and how it is dealt with; :class:`FailedError` if there is none that can be used.

    The stack undoes what this did: also after Ctrl-C and SIGTERM, nothing is left behind.
    """
    stack.callback(progress.clear)
    stack.enter_context(orderly_end())
    if machine is None:
        if importlib.util.find_spec("cupy") is None:
            raise FailedError(f"verify needs CuPy, which is not installed; {INSTALL}")
        from streamlint.verify.device import Device

        machine = stack.enter_context(Device(options.device, memory=options.memory))
    probed = machine.probe()
    if "reason" in probed:
        raise FailedError(f"verify needs an NVIDIA GPU that CuPy can use ({probed['reason']}); if CuPy does not fit the driver, {INSTALL}")
    facts = evidence.platform_facts(probed, options.device)
    plan = machine.prepare(probed)
    if plan.stop is not None:
        raise FailedError(plan.stop)
    ready = Ready(machine, evidence.platform_name(facts), facts, plan.memory, plan.remarks)
    for line in (ready.name, *plan.remarks):
        progress.say(line)
    return ready


def write_reports(targets: Sequence[tuple[str, str | None]], render: Callable[[str, str | None], str]) -> None:
    """Each format to its place."""
    for format, file in targets:
        text = render(format, file)
        if file is None:
            sys.stdout.write(text)
        else:
            try:
                write_output(file, text)
            except OSError as problem:
                fail(f"cannot write {file}: {problem.strerror}")


def _rendered(format: str, ready: Ready, results: Sequence[Result], missed: Sequence[Case] = ()) -> str:
    if format == "html":
        from streamlint.verify.page import render

        return render(ready.facts, [result.as_json() for result in results], ready.remarks)
    if format == "json":
        text = report.as_json(ready.facts, results, missed)
    elif format == "junit":
        text = report.junit(ready.name, results)
    else:
        text = (report.markdown if format == "markdown" else report.full)(ready.name, results)
    return text + "\n"


def save(options: argparse.Namespace, facts: Mapping[str, Any], cases: Sequence[Mapping[str, Any]], progress: Progress) -> None:
    """Keep the results as evidence."""
    folder = Path(options.evidence) if options.evidence else None
    try:
        path = evidence.save(cases, facts, folder)
    except OSError as problem:
        progress.say(f"the evidence could not be kept: {problem}")
    else:
        progress.say(f"evidence kept in {path}")


def fail(message: str) -> int:
    """Say why nothing ran; returns the exit code for it."""
    print(f"streamlint verify: {message}", file=sys.stderr, flush=True)
    return 2
