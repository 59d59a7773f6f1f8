"""SL018: records of an event that are lost, for another stream records it again before anybody waits for it.

A record is followed forward. A wait for the event, or a stream that waits for the recording one before it records, keeps it. In a loop the
next round records again, if the stream is another one there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import EVENT, STREAM, Tracked, is_at
from streamlint.ordering.streams.streams import sites_of
from streamlint.ordering.walk.event_walk import EventWalk
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import CURRENT, NAMED, Action, Lost, Recorded, Stream, Synchronized
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.operands import operand_of

AGAIN = "recorded again"
_HIGHEST = 3
_INTEGERS = frozenset({"int", "long", "long long", "short", "size_t", "unsigned", "unsigned int"})


class LostRecord(NamedTuple):
    """A record, the one that replaces it (None: its own in the next round of a loop), and the wait that covers only the later one."""

    record: Site
    name: str
    again: Site | None
    wait: Site


class LostRecords(EventWalk):
    """Finds the records of a program that nobody has waited for when they are replaced."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._site: Site
        self._stream: Stream
        self._loop: Loop | None = None
        self._home: Function | None = None  # where the loop stands
        self._kept = False
        self._wait: Site | None = None
        self._found: LostRecord | None = None
        self._name = ""

    def find(self) -> Iterator[LostRecord]:
        """The lost records of the program."""
        sites = {(call.function, call.instruction): call for call in self.transfer.sites(frozenset({"record"}))}
        for call in sites.values():
            for action in self.transfer.of(call.function, call.instruction):
                if isinstance(action, Recorded) and action.event != call.result:
                    self._follow(call.function, call.instruction, action, call.name)
                    if self._found is not None:
                        yield self._found
                    elif self._loop is not None and self._wait is not None and not self._kept:
                        yield LostRecord(self._site, call.name, None, self._wait)

    def _follow(self, function: Function, one: Instruction, action: Recorded, name: str) -> None:
        self._site, self._name = Site(function, one), name
        self._found, self._wait, self._kept = None, None, False
        self._stream = self._stream_at(function, one, action.stream)
        self._home, self._loop = self._loop_of(function, one, action.event, self._stream)
        tracked = {Tracked(EVENT, place) for place in self.events.names(function, action.event)}
        if self._stream.register >= 0:
            tracked |= {Tracked(STREAM, place) for place in self.places.names(function, self._stream.register)}
            tracked.add(Tracked(STREAM, self.events.stream_place(function, self._stream.register)))
        self.run(self.start(function, one, frozenset(tracked), ()))

    def _stream_at(self, function: Function, one: Instruction, stream: Stream) -> Stream:
        return (self.currents.at(function, one) or stream) if stream.kind == CURRENT else stream

    # --- loops

    def _loop_of(
        self, function: Function, one: Instruction, event: int, stream: Stream, depth: int = 0
    ) -> tuple[Function | None, Loop | None]:
        """The innermost loop around a record, or around the call that gives it both, if each round records the same event on another
        stream."""
        graph = function.control
        place = graph.innermost[function.homes[one][0]]
        if stream.kind != NAMED:
            return None, None
        if place != NOBODY:
            loop = graph.loops[place]
            is_lost = self._varies(function, loop, stream.register) and not self._varies(function, loop, event)
            return (function, loop) if is_lost else (None, None)
        return self._loop_above(function, event, stream, depth) if depth < _HIGHEST else (None, None)

    def _loop_above(self, function: Function, event: int, stream: Stream, depth: int) -> tuple[Function | None, Loop | None]:
        """The same around a call that gives both, or what holds them: arguments, or the object whose method records."""
        roots = [self.places.of(function, register).root if register >= 0 else ("global",) for register in (event, stream.register)]
        params = [int(str(root[1])) if root[0] == "parameter" else op.NONE for root in roots]
        is_given = params[1] >= 0 and (params[0] >= 0 or roots[0][0] == "global")
        for caller, call in self.callers(function) if is_given else ():
            if call[0] in (op.CALL, op.INVOKE):
                event_given, stream_given = (
                    operand_of(caller, call, function, index) if index >= 0 else op.NONE for index in params
                )  # an event with a name of its own is the same one wherever the call stands
                if event_given is not None and stream_given is not None:
                    found = self._loop_of(caller, call, event_given, stream._replace(register=stream_given), depth + 1)
                    if found[1] is not None:
                        return found
        return None, None

    def _varies(self, function: Function, loop: Loop, register: int) -> bool:
        """Whether a register is computed anew in a loop from what is another one in each round."""
        seen: set[int] = set()
        waiting = [register]
        while waiting:
            each = waiting.pop()
            one = function.definitions[each] if each >= 0 else None
            if one is None or each in seen:
                continue
            seen.add(each)
            if function.homes[one][0] in loop.body:
                sources = self._sources(function, loop, one)
                if sources is None:
                    return True
                waiting += sources
        return False

    def _sources(self, function: Function, loop: Loop, one: Instruction) -> Iterable[int] | None:
        """The registers that an instruction computes from in a loop; None where each round makes another one."""
        if one[0] == op.NEXT or (one[0] == op.PHI and function.homes[one][0] == loop.header):
            return () if self._is_unchanged(function, one) else None
        if one[0] == op.LOAD:
            stores = (each for each in function.by_opcode[op.STORE] if each[2] == one[3])
            return [each[3] for each in stores if function.homes[each][0] in loop.body]
        if one[0] == op.REBIND:
            return (one[5],)
        if one[0] not in (op.CALL, op.INVOKE):
            return op.reads(one)
        if self._makes(function, one):
            return None
        # a number chooses what an unknown function gives
        numbers = [given for given in op.reads(one) if _is_number(function, given)] if self._is_unknown_call(function, one) else []
        return None if any(self._is_of_round(function, loop, number) for number in numbers) else numbers

    def _is_unknown_call(self, function: Function, one: Instruction) -> bool:
        return function.is_cpp and one[0] == op.CALL and not any(edge.is_followed for edge in self.transfer.edges(function, one))

    def _is_of_round(self, function: Function, loop: Loop, number: int) -> bool:
        """C++: whether a number is taken from what each round of a loop moves on: ``while (next(list)) … = number(list)``."""
        one = function.definitions[number]
        while one is not None and one[0] == op.CAST:
            one = function.definitions[one[4]]
        end = function.code.blocks[loop.header][-1]
        asked = function.definitions[unnegated(function, end[2])[0]] if end[0] == op.BRANCH else None
        if asked is None or one is None or not all(self._is_unknown_call(function, each) for each in (asked, one)):
            return False
        moved = {self._origin(function, each) for each in asked[5:] if function.constant(each) is None}
        return any(self._origin(function, each) in moved for each in one[5:])

    def _is_unchanged(self, function: Function, one: Instruction) -> bool:
        """C++: a variable that a call may have changed by reference, and nothing else: a handle that is passed by value."""
        if one[0] != op.PHI:
            return False
        origins = {self._origin(function, register) for register in one[3:]} - {one[2]}
        return len(origins) == 1

    def _origin(self, function: Function, register: int) -> int:
        one = function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.REBIND, op.COPY):
            register = one[5] if one[0] == op.REBIND else one[3]
            one = function.definitions[register] if register >= 0 else None
        return register

    def _makes(self, function: Function, one: Instruction) -> bool:
        """Whether a call makes a stream each time."""
        site = Site(function, one)
        return site in sites_of(list(self.transfer.values(function, one[2])))[0]

    # --- what actions mean

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if isinstance(action, Recorded):
            if self.is_event(state, EVENT, action.event):
                return self._recorded(state, one, action)
        elif isinstance(action, (Waited, Synchronized)):
            return self._waited(state, one, action)
        elif isinstance(action, Lost):
            kinds = (EVENT, AGAIN)
            if self.hands_on(state, one) or any(self.is_event(state, kind, each) for kind in kinds for each in action.registers):
                self._keep(state)
                return ORDERED
        return None

    def _recorded(self, state: State, one: Instruction, action: Recorded) -> str | frozenset[Tracked]:
        stream = self._stream_at(state.frame.function, one, action.stream)
        if self._is_behind(state, stream):
            return ORDERED
        return frozenset(
            Tracked(AGAIN, held.place, announced=Site(state.frame.function, one)) for held in state.tracked if held.kind == EVENT
        )

    def _is_behind(self, state: State, stream: Stream) -> bool:
        """Whether a stream is the one of the record, has waited for it, or may be either."""
        mine = self._stream
        if stream.kind != NAMED or mine.kind != NAMED:
            return stream.kind == mine.kind or "unknown" in (stream.kind, mine.kind) or CURRENT in (stream.kind, mine.kind)
        function = state.frame.function
        places = {*self.places.names(function, stream.register), self.events.stream_place(function, stream.register)}
        if is_at(state.tracked, places, STREAM):
            return True
        if function is self._site.function and self._are_parts(function, mine.register, stream.register):
            return False
        first, is_first = sites_of(list(self.transfer.values(self._site.function, mine.register)))
        second, is_second = sites_of(list(self.transfer.values(function, stream.register)))
        return bool(first & second) and not (len(first) > 1 and is_first and is_second)

    def _are_parts(self, function: Function, *registers: int) -> bool:
        """Python: whether registers hold different parts of a list to which each round of a loop has added a stream of its own."""
        parts = [function.definitions[each] for each in registers]
        taken = {(one[3], one[4]) for one in parts if one is not None and one[0] == op.UNPACK}
        whole = {register for register, _ in taken}
        if len(taken) < len(registers) or len(whole) > 1 or function.is_cpp:
            return False
        appends = [use for register in whole for use in function.uses[register] if use[0] == op.APPEND]
        added = [(function.definitions[use[3]], function.blocks[use]) for use in appends]
        return bool(added) and all(one and function.blocks[one] == block and self._makes(function, one) for one, block in added)

    def _waited(self, state: State, one: Instruction, action: Waited | Synchronized) -> Answer:
        function, of = state.frame.function, action.of
        if isinstance(of, Stream):
            of = of.register
        if of is None:
            return ORDERED  # the host waits for the device
        if self.is_event(state, AGAIN, of):
            again = next(held.announced for held in state.tracked if held.kind == AGAIN)
            self._found = LostRecord(self._site, self._name, again, Site(function, one))
            return ORDERED
        if self.is_event(state, EVENT, of):
            if self._is_within(state):
                self._kept = True
            elif self._loop is not None and self._wait is None:
                self._wait = Site(function, one)
            return ORDERED
        if self.is_event(state, STREAM, of):
            if isinstance(action, Synchronized):
                self._keep(state)
                return ORDERED
            if action.stream.register >= 0:
                return state.tracked | {Tracked(STREAM, self.events.stream_place(function, action.stream.register))}
        return None

    def _keep(self, state: State) -> None:
        if self._is_within(state):
            self._kept = True

    def _is_within(self, state: State) -> bool:
        """Whether a path is in a round of the loop, or in what that calls."""
        frame, block = state.frame, state.block
        while (caller := frame.caller) is not None and frame.call is not None:
            block = caller.function.homes[frame.call][0]
            frame = caller
        return self._loop is not None and frame.function is self._home and block in self._loop.body


def _is_number(function: Function, register: int) -> bool:
    """C++: whether a register holds an integer by its declaration."""
    one = function.definitions[register] if register >= 0 else None
    kind = function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CAST else None
    return isinstance(kind, tuple) and kind[0] in _INTEGERS
