"""Whether two streams of a path may be one, and whether two that look like one are not."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import STREAM, Tracked
from streamlint.ordering.places.gradients import element_of
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.lanes import MADE, WAITER, Lane
from streamlint.transfer.actions import CURRENT, NAMED
from streamlint.transfer.transfer import Transfer


class SameStreams:
    """Compares streams."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def may_be_one(self, lane: Lane, mine: Lane, is_here: bool) -> bool:
        """Whether two streams may be one: unknown calls gave them; or the null stream is ordered with one."""
        for one, other in ((mine, lane), (lane, mine)):
            if one.kind == CURRENT and other.may_be_current and not other.takes_turns:
                return True
            if one.is_given and not other.made:
                return True
        if _are_members(lane, mine):  # of objects that were given their streams
            return lane.library != "torch" and not (is_here and _are_of_one_object(lane, mine))
        if mine.blocking is False or lane.blocking is False:
            return False
        return {lane.kind, mine.kind} == {CURRENT, NAMED}

    def may_be_given_twice(self, lane: Lane, mine: Lane) -> bool:
        """Whether a stream that an object was made with may be the one that is given beside it."""
        return {_given_as(lane.places, lane.made), _given_as(mine.places, mine.made)} == {"member", "argument"}

    def may_wait(self, tracked: frozenset[Tracked], lane: Lane) -> bool:
        """Whether a stream that was given may be the one of an object that waits for the work."""
        if _given_as(lane.places, lane.made) != "argument":
            return False
        waiting = tuple(held.place for held in tracked if held.kind == WAITER)
        return not any(place.root[:2] == MADE for place in waiting) and _given_as(waiting, frozenset()) == "member"

    def is_of_another(self, function: Function, tracked: frozenset[Tracked], lane: Lane, mine: Lane) -> bool:
        """Whether two streams that one place of the program has made are those of two objects that the function itself has made."""
        own = {each.place for each in lane.tracked(STREAM) if each.place.root[:2] != MADE}
        if any(held.kind in (STREAM, WAITER) and held.place in own for held in tracked):
            return False
        first, second = (set(self._owners(function, each)) for each in (mine, lane))
        return bool(first and second) and first.isdisjoint(second)

    def _owners(self, function: Function, lane: Lane) -> Iterator[Instruction]:
        """The calls that have made the objects of the program whose member a stream is."""
        for place in lane.places:
            register = element_of(function, int(str(place.root[1]))) if place.root[0] == "register" and place.path else op.NONE
            one = function.definitions[register] if register >= 0 else None
            is_made = one is not None and one[0] in (op.CALL, op.CONSTRUCT, op.NEW)
            if one is not None and is_made and any(isinstance(value, Instance) for value in self.transfer.values(function, one[2])):
                yield one


def _are_members(lane: Lane, other: Lane) -> bool:
    """Whether two streams that are made nowhere are members or elements, by all their names."""
    return not lane.made and not other.made and all(any(place.path for place in each.places) for each in (lane, other))


def _are_of_one_object(lane: Lane, other: Lane) -> bool:
    """Whether two streams are members of one object: that would not keep one stream twice."""
    owners = [
        {(place.root, place.path[:-1]) for place in each.places if place.root[0] == "parameter" and place.path} for each in (lane, other)
    ]
    return not owners[0].isdisjoint(owners[1])


def _given_as(places: tuple[Place, ...], made: frozenset[Site]) -> str:
    """How a stream that was not made by known code is given: as an ``argument``, or as a ``member`` of an object."""
    if made or not places:
        return ""
    roots = [place.root[2] if place.root[0] == "aside" else place.root for place in places]
    if any(place.path for place in places):
        return "member"
    is_given = any(isinstance(root, tuple) and root[0] == "parameter" for root in roots)
    return "argument" if is_given else ""
