"""SL003: memory that the driver allocates and frees in each round of a loop, and caches that each round empties."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl003_alloc_in_loop import AllocInLoop
from streamlint.facts.code.functions import Function
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Alloc, Free, LoopFrame, Memory, Operation
from streamlint.hazards.allocations import DEVICE, REGISTERED, Allocation, Allocations
from streamlint.hazards.churn import Churn
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.idle_frees import IdleFrees
from streamlint.hazards.inside import Inside
from streamlint.hazards.repetition import Round
from streamlint.hazards.trims import Trim, Trims
from streamlint.ir.graph import Loop
from streamlint.support.records import replace

RULE = AllocInLoop


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    allocations = Allocations(context)
    inside = Inside(context.transfer, allocations.rounds)
    idle = IdleFrees(context, allocations.rounds)
    found = [_finding(rule, context, idle, inside, *each, allocations.is_shown(each[1].made)) for each in allocations.find()]
    found += [_finding_of_cache(rule, context, trim) for trim in Trims(allocations).find()]
    seen: set[Span] = set()
    for finding in sorted(found, key=lambda one: not one.shown):
        if finding.span not in seen and (finding.shown or context.options.evidence == "possible"):
            seen.add(finding.span)
            yield finding


def _finding(
    rule: AllocInLoop, context: Context, idle: IdleFrees, inside: Inside, allocation: Allocation, churn: Churn, is_made: bool
) -> Finding:
    around = context.surroundings(churn.function, churn.made[:-1])
    is_registered = allocation.memory == REGISTERED
    at = span_of(churn.made[-1])
    allocated: Operation = Operation(at, allocation.by, allocation.name, context=around)
    if not is_registered:
        allocated = Alloc(at, allocation.by, allocation.name, context=around, nbytes=allocation.bytes)
    memory = Memory.PINNED if is_registered else Memory(allocation.memory)
    end = span_of(churn.ended[-1]) if churn.ended else allocated.span
    free = Free(end, allocation.by, context=around, memory=memory, kind="unregister" if is_registered else "free")
    steps = list(inside.steps(churn.function, churn.loop))
    is_long = any(map(inside.is_long, steps)) or any(step.is_deeper and inside.waits(step) for step in steps)
    is_idle = is_made and not is_long and allocation.memory == DEVICE and idle.is_idle(churn)
    free = replace(free, is_idle=is_idle)
    return rule.report(allocated, free, _frame(churn.function, churn.loop), span_of(churn.made[0]), is_made and not (is_long or is_idle))


def _finding_of_cache(rule: AllocInLoop, context: Context, trim: Trim) -> Finding:
    around = context.surroundings(trim.function, trim.made[:-1])
    freed = Free(span_of(trim.made[-1]), trim.call.row.library, trim.call.name, context=around, memory=Memory.DEVICE, kind="trim")
    return rule.report_of_cache(freed, _frame(trim.function, trim.loop), span_of(trim.made[0]), trim.is_often)


def _frame(function: Function, loop: Loop) -> LoopFrame:
    return LoopFrame(span_of(Round(function, loop, ()).head))
