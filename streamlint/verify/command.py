"""``streamlint verify``: options in, verdicts out.

Exit codes: 0 no prediction that ran is REFUTED, 1 one is, 2 nothing could run. ``--strict`` makes INCONCLUSIVE and UNSUPPORTED 1 too.
``--self-test`` lets misuse and remedy change places: 0 if no case is then CONFIRMED, else 1.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from streamlint.verify import evidence, report, runner, templates
from streamlint.verify.cases import VARIANTS, Case, Template
from streamlint.verify.criteria import Judgement, Verdict
from streamlint.verify.runner import Job, Result, Speaker

FORMATS = ("full", "json", "markdown")
INSTALL = "install it with: pip install 'streamlint[cuda13]' (or 'streamlint[cuda12]' for a CUDA 12 driver)"


class Machine(Protocol):
    """What the command needs of a GPU; :class:`streamlint.verify.device.Device` is one, tests have another."""

    def probe(self) -> dict[str, Any]: ...
    def missing(self, case: Case) -> str | None: ...
    def build(self, cases: Sequence[Case]) -> tuple[dict[str, str], dict[str, str]]: ...
    def spawn(self, jobs: Sequence[Job]) -> Speaker: ...


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``streamlint verify``."""
    parser.add_argument("--rule", action="append", default=[], metavar="CODE|NAME", help="verify this rule only; repeatable")
    parser.add_argument("--output-format", choices=FORMATS, default="full", help="default: full")
    parser.add_argument("--output-file", "-o", metavar="FILE", help="write the report there instead of to standard output")
    parser.add_argument("--evidence", metavar="DIR", help="keep the results in this folder instead of the user's own")
    parser.add_argument("--no-save", action="store_true", help="do not keep the results as evidence")
    parser.add_argument("--self-test", action="store_true", help="swap misuse and remedy: nothing may then be CONFIRMED")
    parser.add_argument("--strict", action="store_true", help="exit 1 on INCONCLUSIVE and UNSUPPORTED too")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="which of the visible GPUs; default: 0")
    parser.add_argument(
        "--timeout", type=float, default=30.0, metavar="SECONDS", help="deadline of one program, imports included; default: 30"
    )


def run(options: argparse.Namespace, machine: Machine | None = None) -> int:
    """Verify and report; returns the exit code."""
    chosen, unknown = _choose(options.rule)
    if unknown:
        return _fail(f"no templates for {', '.join(unknown)}; there are some for {', '.join(templates.load())}")
    if machine is None:
        if importlib.util.find_spec("cupy") is None:
            return _fail(f"verify needs CuPy, which is not installed; {INSTALL}")
        from streamlint.verify.device import Device

        machine = Device(options.device)
    probed = machine.probe()
    if "reason" in probed:
        return _fail(f"verify needs an NVIDIA GPU that CuPy can use ({probed['reason']}); if CuPy does not fit the driver, {INSTALL}")
    facts = evidence.platform_facts(probed, options.device)
    name = evidence.platform_name(facts)
    _say(name)
    results = _verify(machine, [case for template in chosen for case in template.cases], options)
    _report(options, name, facts, results)
    if not (options.self_test or options.no_save):
        _save(options, facts, results)
    return exit_code(results, self_test=options.self_test, strict=options.strict)


def exit_code(results: Sequence[Result], *, self_test: bool, strict: bool) -> int:
    """The exit code of a run with these results."""
    verdicts = {result.judgement.verdict for result in results}
    if verdicts <= {Verdict.UNSUPPORTED}:
        return 2
    if self_test:
        return int(Verdict.CONFIRMED in verdicts)
    failing = {Verdict.REFUTED} | ({Verdict.INCONCLUSIVE, Verdict.UNSUPPORTED} if strict else set())
    return int(bool(verdicts & failing))


def _choose(wanted: Sequence[str]) -> tuple[list[Template], list[str]]:
    known = templates.load()
    if not wanted:
        return list(known.values()), []
    by_word = {word.lower(): template for template in known.values() for word in (template.rule, template.name)}
    unknown = [word for word in wanted if word.lower() not in by_word]
    codes = {by_word[word.lower()].rule for word in wanted if word.lower() in by_word}
    return [template for code, template in known.items() if code in codes], unknown


def _verify(machine: Machine, cases: Sequence[Case], options: argparse.Namespace) -> list[Result]:
    results: dict[tuple[str, str, str], Result] = {}
    runnable = []
    for case in cases:
        lack = machine.missing(case)
        if lack is None:
            runnable.append(case)
        else:
            results[case.key] = _without_run(case, Verdict.UNSUPPORTED, lack)
    if any(case.api == "cuda" or case.builds for case in runnable):
        _say("compiling (cached for the next time) …")
    libraries, failures = machine.build(runnable)
    for batch in runner.batches(runnable):
        broken = {case.key: problem for case in batch if (problem := _build_failure(case, failures)) is not None}
        for case in batch:
            if case.key in broken:
                results[case.key] = _without_run(case, Verdict.INCONCLUSIVE, f"it did not compile: {broken[case.key]}")
        whole = [case for case in batch if case.key not in broken]
        if whole:
            started = time.perf_counter()
            found = runner.run_batch(whole, machine.spawn, libraries, options.timeout, swap=options.self_test, progress=_say)
            results |= {result.case.key: result for result in found}
            _say(f"  {report.counts(found)} in {time.perf_counter() - started:.1f} s, the child's start included")
    return [results[case.key] for case in cases]


def _without_run(case: Case, verdict: Verdict, reason: str) -> Result:
    return Result(case, Judgement(verdict, reason), {}, {}, 0.0)


def _build_failure(case: Case, failures: Mapping[str, str]) -> str | None:
    return next((failures[path] for variant in VARIANTS if (path := str(case.path(variant))) in failures), None)


def _report(options: argparse.Namespace, name: str, facts: Mapping[str, Any], results: Sequence[Result]) -> None:
    if options.output_format == "json":
        text = report.as_json(facts, results)
    elif options.output_format == "markdown":
        text = report.markdown(name, results)
    else:
        text = report.full(name, results)
    if options.output_file:
        Path(options.output_file).write_text(text + "\n", encoding="utf-8")
        _say(report.counts(results))
    else:
        print(text)
        if options.output_format == "json":
            _say(report.counts(results))


def _save(options: argparse.Namespace, facts: Mapping[str, Any], results: Sequence[Result]) -> None:
    folder = Path(options.evidence) if options.evidence else None
    try:
        path = evidence.save([result.as_json() for result in results], facts, folder)
    except OSError as problem:
        _say(f"the evidence could not be kept: {problem}")
    else:
        _say(f"evidence kept in {path}")


def _fail(message: str) -> int:
    _say(f"streamlint verify: {message}")
    return 2


def _say(message: str) -> None:
    print(message, file=sys.stderr, flush=True)
