"""SL003: memory that the driver allocates and frees in each round of a loop, and caches that each round empties."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.sl003_alloc_in_loop import AllocInLoop
from streamlint.findings import Finding
from streamlint.hazards.allocations import Allocations
from streamlint.hazards.context import Context, span_of

RULE = AllocInLoop


def find(context: Context) -> Iterator[Finding]:
    """The findings of the rule."""
    rule = RULE()
    seen = set()
    allocations = Allocations(context)
    for churn in allocations.find():
        span = span_of(churn.place)
        if span not in seen:
            seen.add(span)
            yield rule.finding_at(span, "x")
