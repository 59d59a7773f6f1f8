"""What a cost amounts to, in one figure, and costs of one line put together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from streamlint.support.records import replace
from streamlint.trace.results import Cost, OfRank

BORDER = 0.005
"""Share of the wall time that a place must cost by default to be reported as one that costs something."""
_SUMS = ("calls", "blocked", "idle", "avoidable", "bytes", "driver_allocations", "serialized", "held_up", "other_ranks")


def price(cost: Cost) -> int:
    """The largest of what a place cost: avoidable idle time of the GPU, the estimated gain, work or launches of others that waited.

    A gap that follows a wait counts no longer than the wait held the host: the rest is the host's own work, which would come all the same.
    Time in which the host was blocked while the GPU had work counts only as far as the estimate of the gain says so.
    """
    return max(cost.avoidable, cost.gains or cost.gain or 0, cost.serialized, cost.held_up)


def by_price(cost: Cost) -> tuple[int, int, int, str, tuple[int, ...]]:
    """A key that puts the dearest first; waiting for other ranks, which is no price, counts like one."""
    return -max(price(cost), cost.other_ranks), -cost.idle, -cost.blocked, cost.place.file, cost.place.lines


def largest_wait(costs: Sequence[Cost]) -> int:
    """How long the process waited for other ranks in which these costs waited longest."""
    sums: dict[int, int] = defaultdict(int)
    for cost in costs:
        sums[cost.process] += cost.other_ranks
    return max(sums.values(), default=0)


def largest_price(costs: Sequence[Cost]) -> int:
    """What costs come to in the process in which they are dearest: a border is a share of one process's time."""
    sums: dict[int, int] = defaultdict(int)
    for cost in costs:
        sums[cost.process] += price(cost)
    return max(sums.values(), default=0)


def merged(costs: Sequence[Cost]) -> Cost:
    """The costs of one line as one, of calls of several kinds or processes: sums, under the name of the dearest. Needs at least one.

    The gain is that of the process that gains most: processes run side by side, so gains of several are of the same wall time.
    """
    first = min(costs, key=by_price)
    if len(costs) == 1:
        return first
    sums = {name: sum(getattr(cost, name) for cost in costs) for name in _SUMS}
    gains: dict[int, int] = defaultdict(int)
    for cost in costs:
        if cost.gain is not None:
            gains[cost.process] += cost.gain
    return replace(
        first,
        **sums,
        gain=max(gains.values(), default=None),
        gains=sum(gains.values()) if len(gains) > 1 else 0,
        stretches=max(cost.stretches for cost in costs),
        largest=max(cost.largest for cost in costs),
        of_ranks=_of_ranks(costs),
    )


def _of_ranks(costs: Sequence[Cost]) -> tuple[OfRank, ...]:
    """One entry for each process, its late one that of its longest wait."""
    found: dict[int, list[OfRank]] = defaultdict(list)
    for cost in costs:
        for one in cost.of_ranks:
            found[one.process].append(one)
    return tuple(
        OfRank(process, sum(one.blocked for one in mine), sum(one.waited for one in mine), max(mine, key=lambda one: one.waited).late)
        for process, mine in sorted(found.items())
    )
