"""The states of a walk: points of paths, and which of them are looked at."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.dispatch import Classes
from streamlint.ordering.places.flow import Tracked
from streamlint.transfer.actions import UNKNOWN, Stream
from streamlint.waits.questions import Key

MOST_GUESSES = 1
"""Branches of a path that may be guessed: of those whose other way would have ordered the operation, and those that guard what meets it."""
MOST_HERE = 24
"""States of one place of a function: those that came there by the fewest steps are followed."""
MOST_ALIKE = 8
"""Of states that differ by the branches that they took alone: behind that they are one that takes for granted what all of them do."""

Answer = str | frozenset[Tracked] | None
"""What something means for a pending operation: `ORDERED`, what is tracked from here on, or None where it means nothing."""


class State(NamedTuple):
    """A point of a path. ``before`` is the number of the edge by which the block was entered; ``guards`` are the undecided branches that
    the rest of their functions hangs on, each with the block where that ends; ``decided`` are conditions, by what they say."""

    frame: Frame
    block: int
    place: int
    before: int
    tracked: frozenset[Tracked]
    guesses: int
    guards: frozenset[tuple[Frame, int, int]]
    decided: frozenset[tuple[Frame, Key, bool]]
    path: tuple[Instruction, ...]  # calls that were returned from on the way up, the innermost first
    stream: Stream = Stream(UNKNOWN)  # that of the operation
    sites: frozenset[Site] = frozenset()  # where that stream was made
    is_blocking: bool = False  # whether the null stream waits for it
    classes: frozenset[tuple[Frame, Classes]] = frozenset()  # of known objects, by what their methods have run
    chosen: frozenset[int] = frozenset()  # C++: the files of functions that several files define
    through: tuple[Function, Function] | None = None  # a closure that the path went up to, and the function for which it was made

    @property
    def doubts(self) -> int:
        """How many branches were guessed."""
        return self.guesses + len(self.guards)


class Merged:
    """The states that were looked at. One that differs from another only by what more it takes for granted, or by more doubts, finds
    nothing that the other does not find. ``is_cut`` says that there were more states than are looked at."""

    def __init__(self) -> None:
        self.count = 0
        self.is_cut = False
        self._seen: dict[State, list[State]] = {}
        self._here: dict[tuple[Function, int, int], int] = {}

    def added(self, state: State) -> State | None:
        """The state to go on with; None where others have done so."""
        here = (state.frame.function, state.block, state.place)
        alike = self._seen.setdefault(state._replace(guesses=0, guards=frozenset(), decided=frozenset()), [])
        if any(covers(other, state) for other in alike):
            return None
        if self._here.get(here, 0) >= MOST_HERE:
            self.is_cut = True
            return None
        before = len(alike)
        if before >= MOST_ALIKE:
            state = state._replace(decided=state.decided.intersection(*(other.decided for other in alike)))
            alike[:] = [other for other in alike if not covers(state, other)]
        alike.append(state)
        self._here[here] = self._here.get(here, 0) + len(alike) - before
        self.count += 1
        return state


def covers(state: State, other: State) -> bool:
    """Whether a state has no more doubts than another one, and takes nothing more for granted."""
    return state.guesses <= other.guesses and state.decided <= other.decided and state.guards <= other.guards
