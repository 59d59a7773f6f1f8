"""Races that a wait was meant to prevent, and does not: it is for the waiting stream itself, or for the default stream."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ordering.null_stream.same_stream_waits import DEFAULT, VoidWait
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.meetings import Meeting
from streamlint.ordering.places.places import Place
from streamlint.ordering.races.races import Races
from streamlint.ordering.streams.lanes import Lane
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import CURRENT, NAMED, Action, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked

_PASSED = "void wait"
"""The kind of what is tracked: a wait that a path has passed."""
_SHARED = ("cell", "global")
"""Roots of places that all functions name alike."""
Pair = tuple[Site, Site]


class _Named(NamedTuple):
    """A stream by the names of a function."""

    lane: Lane
    function: Function


class RacesBehindVoid(Races):
    """Races behind such waits: of each wait the pairs of work that it leaves unordered."""

    def __init__(self, transfer: Transfer, waits: Iterable[VoidWait]) -> None:
        super().__init__(transfer)
        self.waits = {wait.at: wait for wait in waits}
        self.pairs: dict[Site, dict[Pair, Lane]] = {}
        self._waiters: dict[Place, _Named] = {}

    def comes_to(self, function: Function, partners: frozenset[Function] | None) -> bool:
        """Whether a path from a function may come to a race, and to such a wait before."""
        return self._to_waits.is_ahead(function) and super().comes_to(function, partners)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        is_behind = any(held.kind == _PASSED for held in state.tracked)
        return (is_behind or self._to_waits.is_behind(caller, call)) and super().may_go_up(state, caller, call)

    @cached_property
    def _to_waits(self) -> Meeting:
        """Where a path may still come to such a wait."""
        return self._meetings.of(wait.function for wait in self.waits)

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        answer = super().judge(state, one, action)
        here = Site(state.frame.function, one)
        if answer == ORDERED or not isinstance(action, Waited) or here not in self.waits:
            return answer
        passed = Tracked(_PASSED, Place(("global", _PASSED, here, state.frame.depth)))
        self._waiters[passed.place] = self._as_passed(state, one, action.stream)
        return (answer if isinstance(answer, frozenset) else state.tracked) | {passed}

    def _as_passed(self, state: State, one: Instruction, stream: Stream) -> _Named:
        """A stream by the names of the function that the path has it from."""
        frame, register = state.frame, stream.register
        if stream.kind == NAMED:
            frame, register = as_passed(self.transfer, frame, register)
        return _Named(self.lanes.of(frame, one, stream._replace(register=register)), frame.function)

    def _report(self, state: State, one: Instruction, use: Worked, other: Lane) -> bool:
        second, is_reported = Site(state.frame.function, one), False
        for held in state.tracked:
            if held.kind != _PASSED:
                continue
            site, waiter = held.place.root[2], self._waiters[held.place]
            assert isinstance(site, Site)
            passed = self._as_passed(state, one, self._stream(state.frame.function, use))
            mine = _Named(self._mine(state), state.frame.function)
            is_mine = _are_one(waiter, passed) or (self.waits[site].why != DEFAULT and _are_one(waiter, mine))
            if is_mine:
                is_reported = True
                self.pairs.setdefault(site, {}).setdefault((self._site, second), self._lane)
        return is_reported


def _are_one(one: _Named, other: _Named) -> bool:
    """Whether two streams of a path are one: by their names, by where both were made, or as the current one."""
    first, second = one.lane, other.lane
    if first.kind == second.kind == CURRENT:
        return True
    is_named_alike = any(place in second.places for place in first.places if one.function is other.function or place.root[0] in _SHARED)
    return is_named_alike or not first.made.isdisjoint(second.made)
