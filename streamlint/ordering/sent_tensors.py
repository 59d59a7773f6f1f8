"""SL012: tensors on a device that are sent to another process: written later, or sent before their stream has finished."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.flow import BUFFER, EVENT, STREAM, Tracked
from streamlint.ordering.places import register_place, rest_behind
from streamlint.ordering.walk import ORDERED, State, Walk
from streamlint.transfer.actions import CURRENT, NAMED, NULL, Action, Copied, Lost, Recorded, Stream, Synchronized, Viewed, Written
from streamlint.transfer.channels import Channels, End
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import WORK, Uses
from streamlint.transfer.waiting import Waited

_PASSED_ON = frozenset({op.COPY, op.AWAIT, op.PHI, op.UNPACK, op.ITEM})
_DEEPEST = 3
_VIEWS = frozenset({"view", "same"})


class LaterWrite(NamedTuple):
    """A write to memory that a put has sent. ``again``: the same memory is put again behind it."""

    put: Site
    write: Site
    calls: tuple[Site, ...]
    again: bool


class LaterWrites(Walk):
    """Finds writes to what was sent, before the receiver may have answered."""

    def __init__(self, transfer: Transfer, channels: Channels, uses: Uses) -> None:
        super().__init__(transfer)
        self.channels = channels
        self.uses = uses
        self._put: End
        self._found: list[LaterWrite] = []

    def find(self, put: End, registers: tuple[int, ...]) -> Iterator[LaterWrite]:
        """The first write to what registers hold behind a put."""
        function, one = put.site.function, put.site.instruction
        self._put, self._found = put, []
        tracked = {
            Tracked(BUFFER, place)
            for register in registers
            for shared in self.transfer.shared(function, register)
            for place in self.places.names(function, shared)
        }
        self.run(self.start(function, one, frozenset(tracked), ()), self._judge)
        yield from self._found[:1]

    def _judge(self, state: State, one: Instruction, action: Action) -> str | frozenset[Tracked] | None:
        if self._found or self._answers(state, one, action):
            return ORDERED
        function = state.frame.function
        if isinstance(action, Viewed) and op.DEFINES[one[0]] and self._holds(state, action.register):
            return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        written = action.register if isinstance(action, Written) else action.target if isinstance(action, Copied) else op.NONE
        if written >= 0 and self._holds(state, written) and not (isinstance(action, Copied) and written == one[2]):
            self._found.append(LaterWrite(self._put.site, Site(function, one), state.frame.calls, self._is_put_again(state, one)))
            return ORDERED
        return None

    def _answers(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action may be the word of the receiver that it needs the memory no longer."""
        if not isinstance(action, Lost):
            return False
        return one[0] == op.INVOKE or any(self._is_given(state, register) for register in action.registers)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return False

    def passed(self, state: State, one: Instruction) -> bool:
        """Whether an instruction takes a reply from another channel than the one of the put."""
        if one[0] != op.INVOKE:
            return False
        for call in self.transfer.modelled(state.frame.function, one):
            if call.row.effect == "get" and not call.row.get("local"):
                channel = self.channels.of(state.frame.function, one[3])
                return not (channel & self._put.channel) and not self.channels.replies_often(channel)
        return False

    def _is_put_again(self, state: State, one: Instruction) -> bool:
        """Whether the write is followed by a put of the same memory: by the same put in the next round."""
        function = state.frame.function
        if function is not self._put.site.function:
            return False
        graph = self.control(function)
        here, put = self.home(function, one), self.home(function, self._put.site.instruction)
        loop = graph.innermost[put[0]]
        return loop >= 0 and here[0] in graph.loops[loop].body

    def _holds(self, state: State, register: int) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        return any(held.kind == BUFFER and rest_behind(place, held.place) == () for place in names for held in state.tracked)

    def _is_given(self, state: State, register: int) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        return any(rest_behind(place, held.place) is not None for place in names for held in state.tracked)

    def done_where(self, state: State, condition: int) -> bool | None:
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        return frozenset()


class Unordered(NamedTuple):
    """A put of memory whose stream may not have finished: where that was written, and the stream's making."""

    put: Site
    written: Site
    stream: Site | None


