"""SL020 and SL021 of a run's files: the program facts of a language are solved once, and each hazard is reported by its rule.

The Python and the C++ of a run are two programs: neither changes the findings of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from streamlint import models
from streamlint.checks.sl020_hidden_sync_in_hot_loop import HiddenSyncInHotLoop, InRound
from streamlint.checks.sl021_device_sync_in_hot_loop import DeviceSyncInHotLoop
from streamlint.config.options import Options, Source
from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.grounds import GroundsFinder
from streamlint.findings import Finding, Reported, Span, Step
from streamlint.findings.operations import Context, HostWait, LoopFrame
from streamlint.ir import Instruction, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.models import StepRow
from streamlint.waits.judge import Hazard, HotWaits
from streamlint.waits.questions import says_odd
from streamlint.waits.regions import CALLED, COMPUTE, STEP, WEIGHTS
from streamlint.waits.uploads import CONSTANT, is_changed
from streamlint.waits.wait import CACHE, CAST, DEVICE, Wait

RULES = (HiddenSyncInHotLoop, DeviceSyncInHotLoop)
CODES = frozenset(rule.code for rule in RULES)
LANGUAGES = ("python", "cuda")
"""Those whose files the rules are asked of."""


MOST_STEPS = 400_000
"""Of the solver, for each question: what a value may be that takes more to find out is unknown, beyond what was found.

