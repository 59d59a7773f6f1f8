"""SL042: symmetric memory of a peer, read or rewritten with no barrier between."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl042_symmetric_memory_without_barrier import SymmetricMemoryWithoutBarrier
from streamlint.findings import Finding
from streamlint.findings.operations import Operation
from streamlint.hazards.context import Context, span_of
from streamlint.ordering.threads.unguarded_peers import UnguardedPeers

RULE = SymmetricMemoryWithoutBarrier


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule, one for each second access."""
    rule = RULE()
    for pair in UnguardedPeers(context.transfer).find():
        surroundings = context.surroundings(pair.second.function, pair.calls)
        second = Operation(span_of(pair.second), pair.access.library, pair.access.name, context=surroundings)
        barrier = span_of(pair.barrier) if pair.barrier is not None else None
        yield rule.report(second, span_of(pair.first), pair.access.writes, pair.access.shared.is_peer, barrier)
