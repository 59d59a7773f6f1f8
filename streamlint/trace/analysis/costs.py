"""The costs of places: calls, time, idle time, copies, and the estimate of what a place without its waits gains."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence

from streamlint.records import field, record
from streamlint.trace.analysis.idle import by_process, gaps, idle_by_call
from streamlint.trace.analysis.simulation import Simulation
from streamlint.trace.kinds import ALLOCATE, COPY, LAUNCH, WAIT, kind_of, may_block
from streamlint.trace.model import Call, Trace, Work
from streamlint.trace.results import Cost, Costs, Place

MOST_SIMULATED = 40  # places whose gain is estimated: those with the most idle and blocked time
_MOST_STEPS = 4_000_000  # calls that are played in all: about 8 s
_LONG_LAUNCH = 50_000  # ns: a launch that takes longer has waited for something
_SOME_BYTES = 1 << 20  # of a copy whose bandwidth says something
Key = tuple[int, Place, str]  # process, place, kind


@record(slots=True)
class _Group:
    """The blocking calls of one kind that a place made."""

    numbers: list[int] = field(default_factory=list)  # among all calls of the run
    idle: int = 0
    held_up: int = 0
    via: Counter[tuple[Place, ...]] = field(default_factory=Counter)


def costs_of(trace: Trace, files: Callable[[str], str | None]) -> Costs:
    """What the calls of a run have cost, the most idle time first; ``files`` names the user's files, and gives None for others.

    The trace is put in order. Estimates of gain are given for the dearest places, for waits and copies that held the host.
    """
    trace.sort()
    groups = _groups(trace, files)
    works = _by_correlation(trace.works)
    pinned = _pinned(trace, works)
    gains = _gains(trace, groups)
    costs = [_cost(trace, key, group, works, pinned, gains.get(key)) for key, group in groups.items()]
    costs.sort(key=lambda cost: (-cost.idle, -cost.blocked, cost.place))
    wall = trace.end - trace.start
    idle = sum(end - start for mine in by_process(trace.works).values() for start, end in gaps(mine, trace.start, trace.end))
    mains = [call for call in trace.calls if may_block(call.name) and trace.main_threads.get(call.process) == call.thread]
    return Costs(wall, sum(call.end - call.start for call in mains), idle, costs, trace.gpu, trace.origin, list(trace.notes))


def _groups(trace: Trace, files: Callable[[str], str | None]) -> dict[Key, _Group]:
    known: dict[int, tuple[Place, ...]] = {}

    def places(stack: int) -> tuple[Place, ...]:
        if stack not in known:
            known[stack] = tuple(
                Place(name, frame.lines or ((frame.line,) if frame.line else ()), frame.function)
                for frame in trace.stacks[stack]
                if (name := files(frame.file)) is not None
            )
        return known[stack]

    blocking = [(number, call) for number, call in enumerate(trace.calls) if may_block(call.name)]
    idle = idle_by_call(trace, [call for _, call in blocking])
    held_up = _held_up(trace, [call for _, call in blocking])
    groups: dict[Key, _Group] = defaultdict(_Group)
    for (number, call), lost, held in zip(blocking, idle, held_up, strict=True):
        where = places(call.stack) or (Place("", ()),)
        group = groups[call.process, where[0], kind_of(call.name)]
        group.numbers.append(number)
        group.idle += lost
        group.held_up += held
        group.via[where[1:]] += 1
    return dict(groups)


def _held_up(trace: Trace, blocking: Sequence[Call]) -> list[int]:
    """For each blocking call the time for which long launches of other threads waited while it held the host."""
    held = [0] * len(blocking)
    launches = [call for call in trace.calls if kind_of(call.name) == LAUNCH and call.end - call.start >= _LONG_LAUNCH]
    at = 0
    open_calls: list[int] = []
    for launch in launches:
        while at < len(blocking) and blocking[at].start <= launch.end:
            open_calls.append(at)
            at += 1
        open_calls = [number for number in open_calls if blocking[number].end >= launch.start]
        others = [one for one in open_calls if blocking[one].process == launch.process and blocking[one].thread != launch.thread]
        if others:
            longest = max(others, key=lambda one: min(blocking[one].end, launch.end) - max(blocking[one].start, launch.start))
            held[longest] += max(min(blocking[longest].end, launch.end) - max(blocking[longest].start, launch.start), 0)
    return held


def _by_correlation(works: Sequence[Work]) -> dict[tuple[int, int], Work]:
    return {(work.process, work.correlation): work for work in works if work.kind == COPY and work.correlation}


def _pinned(trace: Trace, works: dict[tuple[int, int], Work]) -> dict[str, float]:
    """The best bandwidth that copies of pinned memory reached in the run, by the memory on the other side: bytes per second."""
    best: dict[str, float] = {}
    for work in works.values():
        if "pinned" in (work.source, work.destination) and work.bytes >= _SOME_BYTES and work.end > work.start:
            way = "to" if work.source == "pinned" else "from"
            best[way] = max(best.get(way, 0.0), work.bytes * 1e9 / (work.end - work.start))
    return best


def _cost(trace: Trace, key: Key, group: _Group, works: dict[tuple[int, int], Work], pinned: dict[str, float], gain: int | None) -> Cost:
    process, place, kind = key
    calls = [trace.calls[number] for number in group.numbers]
    lengths = [call.end - call.start for call in calls]
    by_name: Counter[str] = Counter()
    for call, length in zip(calls, lengths, strict=True):
        by_name[call.name] += length + 1
    name = by_name.most_common(1)[0][0]
    example = max((call for call in calls if call.name == name), key=lambda call: call.end - call.start)
    cost = Cost(place, name, kind, example.operator, len(calls), sum(lengths), round(statistics.median(lengths)), max(lengths))
    cost.idle, cost.gain, cost.held_up = group.idle, gain, group.held_up
    cost.via = group.via.most_common(1)[0][0]
    cost.thread, cost.process = _thread(trace, example), process
    cost.driver_allocations = len(calls) if kind == ALLOCATE and not name.endswith("Async") else 0
    if kind == COPY:
        cost.source, cost.destination = example.source, example.destination
        cost.bytes = sum(call.bytes for call in calls)
        moved = [work for call in calls if (work := works.get((process, call.correlation))) is not None]
        spent = sum(max(work.end - work.start, call.end - call.start) for work, call in zip(moved, calls, strict=False))
        cost.bandwidth = sum(work.bytes for work in moved) * 1e9 / spent if spent and cost.bytes else None
        cost.pinned_bandwidth = pinned.get("to" if cost.destination == "device" else "from") if cost.bandwidth else None
    return cost


def _thread(trace: Trace, call: Call) -> str:
    if trace.main_threads.get(call.process) == call.thread:
        return "main"
    name = trace.thread_names.get((call.process, call.thread), "")
    return "autograd" if "autograd" in name else name or str(call.thread)


def _gains(trace: Trace, groups: dict[Key, _Group]) -> dict[Key, int]:
    """Estimates for the dearest places, as many as can be played in a few seconds."""
    blocked = {key: sum(trace.calls[one].end - trace.calls[one].start for one in group.numbers) for key, group in groups.items()}
    waiting = [key for key in groups if key[2] in (WAIT, COPY)]
    dearest = sorted(waiting, key=lambda key: -max(groups[key].idle, blocked[key]))
    most = min(MOST_SIMULATED, _MOST_STEPS // max(len(trace.calls), 1))
    gains: dict[Key, int] = {}
    works = by_process(trace.works)
    for process in {key[0] for key in dearest[:most]}:
        numbers = [number for number, call in enumerate(trace.calls) if call.process == process]
        if process not in works:
            continue
        place = {number: at for at, number in enumerate(numbers)}
        simulation = Simulation([trace.calls[number] for number in numbers], works[process])
        for key in dearest[:most]:
            if key[0] == process:
                gains[key] = simulation.gain({place[number] for number in groups[key].numbers})
    return gains
