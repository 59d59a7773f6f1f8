"""The costs of a run, place by place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from statistics import median_low

from streamlint import TYPE_CHECKING
from streamlint.trace.analysis import gains, idle, ranks, rates, streams
from streamlint.trace.analysis.places import group
from streamlint.trace.analysis.timeline import timelines
from streamlint.trace.analysis.waits import waits_of
from streamlint.trace.kinds import ALLOCATE, COPY, PIN, may_block
from streamlint.trace.results import Cost, Costs, OfRank

if TYPE_CHECKING:
    from typing import TypeVar

    from streamlint.trace.analysis.places import Group, Groups
    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.model import Call, Trace

    T = TypeVar("T")

_GIVES_BACK = ("Free", "Unregister", "Unmap", "MemMap")


def costs_of(trace: Trace, files: Callable[[str], str | None]) -> Costs:
    """What the calls of each place have cost the host and the GPU.

    ``files`` gives the name under which `check` prints a recorded file, None for one outside of the linted tree. Idle time of several GPUs
    is added up. Time before the first work of a GPU and after its last is idle, but belongs to no place.
    """
    runs = timelines(trace)
    groups = group(trace, runs, files)
    waits = [waits_of(one) for one in runs]
    gaps = idle.gaps_of(runs)
    idle.attribute(gaps, runs, waits, groups)
    waiting = ranks.waiting_of(runs)
    ranks.add(runs, waits, groups, waiting)
    notes = list(trace.notes)
    pinned = rates.reached(trace.works)
    likely = {**rates.expected(trace.gpu), **pinned}
    for timeline, waited in zip(runs, waits, strict=True):
        streams.add_serialized(timeline, groups)
        streams.add_held_up(timeline, waited, groups)
        notes += gains.estimate(timeline, waited, groups, likely, _end(trace, runs, timeline))
    by_process = {one.process: one for one in runs}
    reported = [one for one in groups.groups if one.serialized or may_block(by_process[one.process].calls[one.calls[0]].name)]
    costs = [_cost(trace, by_process[one.process], groups, one, pinned) for one in reported]
    for cost, one in zip(costs, reported, strict=True):
        if one.process in waiting:
            _add_ranks(cost, one)
    costs.sort(key=lambda one: (-one.idle, -one.blocked, one.process, one.place, one.kind, one.call))
    return Costs(
        wall=trace.end - trace.start,
        blocked=sum(
            call.end - call.start for call in trace.calls if may_block(call.name) and trace.main_threads.get(call.process) == call.thread
        ),
        idle=idle.idle_time(runs, trace.end - trace.start),
        costs=costs,
        gpu=trace.gpu,
        origin=trace.origin,
        notes=notes,
        rank_waits=ranks.totals(runs, waiting),
        ranks=dict(trace.ranks),
    )


def _end(trace: Trace, runs: list[Timeline], timeline: Timeline) -> int:
    """When a process ended: with the recording, if it is the only one, else with its last call or work."""
    if len(runs) == 1:
        return trace.end
    return max(one.end for ones in (timeline.calls, timeline.works) for one in ones)


def _cost(trace: Trace, timeline: Timeline, groups: Groups, one: Group, pinned: dict[tuple[str, str], float]) -> Cost:
    calls = [timeline.calls[index] for index in one.calls]
    lengths = [call.end - call.start for call in calls]
    name, operator = _dearest(((call.name, call.operator), call.end - call.start) for call in calls)
    place, *via = groups.places[one.place]
    cost = Cost(place, name, one.kind, operator, len(calls), sum(lengths), median_low(lengths), max(lengths), one.idle, one.gain)
    cost.avoidable, cost.serialized, cost.held_up = one.avoidable, one.serialized, one.held_up
    cost.stretches = groups.stretches[one.process, one.place]
    cost.via, cost.process = tuple(via), one.process
    cost.thread = _dearest((_thread(trace, call), call.end - call.start) for call in calls)
    if one.kind in (ALLOCATE, PIN):
        cost.driver_allocations = sum(_reaches_driver(call) for call in calls)
    if one.kind == COPY:
        _add_copies(cost, timeline, one, pinned)
    return cost


def _add_ranks(cost: Cost, one: Group) -> None:
    """How much of the blocked time was waiting for other ranks."""
    cost.other_ranks = sum(one.late.values())
    late = max(one.late, key=lambda process: one.late[process], default=-1)
    cost.of_ranks = (OfRank(one.process, cost.blocked, cost.other_ranks, late),)


def _dearest(timed: Iterable[tuple[T, int]]) -> T:
    """Of what took time the one that took most in all, of equals the first."""
    sums: dict[T, int] = defaultdict(int)
    for one, time in timed:
        sums[one] += time
    return max(sums, key=lambda one: sums[one])


def _thread(trace: Trace, call: Call) -> str:
    if trace.main_threads.get(call.process) == call.thread:
        return "main"
    name = trace.thread_names.get((call.process, call.thread), "")
    return "autograd" if "autograd" in name else name or f"thread {call.thread}"


def _reaches_driver(call: Call) -> bool:
    """Whether a call asks the driver for memory; pools of the driver's own serve most asynchronous ones."""
    return "Async" not in call.name and not any(part in call.name for part in _GIVES_BACK) and not call.failed


def _add_copies(cost: Cost, timeline: Timeline, one: Group, pinned: dict[tuple[str, str], float]) -> None:
    """The bytes and rate of a group's copies, and the kinds of memory of most of the bytes."""
    works = [timeline.works[work] for index in one.calls for work in timeline.launched.get(index, ()) if work not in timeline.orphans]
    copies = [work for work in works if work.kind == "copy"]
    cost.bytes = sum(work.bytes for work in works)
    if not copies:
        return
    cost.source, cost.destination = _dearest(((work.source, work.destination), work.bytes) for work in copies)
    time = sum(work.end - work.start for work in copies)
    cost.bandwidth = sum(work.bytes for work in copies) * 1e9 / time if time else None
    cost.pinned_bandwidth = pinned.get(rates.direction(cost.source, cost.destination))
