"""Places in the user's code, and the groups of calls whose costs are reported together."""

from __future__ import annotations

from collections import Counter

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record
from streamlint.trace.kinds import GRAPH, LAUNCH, kind_of, may_block
from streamlint.trace.results import Place

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from streamlint.trace.analysis.timeline import Timeline
    from streamlint.trace.model import Frame, Trace

NOWHERE = Place("", ())
NO_GROUP = -1


@record(slots=True)
class Group:
    """The calls of one kind that a place made in one process, and what they cost. Times in ns."""

    place: int  # an index into Groups.places
    kind: str
    process: int
    calls: list[int] = field(default_factory=list)  # indexes into the calls of the timeline
    idle: int = 0
    avoidable: int = 0
    serialized: int = 0
    held_up: int = 0
    gain: int | None = None
    late: dict[int, int] = field(default_factory=dict)  # ns of waiting for other ranks, by the process that came last


@record(slots=True)
class Groups:
    """The groups of a run. Call by call their numbers are in ``of_calls``, one list for each process.

    ``stretches`` counts, by process and place, how often a thread came to wait or copy at a place from another one, or from a launch.
    """

    places: list[tuple[Place, ...]]  # the place itself, then its callers
    groups: list[Group] = field(default_factory=list)
    of_calls: dict[int, list[int]] = field(default_factory=dict)
    stretches: Counter[tuple[int, int]] = field(default_factory=Counter)


def group(trace: Trace, timelines: Sequence[Timeline], files: Callable[[str], str | None]) -> Groups:
    """Group calls that may hold the host, and launches, by process, place and kind."""
    numbers, places = _places(trace.stacks, files)
    groups = Groups(places)
    known: dict[tuple[int, int, str], int] = {}
    for timeline in timelines:
        mine: list[int] = []
        latest: dict[int, int] = {}  # of each thread its last place
        for index, call in enumerate(timeline.calls):
            kind = kind_of(call.name)
            if not (may_block(call.name) or kind == LAUNCH or (kind == GRAPH and call.name.endswith("GraphLaunch"))):
                mine.append(NO_GROUP)
                continue
            key = timeline.process, numbers[call.stack], kind
            place = key[1] if may_block(call.name) else NO_GROUP
            groups.stretches[key[0], place] += latest.get(call.thread) != place
            latest[call.thread] = place
            number = known.get(key)
            if number is None:
                number = known[key] = len(groups.groups)
                groups.groups.append(Group(key[1], kind, timeline.process))
            groups.groups[number].calls.append(index)
            mine.append(number)
        groups.of_calls[timeline.process] = mine
    return groups


def _places(stacks: Sequence[Sequence[Frame]], files: Callable[[str], str | None]) -> tuple[list[int], list[tuple[Place, ...]]]:
    """The number of each stack's place, and the places with their callers by number: those of equal lines, whoever called, are one."""
    by_stack: list[int] = []
    places: list[tuple[Place, ...]] = []
    known: dict[Place, int] = {}
    for stack in stacks:
        found = _user_places(stack, files) or (NOWHERE,)
        number = known.setdefault(found[0], len(places))
        if number == len(places):
            places.append(found)
        by_stack.append(number)
    return by_stack, places


def _user_places(stack: Sequence[Frame], files: Callable[[str], str | None]) -> tuple[Place, ...]:
    """The frames that belong to the user's tree, innermost first."""
    named = ((files(frame.file), frame) for frame in stack)
    return tuple(
        Place(name, frame.lines or ((frame.line,) if frame.line else ()), frame.function) for name, frame in named if name is not None
    )
