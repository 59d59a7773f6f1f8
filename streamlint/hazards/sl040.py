"""SL040: memory of the default pool that each round of a loop takes and gives back, and that the pool does not keep."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl040_pool_trims_every_sync import PoolTrimsEverySync
from streamlint.findings import Finding
from streamlint.findings.operations import Alloc, LoopFrame
from streamlint.hazards.context import Context, span_of
from streamlint.hazards.inside import Inside
from streamlint.hazards.pool_rounds import PoolRounds

RULE = PoolTrimsEverySync


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    rounds = PoolRounds(context.transfer)
    inside = Inside(context.transfer, rounds.rounds)
    for found in rounds.find():
        call, churn = found.call, found.churn
        shown = not any(map(inside.is_long, inside.steps(churn.function, churn.loop)))
        if shown or context.options.evidence == "possible":
            around = context.surroundings(churn.function, churn.made[:-1])
            size = call.one("bytes")
            number = call.function.constant(size) if size is not None else None
            allocated = Alloc(span_of(churn.made[-1]), call.row.library, call.name, context=around)
            allocated.nbytes = number if isinstance(number, int) else None
            yield rule.report(allocated, span_of(churn.ended[-1]), span_of(found.wait), LoopFrame(span_of(churn.head)), shown)
