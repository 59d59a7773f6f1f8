"""SL005: the host reads memory that an asynchronous copy from the device may still be filling."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import External, LibraryObject, Memory, Object, Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.flow import BUFFER, DONE, EVENT, STATUS, STREAM, Tracked
from streamlint.ordering.places import Element, register_place, rest_behind
from streamlint.ordering.streams import sites_of
from streamlint.ordering.walk import MOST_GUESSES, ORDERED, State, Walk
from streamlint.transfer.actions import (
    CURRENT,
    NAMED,
    NULL,
    UNKNOWN,
    Action,
    Asked,
    Copied,
    Lost,
    Read,
    Recorded,
    Stream,
    Synchronized,
    Viewed,
    Written,
)
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike, unnegated

COPYING = frozenset({"copy", "transfer", "move"})


class EarlyRead(NamedTuple):
    """A copy, the read that it may reach too late, and the calls that lead to each from where their paths meet."""

    copy: Site
    copied: Copied
    read: Site
    name: str
    copy_calls: tuple[Site, ...]
    read_calls: tuple[Site, ...]
    doubts: int


class EarlyReads(Walk):
    """Finds the early reads of a program."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._copy: Copied
        self._function: Function
        self._found: dict[tuple[Site, Site], EarlyRead] = {}

    def find(self) -> Iterator[EarlyRead]:
        """The early reads of the program."""
        for call in self.transfer.sites(COPYING):
            for action in self.transfer.of(call.function, call.instruction):
                if isinstance(action, Copied) and self.is_candidate(call.function, action):
                    self._found = {}
                    self._follow(call.function, call.instruction, action)
                    yield from self._found.values()

    def is_candidate(self, function: Function, copied: Copied) -> bool:
        """Whether a copy may be asynchronous, and fill memory of the host."""
        if copied.asynchronous is False or copied.direction not in ("d2h", "host<unknown"):
            return False
        if copied.asynchronous is None and copied.flag == op.NONE:
            return False
        if not self._is_told(function, copied):
            return False
        return copied.direction == "d2h" or self.is_pinned(function, copied.target)

    def _is_told(self, function: Function, copied: Copied) -> bool:
        """Whether a copy is from a device for sure, or the function that asks for it, or its caller, says that it goes to the host."""
        row, call = copied.call.row, copied.call
        if row is None or row.effect not in ("transfer", "move") or row.get("to") != "argument":
            return True
        if any(isinstance(value, Memory) and value.space == "device" for value in self.transfer.values(function, copied.source)):
            return True
        registers = ModelledCall(self.facts, function, call, row).all("device")
        return any(self._is_chosen(function, register) for register in registers)

    def _is_chosen(self, function: Function, register: int) -> bool:
        one = function.definitions[register]
        if one is None or one[0] != op.PARAM:
            return one is not None and one[0] in (op.CONST, op.CALL, op.INVOKE, op.NAME)
        for caller, call in self.facts.call_places(function):
            given = self._operand(caller, call, function, one[3]) if call[0] in (op.CALL, op.INVOKE) else None
            made = caller.definitions[given] if given is not None and given >= 0 else None
            if made is not None and made[0] in (op.CONST, op.CALL, op.INVOKE):
                return True
        return False

    def is_pinned(self, function: Function, register: int) -> bool:
        """Whether a register holds page-locked memory."""
        return any(isinstance(value, Memory) and value.pinning == "pinned" for value in self.transfer.values(function, register))

    def _follow(self, function: Function, one: Instruction, copied: Copied) -> None:
        self._copy, self._function, self._site = copied, function, Site(function, one)
        tracked = set(self._tracked(function, copied.target))
        self._stream = self._stream_at(function, one, copied.stream)
        self._stream_values = list(self.transfer.values(function, self._stream.register))
        if self._stream.register >= 0:
            tracked |= {Tracked(STREAM, place) for place in self.places.names(function, self._stream.register)}
        decided: set[tuple[Key, bool]] = set()
        if copied.flag != op.NONE and copied.asynchronous is None:
            decided.add((alike(function, copied.flag), True))
        graph = self.control(function)
        for block, edge in graph.controlled_by[self.home(function, one)[0]]:
            if any(block == loop.header for loop in graph.loops):
                continue  # another round may not come
            end = function.code.blocks[block][-1]
            condition, turned = unnegated(function, end[2])
            decided.add((alike(function, condition), (edge == end[3]) != turned))
        self.run(self.start(function, one, frozenset(tracked), frozenset(decided)), self._judge)

    def _tracked(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory that is filled, by all its names."""
        for register in self.transfer.shared(function, target):
            kind = next((value.type for value in self.transfer.values(function, register) if isinstance(value, Memory)), "torch.Tensor")
            yield from (Tracked(BUFFER, place, kind) for place in self.places.names(function, register))
            same = self.places.of(function, register)
            if same.root[0] != "register" or same.path:
                for each, made in enumerate(function.definitions):
                    if made is not None and self.places.of(function, each) == same:
                        yield Tracked(BUFFER, register_place(each), kind)

    def _stream_at(self, function: Function, one: Instruction, stream: Stream) -> Stream:
        """The stream of an operation: what is current, if it names none."""
        if stream.kind != CURRENT:
            return stream
        return self.currents.at(function, one) or stream

    # --- what actions mean

    def _judge(self, state: State, one: Instruction, action: Action) -> str | frozenset[Tracked] | None:
        function, tracked = state.frame.function, state.tracked
        if self.orders(state, one, action):
            return ORDERED
        if isinstance(action, Recorded):
            stream = self._stream_at(function, one, action.stream)
            if self._is_same_stream(state, stream):
                places = self.places.names(function, action.event)
                return tracked | {Tracked(EVENT, place) for place in places}
        elif isinstance(action, Viewed):
            held = self._held(state, action.register)
            if held is not None and op.DEFINES[one[0]]:
                announced = Site(function, one) if action.announces else held.announced
                return tracked | {Tracked(BUFFER, register_place(one[2]), action.type or held.type, announced)}
        elif isinstance(action, Asked) and op.DEFINES[one[0]]:
            if self._has(state, EVENT, action.of) or self._has(state, STREAM, action.of):
                return tracked | {Tracked(STATUS if action.is_status else DONE, register_place(one[2]))}
        elif isinstance(action, Read):
            held = self._held(state, action.register, action.depth)
            if held is not None and state.doubts <= MOST_GUESSES:
                self._tell(state, held.announced or Site(function, one), action.name)
                return ORDERED
        elif isinstance(action, Lost):
            return self._lost(state, one, action)
        return None

    def _lost(self, state: State, one: Instruction, action: Lost) -> str | frozenset[Tracked] | None:
        """A call out of view: a method of the memory itself is one of its type; any other may wait for what it is given."""
        function = state.frame.function
        held = self._held(state, one[3]) if action.method else None
        if held is not None:
            for known in self.transfer.of_method(function, one, held.type):
                answer = self._judge(state, one, known)
                if answer is not None:
                    return answer
            return None
        return ORDERED if any(self._is_given(state, register) for register in action.registers) else None

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        function = state.frame.function
        if isinstance(action, Synchronized):
            return self._waits_for(state, one, action)
        if isinstance(action, Read) and action.waits:
            return self._held(state, action.register, action.depth) is None and self._may_wait(state, one, action)
        if isinstance(action, Copied) and action.asynchronous is False and action.direction != "h2h":
            return self._is_same_stream(state, self._stream_at(function, one, action.stream))
        return False

    def _waits_for(self, state: State, one: Instruction, action: Synchronized) -> bool:
        function = state.frame.function
        if action.of is None:
            return True
        if isinstance(action.of, Stream):
            return self._is_same_stream(state, self._stream_at(function, one, action.of))
        return self._is_awaited(state, action.of)

    def _is_awaited(self, state: State, event: int) -> bool:
        """Whether a wait for an event waits for the copy: the event was recorded behind it, or nobody knows what it is."""
        function = state.frame.function
        if self._has(state, EVENT, event):
            return True
        return not self._is_recorded_in_view(function, event)

    def _is_recorded_in_view(self, function: Function, event: int) -> bool:
        made, _ = sites_of(list(self.transfer.values(function, event)))
        place = self.places.of(function, event)
        for call in self._records:
            for action in self.transfer.of(call.function, call.instruction):
                if isinstance(action, Recorded):
                    if call.function is function and self.places.of(function, action.event) == place:
                        return True
                    if made & sites_of(list(self.transfer.values(call.function, action.event)))[0]:
                        return True
        return False

    @cached_property
    def _records(self) -> list[ModelledCall]:
        """The records of events in the program."""
        return list(self.transfer.sites(frozenset({"record"})))

    def _may_wait(self, state: State, one: Instruction, action: Read) -> bool:
        """Whether a read of a value waits for its device, on the stream of the copy."""
        function = state.frame.function
        values = list(self.transfer.values(function, action.register))
        there = {value.space for value in values if isinstance(value, Memory)}
        is_there = not there.isdisjoint({"device", "unknown"}) or (action.presumes and not there and _is_unknown(values))
        if not is_there:
            return False
        library = "cupy" if any(isinstance(v, Memory) and v.type.startswith("cupy") for v in values) else "torch"
        return self._is_same_stream(state, self._stream_at(function, one, Stream(CURRENT, library=library)))

    def _is_same_stream(self, state: State, stream: Stream) -> bool:
        """Whether a stream may be that of the copy; one of which nothing is known is."""
        mine = self._stream
        if UNKNOWN in (stream.kind, mine.kind):
            return True
        if stream.kind == NAMED and self._has(state, STREAM, stream.register):
            return True
        if stream.kind != NAMED and mine.kind != NAMED:
            return True  # the null stream, or whatever is current
        if stream.kind != NAMED or mine.kind != NAMED:
            return False
        values = list(self.transfer.values(state.frame.function, stream.register))
        made, is_all = sites_of(values)
        others, is_all_of_others = sites_of(self._stream_values)
        if made & others:
            return True
        return not made and _is_unknown(values) and not self._is_at_hand(state.frame.function, stream.register)

    def _is_at_hand(self, function: Function, register: int) -> bool:
        """Whether a stream has a name: another than the copy's is another stream."""
        place = self.places.of(function, register)
        return place.root[0] != "register" or bool(place.path)

    def _held(self, state: State, register: int, depth: tuple[int, ...] = (0,)) -> Tracked | None:
        """The copy's memory, if a register holds it, or containers that do."""
        if register < 0:
            return None
        for place in self.places.names(state.frame.function, register):
            for held in state.tracked:
                rest = rest_behind(place, held.place) if held.kind == BUFFER else None
                if rest is not None and len(rest) in depth and all(isinstance(key, Element) for key in rest):
                    return held
        return None

    def done_where(self, state: State, condition: int) -> bool | None:
        function = state.frame.function
        one = function.definitions[condition] if condition >= 0 else None
        if one is not None and one[0] == op.COMPARE and function.text(one[3]) in ("==", "!=", "is", "is not"):
            is_equal = function.text(one[3]) in ("==", "is")
            for asked, other in (one[4:6], one[5:3:-1]):
                said = function.definitions[other]
                constant = function.unit.ir.constants[said[3]] if said is not None and said[0] == op.CONST else None
                if self._has(state, DONE, asked) and isinstance(constant, bool):
                    return is_equal == constant
                if self._has(state, STATUS, asked):
                    return is_equal == (constant == 0 or _is_success(self.facts, function, other))
        if self._has(state, DONE, condition):
            return True
        return False if self._has(state, STATUS, condition) else None

    def _has(self, state: State, kind: str, register: int) -> bool:
        if register < 0:
            return False
        names = self.places.names(state.frame.function, register)
        return any(held.kind == kind and rest_behind(place, held.place) == () for place in names for held in state.tracked)

    def _is_given(self, state: State, register: int) -> bool:
        """Whether a register holds anything that is tracked, or an object that leads to it."""
        if register < 0:
            return False
        names = self.places.names(state.frame.function, register)
        return any(rest_behind(place, held.place) is not None for place in names for held in state.tracked)

    def _tell(self, state: State, read: Site, name: str) -> None:
        calls: list[Site] = []
        frame = state.frame
        while frame.caller is not None and frame.call is not None:
            calls.insert(0, Site(frame.caller.function, frame.call))
            frame = frame.caller
        key = (self._site, read)
        copy_calls = tuple(Site(frame.function, call) for call in reversed(state.path[-1:]))
        found = EarlyRead(self._site, self._copy, read, name, copy_calls, tuple(calls), state.doubts)
        if key not in self._found or found.doubts < self._found[key].doubts:
            self._found[key] = found


def _is_success(facts: Facts, function: Function, register: int) -> bool:
    """Whether a register holds the status of success."""
    models = facts.cpp_models if function.is_cpp else facts.models
    names = {value.name for value in facts.values(function, register).values if isinstance(value, External)}
    return "success" in {models.constants.get(name) for name in (*names, function.dotted(register))}


def _is_unknown(values: list[Object]) -> bool:
    return not values or any(isinstance(value, Unknown) for value in values) or not any(isinstance(v, LibraryObject) for v in values)


__all__ = ["NULL", "Asked", "EarlyRead", "EarlyReads", "Written"]
