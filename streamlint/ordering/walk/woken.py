"""C++: threads that were started before and wait; they go on with what they share behind a call that wakes them."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.values.constructions import is_constructor
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import is_object
from streamlint.ordering.walk.walk_hooks import Hooks
from streamlint.transfer.transfer import CALLING

_DEEPEST = 2
"""Calls between who wakes a thread and who is asked for the threads that it has started, down and up."""


class Woken(Hooks):
    """Follows what is handed over to threads."""

    def woken(self, state: State, one: Instruction) -> Iterator[State]:
        """The threads that go on behind a call that wakes who waits."""
        if self.meanwhile.wakes(state.frame.function, one, _DEEPEST):
            yield from self._going_on(state, one, _DEEPEST)

    def _going_on(self, state: State, one: Instruction, height: int) -> Iterator[State]:
        """The threads that a function has started before a call, the constructor of its object, or who calls it."""
        function = state.frame.function
        for home, start in self._started(function):
            if home is not function or function.homes[start] < function.homes[one]:
                yield from self._in_thread(state, home, start)
        for frame, call, tracked in self._outside(state) if height else ():
            yield from self._going_on(state._replace(frame=frame, tracked=tracked), call, height - 1)

    def _outside(self, state: State) -> Iterator[tuple[Frame, Instruction, frozenset[Tracked]]]:
        """The callers of a function, with what is tracked by their names for it."""
        frame = state.frame
        if frame.caller is not None and frame.call is not None:
            yield frame.caller, frame.call, self._behind_return(state, op.NONE, frame.caller, frame.call)
            return
        for caller, call in self.transfer.callers(frame.function):
            yield Frame(caller, None, None, 0), call, frozenset(self._passed_back(state, op.NONE, caller, call))

    def _in_thread(self, state: State, home: Function, start: Instruction) -> Iterator[State]:
        """The beginning of what a thread runs, with what is tracked now: what it does before it waits finds nothing."""
        tracked = state.tracked
        if home is not state.frame.function:
            tracked = frozenset(held for held in tracked if is_object(held.place.root))
        for made in (home.definitions[each] for each in op.reads(start) if each >= 0):
            if made is not None and made[0] in CALLING:
                tracked |= self.flow.after(home, made, tracked, state.before)
        there = state._replace(frame=Frame(home, None, None, 0), block=0, place=0, before=0, tracked=tracked, path=())
        for edge in self.transfer.edges(home, start):
            given = self._given(there, start, edge.callee) if not edge.is_higher_order else frozenset[Tracked]()
            if any(held.kind == BUFFER for held in given):
                inside = Frame(edge.callee, None, None, 0)
                yield there._replace(frame=inside, tracked=given, guards=frozenset(), decided=frozenset())

    def _started(self, function: Function) -> Iterator[tuple[Function, Instruction]]:
        """Where a function, or the constructor of the object whose method it is, starts threads."""
        owner = function.owner if function.has_receiver else None
        makers = [each for named in owner.methods.values() for each in named if is_constructor(each)] if owner is not None else []
        joining = self.transfer.graph.joining
        return ((each, start) for each in dict.fromkeys((function, *makers)) for start in joining.starts(each))
