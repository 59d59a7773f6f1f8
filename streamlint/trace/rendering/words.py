"""Times, shares, sizes and costs in words."""

from __future__ import annotations

from streamlint.trace.prices import price
from streamlint.trace.results import Cost, Joined, Place

_UNITS = ((10**9, "s"), (10**6, "ms"), (10**3, "µs"), (1, "ns"))
_SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B"))


def time(nanoseconds: int) -> str:
    """``1.24 s``, ``179 ms``, ``0 ms``: three digits."""
    for length, unit in _UNITS:
        if nanoseconds >= 0.9995 * length:
            return f"{_digits(nanoseconds / length)} {unit}"
    return "0 ms"


def size(count: float) -> str:
    """``64 MiB``."""
    length, unit = next(((length, unit) for length, unit in _SIZES if count >= length), _SIZES[-1])
    return f"{_digits(count / length)} {unit}"


def _digits(value: float) -> str:
    return f"{value:.0f}" if value >= 99.95 else f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"


def part(joined: Joined, nanoseconds: int) -> float:
    """A time as a share of the run's wall time, of all its processes."""
    whole = joined.costs.wall * joined.processes
    return min(nanoseconds / whole, 1.0) if whole > 0 else 0.0


def share(joined: Joined, nanoseconds: int) -> str:
    """``14 %``, ``0.4 %``, ``< 0.1 %``."""
    percent = 100 * part(joined, nanoseconds)
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.0f} %" if percent >= 9.95 or percent == 0 else f"{percent:.1f} %"


def at(place: Place) -> str:
    """``train.py:42``, ``train.py, one of lines 42, 64``, or that no line is known."""
    if not place.file:
        return "(no line known)"
    if place.is_exact:
        return f"{place.file}:{place.lines[0]}"
    return f"{place.file}, one of lines {', '.join(map(str, place.lines))}" if place.lines else place.file


def called(cost: Cost) -> str:
    """``cudaStreamSynchronize (aten::item)``, with the way of a copy."""
    way = f" {cost.source or '?'} to {cost.destination or '?'}" if cost.source or cost.destination else ""
    return f"{cost.call}{way}{f' ({cost.operator})' if cost.operator else ''}"


def times(count: int) -> str:
    return f"{count} call{'s' * (count != 1)}"


def summary(joined: Joined, cost: Cost) -> str:
    """What a place cost, as a sentence part."""
    parts = [f"{time(price(cost))} ({share(joined, price(cost))} of the run)"]
    parts.append(f"the host was blocked for {time(cost.blocked)} in {times(cost.calls)}")
    parts.append(f"the GPU was idle for {time(cost.idle)} behind it" if cost.idle else "the GPU did not fall idle")
    if cost.gain:
        parts.append(f"without the wait the run would be about {time(cost.gain)} shorter (estimate)")
    return "; ".join([*parts, *more(cost), *of_ranks(joined, cost)])


def more(cost: Cost) -> list[str]:
    """What a place cost besides idle time and blocked time."""
    parts = []
    if cost.serialized:
        parts.append(f"work of other streams waited {time(cost.serialized)} for its work on the default stream")
    if cost.held_up:
        parts.append(f"launches of other threads waited {time(cost.held_up)}")
    if cost.driver_allocations:
        parts.append(f"{cost.driver_allocations} allocation{'s' * (cost.driver_allocations != 1)} reached the driver")
    if cost.bytes and cost.bandwidth:
        beside = f", a pinned copy reaches {size(cost.pinned_bandwidth)}/s" if cost.pinned_bandwidth else ""
        parts.append(f"copied {size(cost.bytes)} at {size(cost.bandwidth)}/s{beside}")
    return parts


def head(joined: Joined, recording: str) -> str:
    """What was recorded, where, and what it comes to."""
    costs = joined.costs
    where = f" on {costs.gpu}" if costs.gpu else ""
    many = f", {joined.processes} processes" if joined.processes > 1 else ""
    idle = f"the GPU was idle for {time(costs.idle)} ({share(joined, costs.idle)})"
    return f"{recording}: {time(costs.wall)}{where}{many}; {idle}, the host was blocked for {time(costs.blocked)}"


def rank(joined: Joined, process: int) -> str:
    """``rank 1``, or ``process 4711`` where the recording names none."""
    known = joined.costs.ranks.get(process)
    return f"process {process}" if known is None else f"rank {known}"


def of_ranks(joined: Joined, cost: Cost) -> list[str]:
    """``blocked in rank 0 for 300 ms, 290 ms of it because rank 1 came later, in rank 1 for 12 ms``; nothing in runs without ranks."""
    parts = []
    for one in sorted(cost.of_ranks, key=lambda one: (joined.costs.ranks.get(one.process, -1), one.process)):
        late = f", {time(one.waited)} of it because {rank(joined, one.late)} came later" if one.waited else ""
        parts.append(f"in {rank(joined, one.process)} for {time(one.blocked)}{late}")
    return [f"blocked {', '.join(parts)}"] if parts else []


def rank_waits(joined: Joined) -> list[str]:
    """A sentence for each process whose GPU waited for another one long enough to be reported."""
    sentences = []
    for one in joined.costs.rank_waits:
        if one.time >= max(joined.border, 1):
            late = rank(joined, one.late)
            sentences.append(
                f"the GPU of {rank(joined, one.process)} waited {time(one.time)} for {late} in "
                f"{one.collectives} collective{'s' * (one.collectives != 1)}; the GPU of {late} worked for {time(one.worked)} of it"
                + (f", and had no work for {time(one.time - one.worked)}" if one.time > one.worked else "")
            )
    return sentences


def last_line(joined: Joined) -> str:
    """``2 of 5 findings cost 38 % of the run; 3 stalls have no finding``."""
    count, stalls = len(joined.judged), len(joined.unnamed)
    costing = sum(one.standing == "COSTS" for one in joined.judged)
    if costing:
        found = f"{costing} of {count} finding{'s' * (count != 1)} cost{'s' * (costing == 1)} {share(joined, joined.named)} of the run"
    else:
        found = f"none of {count} findings costs" if count > 1 else "the finding costs" if count else "no findings"
        found += f" {'nothing' if count == 1 else 'anything'} in this run" if count else ""
    left = f"{stalls} stall{'s have' if stalls > 1 else ' has'} no finding" if stalls else "no stall is without a finding"
    return f"{found}; {left}"
