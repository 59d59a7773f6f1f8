"""The next call of a method that no known code calls: it finds the memory that the last call has left, and its work under way."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked
from streamlint.ordering.places.places import ANY, Element, Place
from streamlint.ordering.races.crossing import MARK, USED
from streamlint.ordering.races.references import References
from streamlint.ordering.streams.lanes import AMBIENT
from streamlint.transfer.actions import CURRENT, NAMED
from streamlint.transfer.waiting import Waited


class NextCalls(References):
    """Runs methods once more on their objects, while the work of the last call may be under way."""

    def _repeated_invocation(self, state: State) -> Iterator[State]:
        yield from ()  # `_next_call` runs it

    def _next_call(self, state: State, register: int, end: Instruction) -> Iterator[State]:
        """A method runs once more on its object; what the last call has lent is used by its caller on the stream that is current there."""
        function = state.frame.function
        marker = next(function.code.instructions())
        if function.is_cpp or state.path.count(marker) > 1 or function.code.name == "__init__":
            return
        if not self._may_be_under_way(function):
            return
        mine = frozenset(_later(held) for held in state.tracked if held.place.root == ("parameter", 0) or held.place.root[0] == "global")
        if self._lane.kind == CURRENT and not any(held.kind == BUFFER for held in mine):
            return
        if self._lane.kind == NAMED and self.leads(state, BUFFER, register):
            mine |= {Tracked(USED, MARK, "", Site(function, end)), Tracked(STREAM, AMBIENT)}
        if mine:
            yield State(Frame(function, None, None, 0), 0, 0, 0, mine, state.guesses, frozenset(), frozenset(), (*state.path, marker))

    def _may_be_under_way(self, function: Function) -> bool:
        """Whether the work of one call may be under way in the next: its stream lasts, and callers cannot wait for it."""
        lane = next((place for place in self._lane.places if place.root == ("parameter", 0)), None)
        if self._lane.kind == NAMED and lane is None:
            return self.apart.map.lasts(self._lane)
        if function.method is not function or not function.has_receiver:
            return False
        return lane is None or not (self.settled.leaves(function, lane) or self._may_wait_elsewhere(function, lane))

    def _may_wait_elsewhere(self, function: Function, lane: Place) -> bool:
        """Whether another method of the class lets the stream wait."""
        for other in function.unit.functions:
            if other is function or other.code.class_name != function.code.class_name or not other.has_receiver:
                continue
            if self.callers(other):
                continue
            for one in other.by_opcode[op.INVOKE]:
                for action in self.transfer.of(other, one):
                    if isinstance(action, Waited) and self.places.of(other, action.stream.register) == lane:
                        return True
        return False


def _later(held: Tracked) -> Tracked:
    """A place as a later call finds it: an index that was computed is another one then."""
    keys = (ANY if isinstance(key, Element) and not isinstance(key.key, (int, str)) else key for key in held.place.path)
    return held._replace(place=Place(held.place.root, tuple(keys)))
