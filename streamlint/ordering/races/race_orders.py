"""What orders the work that is followed: waits of the host and of streams, for its stream or an event behind it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import may_be_there
from streamlint.ordering.paths.set_flags import compared_with_none
from streamlint.ordering.paths.states import State
from streamlint.ordering.places import rotation
from streamlint.ordering.places.flow import DONE, EVENT, STATUS, STREAM, Tracked
from streamlint.ordering.places.places import ANY, Element, Key, Place, rest_behind
from streamlint.ordering.races.race_memory import RaceMemory
from streamlint.ordering.streams.lanes import AMBIENT, WAITER, Lane
from streamlint.ordering.streams.recorded_events import RecordedEvents
from streamlint.ordering.streams.same_streams import SameStreams
from streamlint.transfer.actions import CURRENT, NAMED, Action, Copied, Read, Recorded, Stream, Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Exchanged, Waited
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import EQUAL

GIVEN, RECYCLED, LEFT, RESULT = "given", "recycled", "left", "result"
"""Work of external code: that of callers on what they give, that of the users before of a block from a pool, and that of callers on what is
left to them, by a thread or as a result."""

_HOLDING_UP = (Synchronized, Waited, Exchanged, Read)


class RaceOrders(RaceMemory):
    """Knows the stream of the work, and the events behind it."""

    ordering: tuple[type[object], ...] = (Synchronized, Waited, Exchanged, Recorded)

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.same = SameStreams(transfer)
        self._recorded_events = RecordedEvents(transfer, self.places)
        self._waits_in: dict[Function, bool] = {}
        self._chosen: dict[tuple[Instruction, ...], Lane] = {}  # by the calls that lead to a caller: what is current there, or passed down
        self._unknown_work = ""

    def _stream(self, function: Function, work: Worked) -> Stream:
        """The stream of work; an operator's is the current one of the library whose arrays it gets."""
        is_current = work.stream.kind == CURRENT and work.stream.register < 0 and not work.library
        return work.stream._replace(library=self.memory.library(function, work.reads)) if is_current else work.stream

    def _mine(self, state: State) -> Lane:
        """The stream of the work on a path: a caller may have chosen the one that is current there, or passed down."""
        starts = (state.path[:number] for number in range(len(state.path), 0, -1))
        return next((self._chosen[start] for start in starts if start in self._chosen), self._lane)

    def _is_of_other(self, state: State, one: Instruction) -> bool:
        return super()._is_of_other(state, one) or self._is_called_for_another(state, one)

    def _is_called_for_another(self, state: State, one: Instruction) -> bool:
        """Whether another call runs the function on another stream than the one by which the path has left it."""
        calls = state.frame.calls if state.path else ()
        if all(call.instruction in state.path for call in calls):
            return False
        mine, lane = self._mine(state), self.lanes.of(state.frame, one, self._work.stream)
        return mine.kind == lane.kind == NAMED and bool(mine.made and lane.made) and mine.made.isdisjoint(lane.made)

    def _recorded(self, function: Function, one: Instruction) -> frozenset[Tracked]:
        """The events that are behind work when its call is over: the handle of a collective."""
        return frozenset(
            Tracked(EVENT, place.behind(ANY) if action.inside else place)
            for action in self.transfer.of(function, one)
            if isinstance(action, Recorded)
            for place in (*self.places.names(function, action.event), *rotation.elements(self.places, function, action.event))
        )

    def _is_ordered(self, state: State, one: Instruction, stream: Stream) -> bool:
        lane = self.lanes.of(state.frame, one, stream)
        is_theirs = self._unknown_work == GIVEN and lane.kind == NAMED and not lane.made  # callers have named the stream that they work on
        is_same = self.lanes.is_same(state.tracked, lane) or self._may_be_earlier(state, STREAM, lane.places)
        is_current = lane.may_be_current and self._mine(state).kind == CURRENT
        return is_theirs or is_same or is_current or (stream.kind == NAMED and self._may_be_element(state, stream.register))

    def _may_be_element(self, state: State, register: int) -> bool:
        """Whether a stream that is awaited may be that of the work, which is one of a container: at any index, gone through, or put in."""
        held = (each.place for each in state.tracked if each.kind == STREAM and each.place.path) if register >= 0 else ()
        return any(self._is_element(state.frame.function, register, each) for each in held if isinstance(each.path[-1], Element))

    def _given(self, state: State, one: Instruction, callee: Function) -> frozenset[Tracked]:
        """Also the arguments that may be the stream of the work, as one of a container."""
        found = super()._given(state, one, callee)
        is_one_of = any(each.kind == STREAM and each.place.path and isinstance(each.place.path[-1], Element) for each in state.tracked)
        for param in callee.by_opcode[op.PARAM] if is_one_of and one[0] in (op.CALL, op.INVOKE) else ():
            given = operand_of(state.frame.function, one, callee, param[3])
            if given is not None and self._may_be_element(state, given):
                found |= {Tracked(STREAM, Place(("parameter", param[3])))}
        return found

    def _is_element(self, function: Function, register: int, place: Place) -> bool:
        container = rotation.gone_through(function, register)
        every = [each.behind(ANY) for each in self.places.names(function, container)] if container >= 0 else []
        awaited = self.places.names(function, register)
        is_found = any(rest_behind(each, place) == () for each in every) or any(_may_be_one_element(each, place) for each in awaited)
        return is_found or not set(awaited).isdisjoint(self._put_into(function, place))

    def _put_into(self, function: Function, place: Place) -> Iterator[Place]:
        """The names of what a list is built of in which a place stands."""
        definition = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" and len(place.path) == 1 else None
        index = getattr(place.path[0], "key", None) if place.path else None
        parts = definition[4:] if definition is not None and definition[0] == op.BUILD else ()
        for register in parts[index : index + 1] if isinstance(index, int) else parts:
            yield from self.places.names(function, register)

    def _may_be_earlier(self, state: State, kind: str, places: Iterable[Place]) -> bool:
        """Whether the stream, or an event behind the work, may stand at a place that is named otherwise than in an earlier round."""
        held = [each.place for each in state.tracked if each.kind == kind and each.place.path]
        return bool(held) and any(rotation.may_be_earlier(place, other) for place in places for other in held)

    def _is_behind(self, state: State, one: Instruction, action: Waited) -> bool:
        """Whether a stream waits for the work: for its stream, or for an event behind it, or for what nobody knows."""
        function = state.frame.function
        if action.is_event:
            return self._is_event_behind(state, action.of) or self._recorded_events.is_empty(function, one, action.of)
        call = self.transfer.modelled(function, one)
        stream = next((modelled.stream_in(action.of) for modelled in call), Stream(NAMED, action.of))
        return self._is_ordered(state, one, stream)

    def _each(self, function: Function, stream: Stream) -> frozenset[Tracked]:
        """The streams of a container, where a loop has each of them wait."""
        container = rotation.gone_through(function, stream.register) if stream.kind == NAMED else op.NONE
        places = self.places.names(function, container) if container >= 0 else ()
        return frozenset(Tracked(WAITER, place.behind(ANY)) for place in places)

    def _is_event_behind(self, state: State, event: int) -> bool:
        if self._unknown_work == GIVEN and self.places.of(state.frame.function, event).root[0] == "parameter":
            return True  # callers say where their work ends
        function = state.frame.function
        is_behind = self.has(state, EVENT, event) or self._may_be_earlier(state, EVENT, self.places.names(function, event))
        return is_behind or not self._recorded_events.is_recorded(function, event)

    def _leads_to_order(self, state: State, register: int, by: Instruction) -> bool:
        """Whether a register that a call is given holds the stream or an event, or an object that leads to it."""
        if register < 0:
            return False
        function = state.frame.function
        is_member = by[0] == op.INVOKE and by[3] == register and self.dispatch.is_of_member(function, by)
        names = [name.behind(*([function.text(by[4])] if is_member else ())) for name in self.places.names(function, register)]
        return any(
            held.kind in (STREAM, EVENT) and held.place != AMBIENT and rest_behind(place, held.place) is not None
            for place in names
            for held in state.tracked
        )

    def _may_order_inside(self, state: State, one: Instruction, callee: Function) -> bool:
        """Whether a function that an instruction enters waits, or has a stream wait: to record an event alone orders nothing."""
        known = self._waits_in.get(callee)
        if known is None:
            self._waits_in[callee] = False  # in a cycle, the others tell
            calls = [each for opcode in CALLING for each in callee.by_opcode[opcode]]
            found = any(isinstance(action, _HOLDING_UP) for each in calls for action in self._holding_up(callee, each))
            edges = (edge for each in calls for edge in self.transfer.edges(callee, each) if edge.is_followed)
            known = self._waits_in[callee] = found or any(self._may_order_inside(state, one, edge.callee) for edge in edges)
        return known

    def _holding_up(self, function: Function, one: Instruction) -> Iterator[Action]:
        actions = (action for action in self.transfer.of(function, one) if self.may_hold_up(action))
        return (action for action in actions if not isinstance(action, Read) or self.may_hold(function, action))

    def is_order(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether the host waits for the work, or a stream does."""
        if isinstance(action, Waited):
            return action.of != op.NONE and self._is_behind(state, one, action)
        if isinstance(action, Exchanged):
            return self._is_ordered(state, one, action.of)
        return super().is_order(state, one, action)

    def may_be_order(self, action: Action) -> bool:
        if isinstance(action, Read):
            return action.waits
        return isinstance(action, Synchronized) or (isinstance(action, Copied) and action.asynchronous is False)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether the host waits for the work."""
        if isinstance(action, Synchronized):
            if action.of is None:
                return True
            if isinstance(action.of, Stream):
                return self._is_ordered(state, one, action.of)
            return self._is_event_behind(state, action.of)
        if isinstance(action, Read) and action.waits:
            is_there = self.may_hold(state.frame.function, action) or self._touches(state, action.register)
            library = self.memory.library(state.frame.function, [action.register]) or "torch"
            return is_there and self._is_ordered(state, one, Stream(CURRENT, library=library))
        return isinstance(action, Copied) and action.asynchronous is False and self._copies_behind(state, one, action)

    def _copies_behind(self, state: State, one: Instruction, action: Copied) -> bool:
        """Whether a copy for which the host waits is on the stream of the work: what is used in a scope is on a device."""
        if action.direction in ("h2h", "d2d"):
            return False
        lane = self.lanes.of(state.frame, one, action.stream)
        is_on_host = "host" in action.direction or "2" in action.direction
        return (is_on_host or lane.kind != NAMED) and self.lanes.is_same(state.tracked, lane)

    def may_hold(self, function: Function, action: Read) -> bool:
        return may_be_there(list(self.transfer.values(function, action.register)), action.presumes)

    def is_bounded(self, state: State, condition: int) -> bool:
        """Whether a loop asks for the container of an event behind the work: that many pieces are under way on purpose."""
        return bool(self._kept_in(state, _reads(state.frame.function, condition))) or self._is_filled(state, condition)

    def _is_filled(self, state: State, condition: int) -> bool:
        """Whether a condition asks whether a container is empty that holds an event behind the work."""
        return any(rest and isinstance(rest[0], Element) for rest in self._kept_in(state, (condition,)))

    def _kept_in(self, state: State, registers: Iterable[int]) -> list[tuple[Key, ...]]:
        """The keys that lead from some registers to events behind the work which containers and objects hold."""
        kept = [held.place for held in state.tracked if held.kind == EVENT and held.place.path]
        names = (place for register in (registers if kept else ()) for place in self.places.names(state.frame.function, register))
        outer = [place for place in names if place.path or place.root[0] != "register"]
        return [rest for place in outer for inner in kept if (rest := rest_behind(place, inner)) is not None]

    def done_where(self, state: State, condition: int) -> bool | None:
        """A query of the stream, or of an event behind the work."""
        if self.has(state, DONE, condition):
            return True
        if self.has(state, STATUS, condition) or self.has(state, EVENT, condition):
            return False
        if state.block not in state.frame.function.loop_heads and self._is_filled(state, condition):
            return True  # it is not empty
        return self._is_there(state, condition)

    def learned(self, state: State, condition: int, holds: bool) -> frozenset[Tracked]:
        """Where the stream of the work equals another one, the names of that are names of it."""
        one = state.frame.function.definitions[condition] if condition >= 0 else None
        if one is None or one[0] != op.COMPARE or EQUAL.get(state.frame.function.text(one[3])) is not holds:
            return frozenset()
        others = [other for mine, other in ((one[4], one[5]), (one[5], one[4])) if self.has(state, STREAM, mine)]
        return frozenset().union(*(self.lanes.of(state.frame, one, Stream(NAMED, other)).tracked(STREAM) for other in others))

    def _is_there(self, state: State, condition: int) -> bool | None:
        """A handle or event behind the work, or its stream, is asked whether it is None: where a path goes on, it is not."""
        asked = compared_with_none(state.frame.function, condition)
        return asked[1] if asked is not None and (self.has(state, EVENT, asked[0]) or self.has(state, STREAM, asked[0])) else None


def _reads(function: Function, register: int, depth: int = 4) -> Iterator[int]:
    """The registers that a condition is computed from."""
    one = function.definitions[register] if register >= 0 and depth else None
    for each in op.reads(one) if one is not None and one[0] in (op.COMPARE, op.UNARY, op.BINARY, op.CALL, op.COPY) else ():
        yield each
        yield from _reads(function, each, depth - 1)


def _may_be_one_element(place: Place, other: Place) -> bool:
    """Whether two places may be one element of a container: their indices are not two constants."""
    if place.root != other.root or len(place.path) != len(other.path) or place.path[:-1] != other.path[:-1]:
        return False
    keys = [path[-1].key for path in (place.path, other.path) if isinstance(path[-1], Element)]
    return len(keys) == 2 and (keys[0] == keys[1] or not all(isinstance(key, int | str) for key in keys))
