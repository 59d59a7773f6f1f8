"""SL003: memory that the driver allocates and frees in each round of a loop, and caches that each round empties."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl003_alloc_in_loop import AllocInLoop
from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.findings import Finding, Span
from streamlint.findings.operations import Alloc, Free, LoopFrame, Memory, Operation
from streamlint.hazards.allocations import DEVICE, REGISTERED, Allocation, Allocations
from streamlint.hazards.churn import Churn
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.inside import Inside, Step
from streamlint.hazards.repetition import Round
from streamlint.hazards.trims import Trim, Trims
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.drained import Death, Drained
from streamlint.ordering.earlier import Earlier, Life
from streamlint.support.records import replace
from streamlint.transfer.origins import Origins

RULE = AllocInLoop


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    allocations = Allocations(context)
    inside = Inside(context.transfer, allocations.rounds)
    drained = Drained(Earlier(context.transfer.one_of(Origins, context.transfer)))
    found = [_told(rule, context, drained, inside, *each, allocations.is_shown(each[1].made)) for each in allocations.find()]
    found += [_told_of_cache(rule, context, trim) for trim in Trims(allocations).find()]
    seen: set[Span] = set()
    for finding in sorted(found, key=lambda one: not one.shown):
        if finding.span not in seen and (finding.shown or context.options.evidence == "possible"):
            seen.add(finding.span)
            yield finding


def _told(
    rule: AllocInLoop, context: Context, drained: Drained, inside: Inside, allocation: Allocation, churn: Churn, is_made: bool
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
    is_idle = is_made and not is_long and allocation.memory == DEVICE and _is_idle(drained, churn, steps)
    free = replace(free, is_idle=is_idle)
    return rule.told(allocated, free, _frame(churn.function, churn.loop), span_of(churn.made[0]), is_made and not (is_long or is_idle))


def _told_of_cache(rule: AllocInLoop, context: Context, trim: Trim) -> Finding:
    around = context.surroundings(trim.function, trim.made[:-1])
    freed = Free(span_of(trim.made[-1]), trim.call.row.library, trim.call.name, context=around, memory=Memory.DEVICE, kind="trim")
    return rule.told_of_cache(freed, _frame(trim.function, trim.loop), span_of(trim.made[0]), trim.is_often)


def _frame(function: Function, loop: Loop) -> LoopFrame:
    return LoopFrame(span_of(Round(function, loop, ()).head))


def _is_idle(drained: Drained, churn: Churn, steps: list[Step]) -> bool:
    """Whether a free finds nothing of what its round has queued: the host has waited for it, or does so next."""
    death = drained.reached(_death(churn))
    if drained.has_emptied(death):
        return True
    return drained.is_fetched(death) and not any(drained.names_stream(Site(step.function, step.instruction)) for step in steps)


def _death(churn: Churn) -> Death:
    """Where the object of a round ends: at a free, behind the last instruction of a function that drops it, or of the round."""
    count = len(churn.ended)
    made = churn.made[count] if count and churn.made[:count] == churn.ended and len(churn.made) > count else churn.made[0]
    registers = frozenset(int(str(one.root[1])) for one in churn.held.places if one.root[0] == "register" and not one.path)
    life = Life(made, registers if churn.held.function is made.function else frozenset())
    if not count:
        blocks = churn.function.code.blocks
        return Death(tuple(Site(churn.function, blocks[number][-1]) for number in churn.loop.again), (), life)
    if made is not churn.made[0]:
        return Death(tuple(Site(made.function, end) for end in made.function.by_opcode[op.RETURN]), churn.ended, life)
    return Death(churn.ended[-1:], churn.ended[:-1], life)