class UnorderedPuts(Walk):
    """Finds puts whose event does not cover the work on what they send."""

    def __init__(self, transfer: Transfer, uses: Uses) -> None:
        super().__init__(transfer)
        self.uses = uses
        self._put: End
        self._stream: Stream
        self._found = False

    def find(self, put: End, registers: tuple[int, ...]) -> Iterator[Unordered]:
        """The work behind which a put is not ordered."""
        function = put.site.function
        for register in registers:
            for one in self._writers(function, register):
                stream = self.currents.at(function, one)
                if stream is None or stream.kind != NAMED:
                    continue
                if not put.call.row.get("feeder") and self.currents.at(function, put.site.instruction) == stream:
                    continue
                self._put, self._stream, self._found = put, stream, False
                places = self.places.names(function, stream.register)
                tracked = frozenset({Tracked(BUFFER, register_place(one[2])), *(Tracked(STREAM, place) for place in places)})
                self.run(self.start(function, one, tracked, ()), self._judge)
                if self._found:
                    made = next((value.site for value in self.transfer.values(function, stream.register) if hasattr(value, "site")), None)
                    yield Unordered(put.site, Site(function, one), made)
                    return

    def _writers(self, function: Function, register: int) -> Iterator[Instruction]:
        """The work that computes what a register holds."""
        waiting, seen = [register], set[int]()
        while waiting:
            each = waiting.pop()
            one = function.definitions[each] if each >= 0 else None
            if one is None or each in seen:
                continue
            seen.add(each)
            if any(use.kind == WORK for use in self.uses.at(function, one)):
                yield one
            elif one[0] in _PASSED_ON:
                waiting += one[3:] if one[0] == op.PHI else one[3:4]
            elif one[0] in (op.CALL, op.INVOKE) and any(c.row.effect in _VIEWS for c in self.transfer.modelled(function, one)):
                waiting += op.reads(one)

    def _judge(self, state: State, one: Instruction, action: Action) -> str | frozenset[Tracked] | None:
        if self.orders(state, one, action):
            return ORDERED
        function = state.frame.function
        if isinstance(action, Recorded):
            at = self.currents.at(function, one) if action.stream.kind == CURRENT else action.stream
            if at is not None and at.register >= 0 and self._has(state, STREAM, at.register):
                return state.tracked | {Tracked(EVENT, place) for place in self.places.names(function, action.event)}
        elif isinstance(action, Lost) and any(self._has(state, STREAM, register) for register in action.registers):
            return ORDERED
        return None

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        if isinstance(action, Synchronized):
            if isinstance(action.of, Stream):
                return action.of.register < 0 or self._has(state, STREAM, action.of.register)
            return action.of is None or self._has(state, EVENT, action.of)
        if isinstance(action, Waited):
            is_current = action.stream.kind in (CURRENT, NULL)
            return is_current and (self._has(state, STREAM, action.of) or self._has(state, EVENT, action.of))
        return False

    def passed(self, state: State, one: Instruction) -> bool:
        """The put itself: the work has reached it."""
        if state.frame.function is self._put.site.function and one == self._put.site.instruction:
            self._found = True
            return True
        return False

    def _has(self, state: State, kind: str, register: int) -> bool:
        names = self.places.names(state.frame.function, register) if register >= 0 else ()
        return any(held.kind == kind and rest_behind(place, held.place) == () for place in names for held in state.tracked)

    def done_where(self, state: State, condition: int) -> bool | None:
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        return frozenset()


def sent(function: Function, put: End, uses: Uses) -> tuple[int, ...]:
    """The registers of memory of a device among what a put sends: the value, or parts of it."""
    found: list[int] = []
    waiting = [(register, 0) for register in put.call.all("of")]
    while waiting:
        register, depth = waiting.pop()
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in (op.BUILD, op.DICT):
            if depth < _DEEPEST:
                waiting += ((each, depth + 1) for each in one[4 :: 1 if one[0] == op.BUILD else 2])
        elif uses.on_device(function, register):
            found.append(register)
    return tuple(found)
