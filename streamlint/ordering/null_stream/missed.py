"""What a wait would have ordered, had it not come too early: work before the record, with work behind the wait."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.ordering.walk.event_walk import EventWalk
from streamlint.transfer.actions import CURRENT, Recorded
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited

_MOST_FUNCTIONS, _MOST_WORK = 200, 50


class Missed:
    """Looks at the function that holds both the wait and the record, and what it calls."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.walk = EventWalk(transfer)
        self.lanes = Lanes(transfer, self.walk.places, self.walk.currents)

    def pairs(self, wait: Site, calls: tuple[Site, ...], record: Site | None) -> list[tuple[Site, Site]]:
        """Work that is not ordered by a wait for an event that ``record`` fills. ``calls`` lead to the wait."""
        waits = self._lane(wait)
        if waits is None:
            return []
        records = self._lane(record) if record is not None else None
        if records is not None and record is not None and _may_be(waits, wait, records, record):
            record = None  # a stream that waits for what it records itself: the event of another one was meant
        first: list[Site] = []
        second: list[Site] = []
        for site, lane in self._works(calls[0].function if calls else wait.function):
            if record is None or (records is not None and _may_be(records, record, lane, site) and not _is_behind(site, record)):
                first.append(site)
            if _may_be(waits, wait, lane, site) and not _is_behind(wait, site):
                second.append(site)
        return [(one, other) for one in first[:_MOST_WORK] for other in second[:_MOST_WORK] if one != other]

    def _works(self, root: Function) -> Iterator[tuple[Site, Lane]]:
        """The work of a function and of those that it calls, each with its stream."""
        found = [root]
        for function in found:
            for opcode in CALLING:
                for one in function.by_opcode[opcode]:
                    edges = self.transfer.edges(function, one) if len(found) < _MOST_FUNCTIONS else ()
                    found += [edge.callee for edge in edges if edge.is_followed and edge.callee not in found]
            for one in function.code.instructions():
                for work in self.transfer.works(function, one) if one[1] >= 0 else ():  # what a `finally` asks by itself stands nowhere
                    yield Site(function, one), self.lanes.of(Frame(function, None, None, 0), one, work.stream)

    def _lane(self, site: Site) -> Lane | None:
        """The stream that waits, or records."""
        for action in self.transfer.of(site.function, site.instruction):
            if isinstance(action, (Waited, Recorded)):
                return self.lanes.of(Frame(site.function, None, None, 0), site.instruction, action.stream)
        return None


def _may_be(one: Lane, site: Site, other: Lane, place: Site) -> bool:
    """Whether the streams of two instructions may be one, by where they were made, or in one function by how they are named."""
    if one.made & other.made:
        return True
    if site.function is not place.function:  # what is current there, and what is given, its callers know
        return not (one.made and other.made)
    if CURRENT in (one.kind, other.kind):
        return one.kind == other.kind
    return not (one.made and other.made) and not set(one.places).isdisjoint(other.places)


def _is_behind(one: Site, other: Site) -> bool:
    """Whether an instruction comes after another one for sure, in the same round of a loop."""
    return one.function is other.function and one.function.runs_before(other.instruction, one.instruction)
