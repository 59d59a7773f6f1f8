"""What a call does to a path of which it can name nothing but streams and events: it waits for the operation, or the path goes on.

Such a call is looked at once for all paths that bring the same into it, and not once for each (`walk`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import covers
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import Place

if TYPE_CHECKING:
    from collections.abc import Callable

    from streamlint.ordering.paths.states import State
    from streamlint.ordering.walk.walk_calls import Calls

    Follow = Callable[[State], Iterable[State]]

MOST_STATES = 1_000
"""States of one call that are looked at; behind a call with more, a path goes on as before."""
_PATH = Tracked("path", Place(("global", "path")))
"""Tracked where a call can name nothing, for a path with nothing that is tracked ends."""
Exit = tuple[int, frozenset[Tracked]]
"""How many branches are guessed behind the call, and what is tracked there of what the call could name or has given back."""


class Passages:
    """The calls that paths pass through."""

    def __init__(self, walk: Calls) -> None:
        self.walk = walk
        self._known: dict[tuple[object, ...], tuple[Exit, ...]] = {}

    def through(
        self, state: State, one: Instruction, index: int, inner: State, follow: Callable[[State], Iterable[State]]
    ) -> Iterator[State]:
        """The states behind a call. ``inner`` is the state in which it begins; ``follow`` runs a block."""
        near = frozenset({_PATH, *(held for held in inner.tracked if held.place.root[0] != "aside")})
        key = (*self._key(state, one, inner), near)
        here = (state.frame.function, one, *key)
        found = self._known.get(key, self._known.get(here))
        if found is None:
            found = self._explored(state, inner._replace(tracked=near), follow)
            self._known[here if any(_is_own(held) for _, tracked in found for held in tracked) else key] = found
        own = frozenset(held for held in state.tracked if held.place.root[0] not in ("global", "cell"))
        for guesses, tracked in found:
            yield state._replace(place=index + 1, guesses=guesses, tracked=own | (tracked - {_PATH}))
        if not found:
            yield state._replace(place=index + 1, tracked=frozenset())  # no path leads out of the call without a wait

    def _key(self, state: State, one: Instruction, inner: State) -> tuple[object, ...]:
        """What decides how a call goes."""
        given = self.walk.conditions.given(inner.frame)
        around = self.walk.current_around(state.frame, one)
        passed = tuple(self._streams(inner.frame))
        return (
            inner.frame.function,
            one[0],
            given,
            passed,
            around,
            state.guesses,
            state.stream,
            state.sites,
            state.is_blocking,
            inner.chosen,
            self.walk.fixed.kept(inner.decided),
        )

    def _streams(self, frame: Frame) -> Iterator[tuple[Function, int]]:
        """The streams and events that a call hands over, as the functions have them that named them first."""
        transfer = self.walk.transfer
        for param in frame.function.by_opcode[op.PARAM]:
            values = transfer.values(frame.function, param[2])
            if any(isinstance(value, LibraryObject) and value.kind in ("stream", "event") for value in values):
                holder, held = as_passed(transfer, frame, param[2])
                yield holder.function, held

    def _explored(self, state: State, inner: State, follow: Follow) -> tuple[Exit, ...]:
        exits: dict[Exit, None] = {}
        seen: dict[State, list[State]] = {}
        count = 0
        waiting = deque([inner._replace(decided=self.walk.fixed.kept(inner.decided))])
        while waiting:
            each = waiting.popleft()._replace(guards=frozenset())  # they count for what is met, and nothing is
            alike = seen.setdefault(each._replace(guesses=0, decided=frozenset()), [])
            if any(covers(other, each) for other in alike):
                continue
            alike.append(each)
            count += 1
            if each.frame == state.frame:
                exits[each.guesses, each.tracked] = None
            elif count > MOST_STATES:
                return ((state.guesses, inner.tracked),)
            elif _is_within(each.frame, inner.frame):
                waiting.extend(follow(each))
        return tuple(exits)


def _is_own(held: Tracked) -> bool:
    """Whether something is tracked by a name that the function has which calls."""
    return held.place.root[0] not in ("global", "cell", "this")


def _is_within(frame: Frame | None, outer: Frame) -> bool:
    """Whether a function runs inside another one."""
    while frame is not None and frame != outer:
        frame = frame.caller
    return frame is not None
