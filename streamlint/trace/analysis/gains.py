"""Estimates of what the removal of a place's waits gains: the process simulated without them.

A place's calls of all kinds go together: `.item()` copies, and then waits. Their gain is shared among the kinds by the time that they
held the host, so that the shares add up. Memory that is no longer freed need not be reallocated: with each call that frees memory goes
the next one that allocates some.
"""

from __future__ import annotations

from collections import defaultdict

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.analysis.rates import pinned_time
from streamlint.trace.analysis.simulation import program_of
from streamlint.trace.kinds import ALLOCATE, FREE, may_block

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from streamlint.trace.analysis.places import Group, Groups
    from streamlint.trace.analysis.simulation import Program, Rates
    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.analysis.waits import Waits

SHARE = 0.005
"""Share of the process's time that a place must have held the host for an estimate: no removal gains more than that time."""
PLACES = 20
_EXACT = 0.02
"""Share of the process's time by which the unchanged simulation may miss the recorded end."""


def estimate(timeline: Timeline, waits: Waits, groups: Groups, rates: Rates, end: int) -> list[str]:
    """Give the groups of a process their gains, where they can be estimated.

    ``rates`` are those of copies of pinned memory, ``end`` is the process's, in ns. Returns notes for the user.
    """
    numbers = groups.of_calls[timeline.process]
    program = program_of(timeline, waits, numbers, rates, end)
    recorded, miss = end - timeline.begin, program.run() - end
    if abs(miss) > _EXACT * recorded:
        percent = round(100 * abs(miss) / recorded)
        return [f"process {timeline.process}: no gains are estimated, since its simulation misses the recorded time by {percent} %"]
    if timeline.overhead or any(call.overhead for call in timeline.calls):
        program = program_of(timeline, waits, numbers, rates, end, unrecorded=True)
    run = _Unchanged(program, rates)
    run.end = run.program.run(held=run.held)
    places = _dear_places(timeline, groups, run)
    notes: list[str] = []
    if len(places) > PLACES:
        notes.append(f"process {timeline.process}: gains are estimated for the {PLACES} places that held the host longest")
    beside = 0
    for mine in places[:PLACES]:
        if not _is_main(timeline, mine):
            beside += 1
            continue
        _share(mine, _gain(timeline, groups, run, mine), timeline)
    if beside:
        notes.append(
            f"process {timeline.process}: no gain is estimated for {beside} place{'s' * (beside != 1)} in threads beside the main one, "
            "since a recording does not show which thread waits for which"
        )
    return notes


@record(slots=True)
class _Unchanged:
    """The program with all its waits: when it ends, and how long each step holds its thread."""

    program: Program
    rates: Rates
    end: int = 0
    held: list[int] = field(default_factory=list)

    def of(self, number: int) -> int:
        """How long the calls of a group hold their threads."""
        return sum(self.held[step] for step in self.program.of_groups[number]) if number in self.program.of_groups else 0


def _dear_places(timeline: Timeline, groups: Groups, run: _Unchanged) -> list[list[Group]]:
    """The groups of each place that held the host long enough, the longest first."""
    by_place: dict[int, list[Group]] = defaultdict(list)
    held: dict[int, int] = defaultdict(int)
    for number, group in enumerate(groups.groups):
        if group.process == timeline.process and may_block(timeline.calls[group.calls[0]].name):
            by_place[group.place].append(group)
            held[group.place] += run.of(number)
    border = max(1, round(SHARE * (run.end - timeline.begin)))
    return [by_place[place] for place in sorted(by_place, key=lambda one: (-held[one], one)) if held[place] >= border]


def _is_main(timeline: Timeline, groups: Iterable[Group]) -> bool:
    """Whether most of the time that a place held was that of the main thread, or of a thread that takes turns with it."""
    lanes: dict[bool, int] = {True: 0, False: 0}
    for group in groups:
        for index in group.calls:
            lanes[timeline.lanes[index] == 0] += timeline.calls[index].end - timeline.calls[index].start
    return lanes[True] >= lanes[False]


def _gain(timeline: Timeline, groups: Groups, run: _Unchanged, mine: Sequence[Group]) -> int:
    """The gain of a place: no more than the time that it held the host, and that copies are faster."""
    process, place = mine[0].process, mine[0].place
    numbers = {number for number, group in enumerate(groups.groups) if (group.process, group.place) == (process, place)}
    gone = [step for number in numbers for step in run.program.of_groups[number]]
    if any(group.kind == FREE for group in mine):
        gone += _allocations_saved(groups, run.program, numbers)
        return max(0, run.end - run.program.run(gone))
    held = sum(run.of(number) for number in numbers) + sum(_faster(timeline, run.rates, group) for group in mine)
    return min(max(0, run.end - run.program.run(gone)), held)


def _faster(timeline: Timeline, rates: Rates, group: Group) -> int:
    """By how much the copies of a group are faster when their host memory is pinned."""
    works = (timeline.works[work] for index in group.calls for work in timeline.launched.get(index, ()))
    return sum(work.end - work.start - pinned_time(work, rates) for work in works)


def _allocations_saved(groups: Groups, program: Program, gone: set[int]) -> list[int]:
    """The steps of allocations that follow frees that are gone, one for each."""
    steps = sorted(
        (step, number in gone, groups.groups[number].kind)
        for number, mine in program.of_groups.items()
        if groups.groups[number].kind in (ALLOCATE, FREE)
        for step in mine
    )
    kept = 0
    found: list[int] = []
    for step, is_gone, kind in steps:
        if kind == FREE:
            kept += is_gone
        elif kept and not is_gone:
            kept -= 1
            found.append(step)
    return found


def _share(mine: Sequence[Group], gain: int, timeline: Timeline) -> None:
    """Give each group its share of a gain, by the time that its calls took; what rounding leaves goes to the first."""
    times = [sum(timeline.calls[index].end - timeline.calls[index].start for index in group.calls) for group in mine]
    whole = sum(times)
    for group, time in zip(mine, times, strict=True):
        group.gain = gain * time // whole if whole else 0
    mine[0].gain = gain - sum(group.gain or 0 for group in mine[1:])
