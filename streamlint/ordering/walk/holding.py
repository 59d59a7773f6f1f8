"""What registers hold of an operation that is followed."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, REPLACED, Tracked
from streamlint.ordering.places.places import ADDRESS, Element, Place, rest_behind
from streamlint.ordering.walk.walk import Walk
from streamlint.transfer.actions import VARIABLE


class Holding(Walk):
    """Finds what is followed in registers, and in containers and objects that they hold."""

    def held(self, state: State, register: int, depth: tuple[int, ...] = (0,)) -> Tracked | None:
        """The copy's memory, if a register holds it, or containers that do."""
        return self.held_at(state, self.places.names(state.frame.function, register), depth) if register >= 0 else None

    def held_at(self, state: State, names: Iterable[Place], depth: tuple[int, ...] = (0,)) -> Tracked | None:
        """The copy's memory, if it is at one of some places, or in containers that are."""
        for place in names:
            for held in state.tracked if Tracked(REPLACED, place) not in state.tracked else ():
                rest = rest_behind(place, held.place) if held.kind == BUFFER else None
                if rest is not None and len(rest) in depth and all(isinstance(key, Element) for key in rest):
                    return held
                if rest == (ADDRESS,) and VARIABLE in depth:
                    return held
        return None

    def _is_given(self, state: State, register: int) -> bool:
        """Whether a register holds anything that is tracked, or an object that leads to it."""
        if register < 0:
            return False
        names = self.places.names(state.frame.function, register)
        return any(rest_behind(place, held.place) is not None for place in names for held in state.tracked)
