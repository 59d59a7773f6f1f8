"""SL018: waits for an event that nothing has recorded before them on any path from where the event is made.

An event is followed from where it is made. A record, or an unknown call that is given it, makes it recorded. A wait that is reached only
before that orders nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import EVENT, Tracked, owned
from streamlint.ordering.places.places import ASIDE, Place, register_place
from streamlint.ordering.streams.absent_records import AbsentRecords
from streamlint.ordering.walk.event_walk import EventWalk
from streamlint.transfer.actions import Action, Asked, Lost, Recorded, Stream, Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited

RECORDED = "recorded"
WAITED = "waited"
"""A mark of a path: a wait that it came by, before any record."""
_QUEUING = frozenset({"launch", "copy", "memset"})
_DEPTH = 3
"""Calls that are followed to work behind a record."""


class EmptyWait(NamedTuple):
    """A wait for an event that represents no work yet. ``calls`` lead to it from the function that ``made_calls`` lead to the event from.

    ``record`` is the first one behind it, None where nothing records; ``also`` are other waits for the event. ``is_query``: the host only
    asks whether the event is done. ``is_of_object``: a method makes a stream of its object wait for an event of its object.
    """

    made: Site
    wait: Site
    name: str
    record: Site | None
    calls: tuple[Site, ...]
    made_calls: tuple[Site, ...]
    record_calls: tuple[Site, ...] = ()
    also: tuple[Site, ...] = ()
    is_query: bool = False
    is_of_object: bool = False


class _Reached(NamedTuple):
    """A wait as a path came by it: with its calls, and the stream that waits as the outermost function names it."""

    site: Site
    calls: tuple[Site, ...]
    above: tuple[Instruction, ...]
    stream: Place | None
    name: str
    is_query: bool
    is_of_object: bool


class EmptyWaits(EventWalk):
    """Finds the waits of a program for events that are not recorded yet."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._absent = AbsentRecords(self.events)
        self._site: Site
        self._reached: list[_Reached] = []
        self._roots: list[Frame] = []
        self._behind: dict[int, tuple[Site, tuple[Site, ...], Place | None]] = {}
        self._late: set[tuple[Site, tuple[Site, ...]]] = set()

    def find(self) -> Iterator[EmptyWait]:
        """The empty waits of the program."""
        for function, one, place in self.events.made():
            if self.events.is_kept_by_static(function, place) and self.events.is_recorded(Site(function, one)):
                continue
            self._site, self._reached, self._roots, self._behind, self._late = Site(function, one), [], [], {}, set()
            cut = self.cut
            self.run(self.start(function, one, frozenset({Tracked(EVENT, place)}), ()))
            if self.cut == cut:
                found = list(self._reported())
                yield from found or self._of_members(function, one, place)
        for function, one in self.events.made_for_fields():
            yield from self._of_members(function, one, register_place(one[2]))

    # --- what actions mean

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        function = state.frame.function
        if isinstance(action, Recorded):
            if self.is_event(state, EVENT, action.event):
                return self._recorded(state, one, action)
        elif isinstance(action, (Waited, Synchronized, Asked)) and isinstance(action.of, int):
            site, calls = Site(function, one), state.frame.calls
            if self.is_event(state, RECORDED, action.of):
                self._late.add((site, self._since_made(state.frame)))
            elif self.is_event(state, EVENT, action.of):
                waiting = self._stream(state, one, action.stream) if isinstance(action, Waited) else None
                stream, name = self._resolved(state.frame, waiting), getattr(action, "name", "query")
                of_object = all(_is_of_object(function, each) for each in (waiting, self.events.stream_place(function, action.of)))
                reached = _Reached(site, calls, state.path, stream, name, isinstance(action, Asked), of_object)
                if reached not in self._reached:
                    self._reached.append(reached)
                    self._roots.append(state.frame.root)
                return state.tracked | {Tracked(WAITED, Place((ASIDE, -1, self._reached.index(reached))))}
        elif isinstance(action, Lost) and owned(function, one) is None and self._is_lost_to(state, one, action):
            return _with(state.tracked, EVENT, RECORDED)
        return None

    def _is_lost_to(self, state: State, one: Instruction, action: Lost) -> bool:
        """Whether unknown code is given what leads to the event."""
        return self.hands_on(state, one) or any(self.leads(state, EVENT, each) for each in action.registers)

    def _since_made(self, frame: Frame) -> tuple[Site, ...]:
        """The calls that lead to where a path is; of a generator that made the event and went on, those behind it."""
        maker, calls = self._site.function, frame.calls
        if not maker.is_generator or frame.function is maker:
            return () if maker.is_generator else calls
        return calls[next((number for number, call in enumerate(calls) if call.function is maker), 0) :]

    def _recorded(self, state: State, one: Instruction, action: Recorded) -> frozenset[Tracked]:
        stream = self._resolved(state.frame, self._stream(state, one, action.stream))
        for held in state.tracked:
            if held.kind == WAITED:
                number = int(str(held.place.root[2]))
                self._behind.setdefault(number, (Site(state.frame.function, one), state.frame.calls, stream))
        return frozenset(held for held in _with(state.tracked, EVENT, RECORDED) if held.kind != WAITED)

    def _stream(self, state: State, one: Instruction, stream: Stream) -> Place | None:
        function = state.frame.function
        if stream.register < 0:
            current = self.currents.at(function, one)
            return self.events.stream_place(function, current.register) if current is not None and current.register >= 0 else None
        return self.events.stream_place(function, stream.register)

    def _resolved(self, frame: Frame, place: Place | None) -> Place | None:
        """A place by the name that the outermost function of a path has for it."""
        while place is not None and frame.caller is not None and frame.call is not None:
            if place.root[0] != "parameter":
                return None
            sources = self.sources(frame.caller.function, frame.call, frame.function, int(str(place.root[1])))
            place = sources[-1].behind(*place.path) if sources else None
            frame = frame.caller
            if place is not None and place.root[0] == "register" and not place.path:
                place = self.events.stream_place(frame.function, int(str(place.root[1])))
        return place

    def _up(self, state: State, register: int) -> Iterator[State]:
        """The callers, unless the event outlives the call that made it: it is made on a condition, or the function's results are kept."""
        function, one = state.frame.function, state.path[-1] if state.path else self._site.instruction
        if not state.path and function is not self._site.function:
            return
        if function.decorations and not (function.is_property or function.is_class_method or function.is_static):
            return
        if self._is_unconditional(function, one):
            waited = frozenset(held for held in state.tracked if held.kind == WAITED)
            yield from (up._replace(tracked=up.tracked | waited) for up in super()._up(state, register))

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        return False  # a path ends where nothing but waits is left

    def passed(self, state: State, one: Instruction) -> bool:
        return all(held.kind == WAITED for held in state.tracked)

    def _is_unconditional(self, function: Function, one: Instruction) -> bool:
        graph = function.control
        headers = {loop.header for loop in graph.loops}
        return all(block in headers for block, _ in graph.controlled_by[function.homes[one][0]])

    # --- what is reported

    def _reported(self) -> Iterator[EmptyWait]:
        for number, reached in enumerate(self._reached):
            if (reached.site, reached.calls) in self._late:
                continue
            made_calls = tuple(Site(self._holder(reached, depth), call) for depth, call in enumerate(reversed(reached.above)))
            record = self._behind.get(number)
            if self._is_reported(number, reached, record):
                site, calls = (record[0], record[1]) if record is not None else (None, ())
                empty = EmptyWait(self._site, reached.site, reached.name, site, reached.calls, made_calls, calls)
                yield empty._replace(is_query=reached.is_query, is_of_object=reached.is_of_object)

    def _holder(self, reached: _Reached, depth: int) -> Function:
        """The function in which a call stands that led from the event's maker upwards."""
        holder = self._roots[self._reached.index(reached)].function
        for call in tuple(reversed(reached.above))[:depth]:
            holder = next((edge.callee for edge in self.transfer.edges(holder, call) if edge.is_followed), holder)
        return holder

    def _is_reported(self, number: int, reached: _Reached, record: tuple[Site, tuple[Site, ...], Place | None] | None) -> bool:
        root = self._roots[number].function
        if self._is_made_late(root, reached):
            return False
        if reached.above and self.events.is_static(root, reached.above[-1]):
            return False
        is_of_object = self._site.function.code.name == "__init__"
        if is_of_object and not reached.above and reached.calls:
            return False  # a method that the constructor is the first to call: behind it, there is a record
        if record is None:
            is_kept = is_of_object and (reached.calls or not reached.above)
            return not is_kept or not self.events.is_recorded(self._site)
        if not is_of_object or not reached.calls:
            return True
        stream = reached.stream
        return stream is not None and (stream == record[2] or self._works_later(self._roots[number], record, stream))

    def _is_made_late(self, root: Function, reached: _Reached) -> bool:
        """Whether a wait also finds the event that an earlier call has made, stored, and recorded: only the first wait is empty."""
        wait = reached.calls[0].instruction if reached.calls else reached.site.instruction
        creation = self._site.instruction
        if reached.above or root.is_cpp or root.runs_before(creation, wait):
            return False
        stored = (place for one in root.code.instructions() for place, held in self.places.assigned(root, one) if held == creation[2])
        return any(place.path for place in stored) and self.events.is_recorded(self._site)

    def _works_later(self, root: Frame, record: tuple[Site, tuple[Site, ...], Place | None], stream: Place) -> bool:
        """Whether the stream that waits gets work behind the record: work that the wait should have held back."""
        site, function = record[1][0] if record[1] else record[0], root.function
        block, index = function.homes[site.instruction]
        behind = (one for number in function.control.reach(function.control.successors[block]) for one in function.code.blocks[number])
        return any(self._works_on(root, one, stream) for one in (*function.code.blocks[block][index + 1 :], *behind))

    def _works_on(self, frame: Frame, one: Instruction, stream: Place) -> bool:
        function = frame.function
        if one[0] == op.LAUNCH:
            return one[5] > 3 and self._is_stream(frame, one[9], stream)
        if one[0] not in CALLING:
            return False
        for call in self.transfer.modelled(function, one):
            if call.row.effect in _QUEUING and self._is_stream(frame, call.stream().register, stream):
                return True
        edges = [edge for edge in self.transfer.edges(function, one) if edge.is_followed]
        if edges and any(self._is_stream(frame, register, stream) for register in one[6:]):
            return True
        return frame.depth < _DEPTH and any(
            self._works_on(Frame(edge.callee, frame, one, frame.depth + 1), each, stream)
            for edge in edges
            if not frame.runs(edge.callee)
            for each in edge.callee.code.instructions()
        )

    def _is_stream(self, frame: Frame, register: int, stream: Place) -> bool:
        """Whether a register is the stream that the outermost function of a path names by a place."""
        return register >= 0 and self._resolved(frame, self.events.stream_place(frame.function, register)) == stream

    def _of_members(self, function: Function, one: Instruction, place: Place) -> Iterator[EmptyWait]:
        """Waits for an event that no code records or gives away; of C++, for a private one of a class."""
        if not function.is_cpp:
            waits = self._absent.find(function, one)
        elif place.root != ("parameter", 0) or len(place.path) != 1 or function.owner is None:
            return
        else:
            waits = self.events.waits_of_member(function.owner, str(place.path[0]))
        if waits:
            yield EmptyWait(Site(function, one), waits[0][0], waits[0][1], None, (), (), also=tuple(site for site, _ in waits[1:]))


def _is_of_object(function: Function, place: Place | None) -> bool:
    """Whether a place is a member of the object that a method is called on."""
    return function.owner is not None and place is not None and place.root == ("parameter", 0) and bool(place.path)


def _with(tracked: frozenset[Tracked], kind: str, other: str) -> frozenset[Tracked]:
    return frozenset(held._replace(kind=other) if held.kind == kind else held for held in tracked)