With all loops 40,000 steps cut 45 questions of diffusers 0.42.1 and 15 of vllm-omni 0.30.0, which had 47 and 66 findings; 400,000 cut 6 and
5 and have 61 and 80, for 4 and 3 % more time: what one question finds out, the next ones have. Half of what is left of 8 million steps for
each question costs more, and transformers does not end; so a tenth is left once all took 12 million."""
FREE_STEPS = 1_500_000
"""Of all questions together, before the first one is bounded: the facts of most packages take fewer, and are exact. Where a question
was cut, what it was asked first decided: sbi 0.27.0 had other findings for each order of its files, two of them wrong, and lost a read of
the loss in each step. Of 82 packages that readers had marked 5 more of 152 defects are reported so."""
_FRESH = "fill a new tensor on the device: torch.zeros(..., device=...) or torch.full; each step changes it in place"
_ARRAYS = "compute with the array itself, and read it once for several iterations, or after the loop"
Lowered = Callable[[Source], "ModuleIR | None"]


def find(sources: Sequence[Source], options: Options, lowered: Lowered) -> Reported:
    """What the rules report of the sources. ``lowered`` gives the intermediate representation of a file."""
    programs = hot_waits(sources, options, lowered) if not options.codes or options.codes & CODES else []
    found = [finding for waits in programs for finding in findings_of(waits, options)]
    return Reported(sorted(found, key=Finding.sort_key), sum(waits.facts.solver.cut for waits in programs))


def findings_of(waits: HotWaits, options: Options) -> list[Finding]:
    """What the rules report of a program."""
    rules = [rule() for rule in RULES if not options.codes or rule.code in options.codes]
    hazards = list(waits.hazards())
    found: list[Finding] = []
    for rule in rules:
        mine = [hazard for hazard in hazards if (hazard.wait.what in (DEVICE, CACHE)) is (rule.code == DeviceSyncInHotLoop.code)]
        reported = [
            InRound(
                _finding(rule, hazard, waits.graph),
                waits.is_sure(hazard.region),
                _asks_odd(hazard.wait),
                waits.is_chosen(hazard),
                frozenset(span_of(*site) for site in hazard.behind),
            )
            for hazard in mine
        ]
        shown = [one for one in reported if one.finding.shown or options.evidence == "possible"]
        found += rule.by_loop(shown) if isinstance(rule, HiddenSyncInHotLoop) else [one.finding for one in shown]
    rounds = {span_of(hazard.place.function, hazard.place.instruction): hazard.region.chain()[0].does for hazard in hazards}
    return sorted(GroundsFinder(waits.graph).grounded(found, rounds), key=Finding.sort_key)


def hot_waits(sources: Sequence[Source], options: Options, lowered: Lowered) -> list[HotWaits]:
    """What is known of the waits, for each language among the sources."""
    return [
        _of_language([source for source in sources if source.language == language], language, options, lowered)
        for language in LANGUAGES
        if any(source.language == language for source in sources)
    ]


def _of_language(sources: Sequence[Source], language: str, options: Options, lowered: Lowered) -> HotWaits:
    known = models.load(language, options.user_models)
    program = Program([SourceFile(one.path, one.language, one.text, partial(lowered, one)) for one in sources])
    return HotWaits(program, options.hidden_sync == "all-loops", known, MOST_STEPS, FREE_STEPS)


def passed_over(programs: Iterable[HotWaits], path: str) -> Iterator[tuple[str, Span, str]]:
    """The waits of a file that the rules do not report: whose rule it would be, where it stands, and why it is none."""
    for waits in programs:
        for wait, why in waits.passed_over(path) if path in waits.facts.program.units else ():
            rule = DeviceSyncInHotLoop if wait.what in (DEVICE, CACHE) else HiddenSyncInHotLoop
            yield rule.code, span_of(wait.function, wait.instruction), why


def _finding(rule: HiddenSyncInHotLoop | DeviceSyncInHotLoop, hazard: Hazard, graph: CallGraph) -> Finding:
    chain = hazard.region.chain()
    first = chain[0]
    called = isinstance(first.row, StepRow) or first.does in (CALLED, STEP, WEIGHTS)
    head = "called" if called and not (isinstance(first.row, StepRow) and first.row.loop == "optimizer") else ""
    loop = LoopFrame(_round(first.function, hazard), head)
    wait = HostWait(
        span_of(hazard.place.function, hazard.place.instruction),
        "torch",
        hazard.wait.name,
        what=hazard.wait.what,
        loop=loop,
        origin=hazard.origin,
        instead=hazard.wait.instead or (_FRESH if _is_sum(graph, hazard) else _ARRAYS if first.does == COMPUTE else ""),
        trains=hazard.trains,
        context=Context(function=hazard.place.function.name),
    )
    if hazard.place.instruction != hazard.wait.instruction:
        wait.inner = span_of(hazard.wait.function, hazard.wait.instruction)
    return rule.report(wait, tuple(_trail(hazard, wait)))


def _is_sum(graph: CallGraph, hazard: Hazard) -> bool:
    """Whether what is uploaded is a constant to which the round adds in place: one for all rounds would not do."""
    wait = hazard.wait
    return hazard.origin == CONSTANT and op.DEFINES[wait.instruction[0]] and is_changed(graph, wait.function, wait.instruction[2])


def _asks_odd(wait: Wait) -> bool:
    """Whether a test asks for numbers that are none: some loops have to know that at once."""
    return wait.what == CAST and says_odd(wait.function, wait.value) is not None


def _trail(hazard: Hazard, wait: HostWait) -> Iterator[Step]:
    """The loop, the calls in it that lead to the wait, and the wait where the call is the place to look at."""
    chain = hazard.region.chain()
    words = "on every iteration of this training loop" if wait.trains else "on every iteration of this loop"
    assert wait.loop is not None
    yield Step("an external loop calls this method on every step" if wait.called else words, wait.loop.span)
    if wait.inner is not None:
        yield Step("the wait is here", wait.inner)
        return
    for region in chain[1:]:
        if region.caller is not None and region.call is not None:
            yield Step("called from here", span_of(region.caller.function, region.call))


def _round(function: Function, hazard: Hazard) -> Span:
    """The head of the loop whose rounds are held up, or the method that is called in each step."""
    loop = hazard.region.chain()[0].loop
    if loop is None:
        made, parent = function.definition, function.parent
        row, column = parent.code.at(made[1])[:2] if made is not None and parent is not None else (function.code.first_row, 1)
        return Span(function.unit.path, row, column, row, column + len(function.code.name))
    head = function.code.blocks[loop.header]
    return span_of(function, next((one for one in head if one[1] >= 0), head[0]))


def span_of(function: Function, one: Instruction) -> Span:
    """The place of an instruction."""
    return Span(function.unit.path, *function.code.at(one[1]))
