"""SL006: two pieces of device work on two streams use one memory, one of them writes it, and nothing orders them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Memory, Site, Unknown
from streamlint.facts.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.ordering import rotation
from streamlint.ordering.apart import Apart
from streamlint.ordering.beginnings import Beginnings
from streamlint.ordering.conditions import Frame
from streamlint.ordering.flow import BUFFER, DONE, EVENT, STATUS, STREAM, Tracked
from streamlint.ordering.given_work import GivenWork
from streamlint.ordering.gradients import GRADIENTS, Training
from streamlint.ordering.handed_out import HandedOut
from streamlint.ordering.lanes import AMBIENT, WAITER, Lane
from streamlint.ordering.meetings import Meeting, Meetings
from streamlint.ordering.new_blocks import NewBlocks
from streamlint.ordering.not_inherited import is_not_inherited, starts_under_stream
from streamlint.ordering.on_device import ARRAYS, OnDevice, may_be_there
from streamlint.ordering.open_methods import open_methods
from streamlint.ordering.out_of_view import OutOfView
from streamlint.ordering.places import ANY, POINTEE, Element, Key, Place, is_around, register_place, rest_behind
from streamlint.ordering.regions import PLACED, are_apart
from streamlint.ordering.repeated import Repeated
from streamlint.ordering.same_streams import SameStreams
from streamlint.ordering.settled import Settled
from streamlint.ordering.states import MOST_GUESSES, State
from streamlint.ordering.turns import asked_for_none
from streamlint.ordering.walk import ORDERED
from streamlint.ordering.walk_calls import PUTTING
from streamlint.ordering.weights import ModuleMemory
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Action, Asked, Copied, Lost, Read, Recorded, Stream, Synchronized, Viewed
from streamlint.transfer.transfer import CALLING, Order, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import alike

_RANGE = "range"
_ON_HOST = frozenset({"numpy", "python", "host-cpp"})
_ADDRESSES = frozenset({op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ATTR})
_RAW = "cupy.cuda.runtime."
_GRADIENT = "grad"
"""What a tensor of callers has that a backward pass of theirs writes."""
GIVEN, RECYCLED, LEFT = "given", "recycled", "left"
"""Work out of view: that of callers on what they give, that of the users before of a block from a pool, and that of callers on what is
left to them."""


class Race(NamedTuple):
    """Two pieces of work that nothing orders, their streams, and the calls that lead to each from where their paths meet."""

    first: Site
    second: Site
    work: Worked
    use: Worked
    lane: Lane
    other: Lane
    is_write: bool
    first_calls: tuple[Site, ...]
    second_calls: tuple[Site, ...]
    doubts: int
    out_of_view: str = ""  # whose work is not in view: that of the first is GIVEN or RECYCLED, that of the second LEFT
    others: tuple[Site, ...] = ()  # other calls of the second's function, from which it meets work that nothing orders as well


class Races(Repeated):
    """Finds the races of a program."""

    meets_memory = True

    ordering: tuple[type[object], ...] = (Synchronized, Waited, Recorded)
    hooked = frozenset({op.SET_ATTR})
    forgets = True
    reads_too = True
    """Whether memory that is only read is followed to writes of it."""
    begins: type[Beginnings] = Beginnings
    """What finds the work that is followed."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.beginnings = transfer.one_of(self.begins, transfer, self.places, self.currents)
        self.memory = OnDevice(transfer)
        self.same = SameStreams(transfer)
        self.settled = Settled(transfer, self.places)
        self.modules = ModuleMemory(transfer, self.places)
        self.given = GivenWork(transfer, self.places, self.lanes)
        self.blocks = NewBlocks(transfer, self.lanes)
        self.unseen = OutOfView(transfer, self.places)
        self.training = Training(transfer, self.places, self.modules)
        self.apart = Apart(transfer, self.places, self.lanes, self.memory)
        self.hooks = HandedOut(transfer, self.apart.map)
        self.is_wide = False  # whether it counts, too, what no caller in view connects
        self._is_shown = True
        self._meetings = Meetings(self.callers, self._repeats)
        self._meeting: Meeting | None = None
        self._found: dict[Site, Race] = {}
        self._ways: dict[Site, dict[tuple[Site, ...], None]] = {}  # by second piece of work: the calls that lead to it
        self._hands_over: dict[Unit, bool] = {}
        self._actions: dict[tuple[Function, Instruction], tuple[Action, ...]] = {}
        self._waits_in: dict[Function, bool] = {}
        self._recorded_events: dict[tuple[Function, int], bool] = {}
        self._chosen: dict[tuple[Instruction, ...], Lane] = {}  # by the calls that lead to a caller: what is current there, or handed down
        self._left: dict[
            tuple[Function, tuple[Instruction, ...]], tuple[Function, ...]
        ] = {}  # by the same calls: functions up to the caller
        self._moves_modules = False
        self._out_of_view = ""
        self._site: Site
        self._is_evident: bool
        self._fills = False  # whether the work is a call out of view that fills new memory

    def find(self) -> Iterator[Race]:
        """The races of the program, one for each second piece of work."""
        asked = self.transfer.asked
        found = [each for each in self.beginnings.found if asked is None or each[0][0].unit in asked]
        self._moves_modules = any(work.moves for (_, _, work), _ in found)
        for begun, partners in found:
            if self.comes_to(begun[0], None if self._is_handed_over(begun[0]) else partners):
                self._follow_work(*begun)
        self._follow_given([begun for begun, _ in found])
        self._follow_apart([begun for begun, _ in found] if self.is_wide else [])
        for second, race in self._found.items():
            others = dict.fromkeys(calls[-1] for calls in self._ways[second] if calls and calls[-1] not in race.second_calls)
            yield race._replace(others=tuple(others))

    def _follow_given(self, found: list[tuple[Function, Instruction, Worked]]) -> None:
        """What callers out of view give may be under way on their stream: it meets what works on a stream that is the program's own."""
        self._lane, self._touched, self._loop = Lane(CURRENT, (), frozenset(), True, "torch"), {}, None
        self._writes, self._is_evident, self._meeting, self._out_of_view, self._chosen = True, False, None, GIVEN, {}
        for function, parameters in self.given.find(found).items():
            first = next(function.code.instructions())
            self._site, self._work = Site(function, first), Worked(Stream(CURRENT, library="torch"), (), (), "call", "torch")
            registers = [one[2] for one in function.by_opcode[op.PARAM] if one[3] in parameters]
            tracked = {held for register in registers for held in self._names(function, register)}
            tracked |= {held._replace(place=held.place.behind(_GRADIENT)) for held in tracked}
            if tracked:
                self.run(self.start(function, first, frozenset(tracked) | self._lane.tracked(STREAM), ()), self._judge)
        self._out_of_view = ""

    def _follow_apart(self, found: list[tuple[Function, Instruction, Worked]]) -> None:
        """What a function writes on the current stream may be under way where one begins whose stream waits for nothing."""
        self._lane, self._touched, self._loop = Lane(CURRENT, (), frozenset(), True, "torch"), {}, None
        self._writes, self._is_evident, self._meeting, self._chosen, self._is_shown = True, True, None, {}, False
        for (writer, write, work), function, behind, place in self.apart.find(found):
            self._site, self._work = Site(writer, write), work
            self.run(self.start(function, behind, frozenset({Tracked(BUFFER, place)}) | self._lane.tracked(STREAM), ()), self._judge)
        self._is_shown = True

    def _follow_block(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> None:
        """New memory of a pool, in which other work of its stream may still be: it meets work on a stream of the program's own."""
        is_there = self.memory.is_on_device(function, work.made, work, lane.kind == NAMED)
        if not is_there or function.is_cpp or not self.blocks.is_busy(function, one, work):
            return
        self._site, self._work, self._lane, self._touched, self._loop, self._chosen = Site(function, one), work, lane, {}, None, {}
        self._writes, self._is_evident, self._out_of_view = True, True, RECYCLED
        tracked = frozenset(held for held in self._names(function, work.made) if held.place.root[0] == "register")
        self.run(self.start(function, one, tracked | lane.tracked(STREAM), frozenset()), self._judge)
        self._out_of_view = ""

    def _follow_unseen(self, function: Function, one: Instruction, work: Worked, lane: Lane) -> None:
        """A call out of view on a stream of the program's own: what it gives and fills is written there. It waits for what it can reach."""
        if work.made < 0 or lane.kind != NAMED or not any(self.memory.may_be_memory(function, each) for each in work.reads):
            return
        filled = [each for each in self.unseen.filled(function, one, work) if self.memory.is_on_device(function, each, work, True)]
        self._site, self._lane, self._touched, self._loop, self._chosen = Site(function, one), lane, {}, None, {}
        self._work, self._writes = work._replace(library=lane.library), True  # what other libraries do with it is the affair of SL027
        for registers, self._is_evident in (((work.made,), False), (filled, True)):
            names = frozenset(held for register in registers for held in self._names(function, register))
            if not self._is_evident:  # a tuple of several, and of such
                names |= {held._replace(place=held.place.behind(*keys)) for held in names for keys in ((ANY,), (ANY, ANY))}
            state = self.start(function, one, names | lane.tracked(STREAM), frozenset())
            if not names or self._may_have_waited(state, one, lane):
                continue
            self._fills = self._is_evident
            self.run(state, self._judge)
            self._fills = False

    def _may_have_waited(self, state: State, one: Instruction, lane: Lane) -> bool:
        """Whether a call out of view can reach its stream, and nothing behind it says that it has not waited for that."""
        is_given = any(self._leads_to_order(state, register, one) for register in dict.fromkeys((one[3], *self._work.reads)))
        return is_given and not self.unseen.is_awaited_behind(state.frame.function, one, lane)

    def comes_to(self, function: Function, partners: frozenset[Function] | None) -> bool:
        """Whether a path from a function may come to work of others, to which it is held from here on."""
        self._meeting = self._meetings.of(partners) if partners is not None else None
        return self._meeting is None or self._meeting.is_ahead(function)

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        if self.dispatch.is_of_anyone(caller, call):
            return False
        if self._lane.kind == CURRENT and starts_under_stream(self.currents, caller, call):
            return False
        if self._meeting is None or self._meeting.is_behind(caller, call):
            return True
        return self._writes and self.hooks.runs_again(caller, self._mine(state)) and self._meeting.is_ahead(caller)

    def _repeats(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction stands in a loop of its function."""
        return function.control.innermost[function.homes[one][0]] != NOBODY

    def _follow_work(self, function: Function, one: Instruction, work: Worked) -> None:
        frame = Frame(function, None, None, 0)
        lane = self.lanes.of(frame, one, self._stream(function, work))
        if lane.kind == UNKNOWN or work.library in _ON_HOST or self._has_waited(function, one, work):
            return
        if work.assumed:
            self._follow_unseen(function, one, work, lane)
            return
        if not work.fills:
            self._follow_block(function, one, work, lane)
            return
        if self.memory.may_be_view(function, one, work):
            return
        in_scope = lane.kind == NAMED
        written = {register for register in (*work.writes, work.made) if self.memory.is_on_device(function, register, work, in_scope)}
        read = {register for register in work.reads if self.memory.is_on_device(function, register, work, in_scope)} - written
        if work.made >= 0 and not written and read:
            written = {work.made}
        self._is_evident = bool(written or read or work.moves or work.leaves or work.steps)
        if (
            not self._is_evident and not in_scope and (not function.is_cpp or work.library == "torch")
        ):  # what is done with it on another stream may tell
            used = [each for each in (*work.reads, work.made) if each >= 0]
            is_of_host = any(self.memory.is_on_host(function, each) or self.memory.is_made_on_host(function, each) for each in used)
            written = {each for each in (*work.writes, work.made) if self.memory.may_be_memory(function, each) and not is_of_host}
        self._site, self._work, self._lane, self._touched, self._chosen = Site(function, one), work, lane, {}, {}
        if op.DEFINES[one[0]] and any(isinstance(each, Viewed) and each.register in written for each in self.transfer.of(function, one)):
            written.add(one[2])  # what works in place gives back what it has written
        written_there = (
            *self.modules.moved(function, work.moves),
            *self.training.left(function, work.leaves),
            *self.training.updated(function, work.steps),
        )
        weights = written_there, self.modules.run(function, work.runs if self._moves_modules else ())
        for registers, members, writes in ((written, weights[0], True), (read, weights[1], False)):
            tracked = {self._in_region(one, register, held) for register in registers for held in self._names(function, register)}
            tracked |= set(members)
            if not tracked or not (writes or self.reads_too):
                continue
            self._writes = writes
            self._loop = self._turning(function, one, work) if writes and (work.writes or work.made >= 0) else None
            tracked |= lane.tracked(STREAM) | self._recorded(function, one)
            self.run(self.start(function, one, frozenset(tracked), frozenset()), self._judge)

    def _recorded(self, function: Function, one: Instruction) -> frozenset[Tracked]:
        """The events that are behind work when its call is over: the handle of a collective."""
        return frozenset(
            Tracked(EVENT, place.behind(ANY) if action.inside else place)
            for action in self.transfer.of(function, one)
            if isinstance(action, Recorded)
            for place in self.places.names(function, action.event)
        )

    def _has_waited(self, function: Function, one: Instruction, work: Worked) -> bool:
        """Whether the host has waited for the work when the instruction is over."""
        copies = (each for each in self.transfer.of(function, one) if isinstance(each, Copied))
        return work.waits or any(each.asynchronous is False and each.direction in ("h2d", "d2h") for each in copies)

    def _names(self, function: Function, register: int) -> Iterator[Tracked]:
        """The memory in a register, by all the names that its function has for it."""
        for each in self._shared(function, register):
            for place in self._names_of(function, each):
                yield Tracked(BUFFER, place)

    def _in_region(self, one: Instruction, register: int, held: Tracked) -> Tracked:
        """Memory of which the work touches a part: that is known by its number."""
        region = self.regions.of(self._site.function, one).get(register)
        if region is None:
            return held
        self._touched[str(register)] = region
        return held._replace(type=str(register))

    def names_of(self, function: Function, register: int) -> tuple[Place, ...]:
        each = self._shared(function, register) if register >= 0 else ()
        return tuple(place for shared in each for place in self._names_of(function, shared))

    def _is_apart(self, state: State, one: Instruction, register: int, place: Place, held: Tracked) -> bool:
        """Whether what work touches of a register shares nothing with the part that is tracked."""
        region = self._touched.get(held.type)
        if region is None:
            return False
        beyond = rest_behind(held.place, place)
        if region.kind == PLACED and state.frame.function is region.function and any(map(_is_range, beyond or ())):
            return True
        return are_apart(region, self.regions.of(state.frame.function, one).get(register))

    def _names_of(self, function: Function, register: int) -> Iterator[Place]:
        """The names of a register's value. C++: a pointer with an offset is a range of what the pointer leads to."""
        yield from self.places.names(function, register)
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] in _ADDRESSES and any(use[0] == op.BUILD for use in function.uses[register]):
            yield self.places.of(function, register).behind(POINTEE)  # an array of the addresses of a kernel's arguments
        if one is not None and function.is_cpp and one[0] == op.BINARY and function.text(one[3]) in ("+", "-"):
            for base, offset in (one[4:6], one[5:3:-1]):
                for place in (name for each in self._shared(function, base) for name in self.places.names(function, each)):
                    yield place.behind(Element((_RANGE, alike(function, offset))))

    def _shared(self, function: Function, register: int) -> list[int]:
        """A register, and those of which it is a view of the whole."""
        found = [register]
        for each in found:
            one = function.definitions[each] if each >= 0 else None
            if one is None or one[0] in (op.ITEM, op.DEREF, op.NEXT) or (function.is_cpp and one[0] == op.BINARY):
                continue
            if self._is_fetched(function, one):
                continue
            for action in self.transfer.of(function, one):
                if isinstance(action, Viewed) and action.register not in found:
                    found.append(action.register)
        return found

    # --- what is on a device

    # --- what actions mean

    def actions(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """Waits of the host come last: what waits has worked before."""
        known = self._actions.get((function, one))
        if known is None:
            known = self._actions[function, one] = (*self.transfer.works(function, one), *super().actions(function, one))
        return known

    def over(self, state: State) -> bool:
        """Nothing can be met without memory."""
        return not any(held.kind == BUFFER for held in state.tracked)

    def arrive(self, state: State, one: Instruction) -> str | frozenset[Tracked] | None:
        """Parameters that are given memory make it that of their module; parts of modules have weights of these."""
        if one[0] == op.SET_ATTR:
            return self.modules.given(state.frame.function, one, state.tracked)
        more = self.modules.taken(state.frame.function, one, state.tracked)
        return state.tracked | more if more else None

    def _judge(self, state: State, one: Instruction, action: Action) -> str | frozenset[Tracked] | None:
        tracked = state.tracked
        if isinstance(action, Worked):
            return self._worked(state, one, action)
        if self.orders(state, one, action):
            return ORDERED
        if isinstance(action, Recorded):
            lane = self.lanes.of(state.frame, one, action.stream)
            if self.lanes.is_same(state.tracked, lane) or self.same.may_be_given_twice(lane, self._lane):
                return tracked | self._recorded(state.frame.function, one)
        elif isinstance(action, Waited) and action.of != op.NONE:
            lane = self.lanes.of(state.frame, one, action.stream)
            if self._is_behind(state, one, action):
                return ORDERED if lane.kind == UNKNOWN else tracked | lane.tracked(WAITER) | self._each(state.frame.function, action.stream)
        elif isinstance(action, Viewed):
            is_other = self._is_other_part(state, one) or self._is_fetched(state.frame.function, one)
            if op.DEFINES[one[0]] and self._holds(state, action.register) and not is_other:
                return tracked | {Tracked(BUFFER, register_place(one[2]))}
        elif isinstance(action, Asked) and op.DEFINES[one[0]]:
            if self._has(state, EVENT, action.of) or self._has(state, STREAM, action.of):
                return tracked | {Tracked(STATUS if action.is_status else DONE, register_place(one[2]))}
        elif isinstance(action, Lost) and any(self._leads_to_order(state, register, one) for register in action.registers):
            is_module = any(work.runs and not work.assumed for work in self.transfer.works(state.frame.function, one))
            return None if is_module else ORDERED
        return None

    def _is_handed_over(self, function: Function) -> bool:
        """Whether a thread of a file puts into a queue what may be handed out to callers out of view."""
        known = self._hands_over.get(function.unit)
        if known is None:
            putting = (each for each in function.unit.functions if not PUTTING.isdisjoint(each.called_names))
            known = self._hands_over[function.unit] = not function.is_cpp and any(map(self.is_thread, putting))
        return known

    def is_beside(self, state: State) -> bool:
        """Whether a path has gone to another thread, with what that has taken from a queue."""
        return not state.path and state.frame.root.function is not self._site.function

    def left(self, state: State, register: int) -> None:
        """What a thread has written on its stream is handed out to callers of whoever took it: without an event they cannot wait for it."""
        function, lane = state.frame.function, self._mine(state)
        if not self.is_beside(state) or self._out_of_view or not self._writes or lane.kind != NAMED or state.doubts > MOST_GUESSES:
            return
        current = Lane(CURRENT, (), frozenset(), True, "torch")
        names = self.places.names(function, register) if register >= 0 and not self.lanes.is_same(state.tracked, current) else ()
        given = {each.kind for each in state.tracked for name in names if rest_behind(name, each.place) is not None}
        if BUFFER in given and given.isdisjoint((EVENT, STREAM)):
            self._out_of_view = LEFT
            use = Worked(Stream(CURRENT, library="torch"), (), (), "return", "torch")
            self._tell(state, function.code.blocks[state.block][-1], use, current)
            self._out_of_view = ""

    def may_meet(self, tracked: frozenset[Tracked], callee: Function) -> bool:
        """A function that steps with an optimizer may read gradients for which it has no name."""
        return any(GRADIENTS in held.place.path for held in tracked) and self.training.steps_in(callee)

    def _worked(self, state: State, one: Instruction, work: Worked) -> str | None:
        function = state.frame.function
        runs = self.modules.is_run(function, work.runs, state.tracked, work.assumed) or self.training.reads(function, work, state.tracked)
        runs = runs or (not work.assumed and self.modules.is_parameter(function, (*work.reads, *work.writes), state.tracked))
        moves = self.modules.is_moved(function, work.moves, state.tracked)
        may_fill = (*work.writes, *(work.reads if work.assumed else ())) if self._fills else ()
        if any(self._touches(state, register, 1, by=one) for register in may_fill):
            return ORDERED
        if work.assumed and not runs and (one[0] == op.INVOKE or self._is_given(function, one)):
            return None  # what a method of an object out of view does is its own affair, and what a value from out of view does
        if work.assumed and not runs and any(self._leads_to_order(state, register, one) for register in work.reads):
            return ORDERED
        mine = self._mine(state)
        is_held = mine.kind == NAMED and mine.blocking is not False and work.library not in ("", "torch", *_ON_HOST)
        if is_held and (null := self.lanes.of(state.frame, one, work.stream)).kind == CURRENT and null.blocking:
            if self.transfer.passed is None:
                return ORDERED  # the null stream waits for blocking streams, and they for it
            self.transfer.passed.append(Order(self._site, Site(function, one), work, frozenset()))
        writes = [register for register in work.writes if self._touches(state, register, is_written=True, by=one)]
        depth = 1 if work.assumed or work.library in ("torch", "cupy") else 2 if work.library == "cuda_python" else 0
        reads = [register for register in work.reads if self._touches(state, register, depth, by=one)]
        if (not (writes or moves) and not ((reads or runs) and self._writes)) or self._is_foreign(state, one, work):
            return None
        if not (runs or moves) and all(self.memory.is_on_host(function, register) for register in (*writes, *reads)):
            return None
        lane = self.lanes.of(state.frame, one, self._stream(function, work))
        if self.is_on_other_way(state, one):
            return None
        if self.currents.is_guessed(function, one) != self.currents.is_guessed(self._site.function, self._site.instruction):
            return None
        is_here = function is self._site.function
        if self.lanes.is_same(state.tracked, lane) and not (is_here and self.same.is_of_another(function, state.tracked, lane, self._lane)):
            return ORDERED if moves or (writes and self._is_all(state, writes)) else None
        may_be_one = self.same.may_be_one(lane, self._mine(state), is_here)
        if state.doubts > MOST_GUESSES or may_be_one or self.same.may_wait(state.tracked, lane):
            return None
        if is_not_inherited(self.currents, state.frame, one, work.stream):
            return None
        used = (*writes, *reads)
        is_shown = self._is_evident or moves or (self._work.assumed and not work.assumed and work.library == "torch")
        if not is_shown and not any(self.memory.is_on_device(function, each, work, lane.kind == NAMED) for each in used):
            return None
        if self._out_of_view and not any(self.given.is_private(each, lane) for each in _functions(state.frame)):
            return ORDERED
        self._tell(state, one, work, lane)
        return ORDERED

    def _is_given(self, function: Function, one: Instruction) -> bool:
        """Whether callers out of view give what is called, and nobody wants its result: a writer, or a log."""
        values = list(self.transfer.values(function, one[3])) if one[0] == op.CALL and not function.uses.get(one[2]) else []
        return bool(values) and all(isinstance(value, Unknown) and value.reason == "caller" for value in values)

    def _stream(self, function: Function, work: Worked) -> Stream:
        """The stream of work; an operator's is the current one of the library whose arrays it gets."""
        is_current = work.stream.kind == CURRENT and work.stream.register < 0 and not work.library
        return work.stream._replace(library=self.memory.library(function, work)) if is_current else work.stream

    def _is_foreign(self, state: State, one: Instruction, work: Worked) -> bool:
        """Whether two libraries with arrays of their own work on the memory, or C or C++ on the null stream, or on an address."""
        if work.library == "cuda_python" and self._work.library in ARRAYS and self.lanes.of(state.frame, one, work.stream).kind == CURRENT:
            return True
        if not self._is_evident and (work.library == "cuda_python" or work.name.startswith(_RAW)):
            return True
        is_across = state.frame.function.is_cpp and not self._site.function.is_cpp and work.library not in ARRAYS
        if is_across and self._work.library in ARRAYS and self.lanes.of(state.frame, one, work.stream).kind == CURRENT:
            return True
        libraries = {work.library or self.memory.library(state.frame.function, work), self._work.library}
        return len(libraries & ARRAYS) > 1

    def _is_all(self, state: State, registers: list[int]) -> bool:
        """Whether all that is tracked is written anew."""
        return all(
            any(rest_behind(place, held.place) is not None for register in registers for place in self._all_names(state, register))
            for held in state.tracked
            if held.kind == BUFFER and held.place.root[0] != "aside"
        )

    def _all_names(self, state: State, register: int) -> list[Place]:
        function = state.frame.function
        return [place for each in self._shared(function, register) for place in self._names_of(function, each)]

    def _may_be_one(self, lane: Lane) -> bool:
        """Whether a stream may be that of the work, or is ordered with it."""
        return self.same.may_be_one(lane, self._lane, False)

    def _mine(self, state: State) -> Lane:
        """The stream of the work on a path: a caller may have chosen the one that is current there."""
        starts = (state.path[: number + 1] for number in range(len(state.path)))
        return next((self._chosen[start] for start in starts if start in self._chosen), self._lane)

    def _is_ordered(self, state: State, one: Instruction, stream: Stream) -> bool:
        lane = self.lanes.of(state.frame, one, stream)
        is_theirs = self._out_of_view == GIVEN and lane.kind == NAMED and not lane.made  # callers have named the stream that they work on
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
        is_found = any(rest_behind(each, place) == () for each in every) or any(_is_beside(each, place) for each in awaited)
        return is_found or not set(awaited).isdisjoint(self._put_into(function, place))

    def _put_into(self, function: Function, place: Place) -> Iterator[Place]:
        """The names of what a list is built of in which a place stands."""
        made = function.definitions[int(str(place.root[1]))] if place.root[0] == "register" and len(place.path) == 1 else None
        index = getattr(place.path[0], "key", None) if place.path else None
        parts = made[4:] if made is not None and made[0] == op.BUILD else ()
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
            return self._is_event_behind(state, action.of) or self._is_empty(function, one, action.of)
        call = self.transfer.modelled(function, one)
        stream = next((modelled.stream_in(action.of) for modelled in call), Stream(NAMED, action.of))
        return self._is_ordered(state, one, stream)

    def _each(self, function: Function, stream: Stream) -> frozenset[Tracked]:
        """The streams of a container, where a loop has each of them wait."""
        container = rotation.gone_through(function, stream.register) if stream.kind == NAMED else op.NONE
        places = self.places.names(function, container) if container >= 0 else ()
        return frozenset(Tracked(WAITER, place.behind(ANY)) for place in places)

    def _is_event_behind(self, state: State, event: int) -> bool:
        if self._out_of_view == GIVEN and self.places.of(state.frame.function, event).root[0] == "parameter":
            return True  # callers say where their work ends
        function = state.frame.function
        is_behind = self._has(state, EVENT, event) or self._may_be_earlier(state, EVENT, self.places.names(function, event))
        return is_behind or not self._is_recorded(function, event)

    def _is_empty(self, function: Function, one: Instruction, event: int) -> bool:
        """Whether a function waits for an event that it has made, and records only later: that is the affair of SL018."""
        made = function.definitions[event] if event >= 0 else None
        values = [value for value in self.transfer.values(function, event) if isinstance(value, LibraryObject)]
        if made is None or not values or any(value.site is None or value.site.function is not function for value in values):
            return False
        place = self.places.of(function, event)
        behind = False
        for each in function.code.instructions():
            behind |= each is one
            for action in self.transfer.of(function, each) if each[0] in (op.CALL, op.INVOKE) else ():
                if isinstance(action, Recorded) and self.places.of(function, action.event) == place:
                    return behind
        return False

    def _is_recorded(self, function: Function, event: int) -> bool:
        """Whether a record of an event is in view: then it tells what the event waits for."""
        known = self._recorded_events.get((function, event))
        if known is None:
            known = self._recorded_events[function, event] = self._finds_record(function, event)
        return known

    def _finds_record(self, function: Function, event: int) -> bool:
        made = {value.site for value in self.transfer.values(function, event) if isinstance(value, LibraryObject)}
        place = self.places.of(function, event)
        for other, recorded in self._records:
            if other is function and self.places.of(function, recorded) == place:
                return True
            values = self.transfer.values(other, recorded)
            if made & {value.site for value in values if isinstance(value, LibraryObject) and value.site is not None}:
                return True
            one = other.definitions[recorded] if recorded >= 0 else None
            if one is not None and Site(other, one) in made:
                return True  # one of several that a call gives
        return False

    @cached_property
    def _records(self) -> list[tuple[Function, int]]:
        """The registers of the events that the program records."""
        calls = [(call.function, call.instruction) for call in self.transfer.sites(frozenset({"record", "collective"}))]
        actions = ((function, action) for function, one in calls for action in self.transfer.of(function, one))
        return [(function, action.event) for function, action in actions if isinstance(action, Recorded)]

    def _may_order_inside(self, state: State, one: Instruction, callee: Function) -> bool:
        """Whether a function that an instruction enters waits, or has a stream wait: to record an event alone orders nothing."""
        known = self._waits_in.get(callee)
        if known is None:
            self._waits_in[callee] = False  # in a cycle, the others tell
            calls = [each for opcode in CALLING for each in callee.by_opcode[opcode]]
            found = any(isinstance(action, (Synchronized, Waited, Read)) for each in calls for action in self._holding_up(callee, each))
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
        return super().is_order(state, one, action)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether the host waits for the work."""
        function = state.frame.function
        if isinstance(action, Synchronized):
            if action.of is None:
                return True
            if isinstance(action.of, Stream):
                return self._is_ordered(state, one, action.of)
            return self._is_event_behind(state, action.of)
        if isinstance(action, Read) and action.waits:
            is_there = self.may_hold(function, action)
            return (is_there or self._touches(state, action.register)) and self._is_ordered(state, one, Stream(CURRENT, library="torch"))
        if isinstance(action, Copied) and action.asynchronous is False and action.direction not in ("h2h", "d2d"):
            lane = self.lanes.of(state.frame, one, action.stream)
            is_on_host = "host" in action.direction or "2" in action.direction
            return (is_on_host or lane.kind != NAMED) and self.lanes.is_same(state.tracked, lane)  # what is used in a scope is on a device
        return False

    def may_hold(self, function: Function, action: Read) -> bool:
        return may_be_there(list(self.transfer.values(function, action.register)), action.presumes)

    def is_bounded(self, state: State, condition: int) -> bool:
        """Whether a loop asks for the container of an event behind the work: that many pieces are under way on purpose."""
        function = state.frame.function
        kept = [held.place for held in state.tracked if held.kind == EVENT and held.place.path]
        names = (place for register in (_reads(function, condition) if kept else ()) for place in self.places.names(function, register))
        outer = [place for place in names if place.path or place.root[0] != "register"]
        return any(rest_behind(place, inner) for place in outer for inner in kept)

    def done_where(self, state: State, condition: int) -> bool | None:
        """A query of the stream, or of an event behind the work."""
        if self._has(state, DONE, condition):
            return True
        if self._has(state, STATUS, condition) or self._has(state, EVENT, condition):
            return False
        return self._is_there(state, condition)

    def _is_there(self, state: State, condition: int) -> bool | None:
        """A handle or event behind the work, or its stream, is asked whether it is None: where a path goes on, it is not."""
        asked = asked_for_none(state.frame.function, condition)
        return asked[1] if asked is not None and (self._has(state, EVENT, asked[0]) or self._has(state, STREAM, asked[0])) else None

    # --- what registers hold

    def _touches(self, state: State, register: int, depth: int = 0, is_written: bool = False, by: Instruction | None = None) -> bool:
        """Whether what a register holds overlaps with the memory that is tracked. Two ranges that are written are tiles."""
        if register < 0:
            return False
        for place in self._all_names(state, register):
            for held in state.tracked:
                if held.kind != BUFFER or held.place.root != place.root:
                    continue
                if held.type and by is not None and self._is_apart(state, by, register, place, held):
                    continue
                rest = rest_behind(place, held.place)
                part = rest_behind(held.place, place)
                if is_written and self._writes and any(map(_is_range, (*(rest or ()), *(part or ())))):
                    continue
                is_own = place in self.places.names(state.frame.function, register)
                if rest and is_own and len(rest) == 1 and not state.frame.function.is_cpp and rest[0] in self.transfer.view_names:
                    return True  # ``x.data = …`` is what ``x`` is from here on
                is_whole = rest is not None and all(isinstance(key, Element) for key in rest)
                if (
                    rest is not None
                    and is_whole
                    and (len(rest) <= depth or state.frame.function.is_cpp or self._is_memory(state, register))
                ):
                    return True
                if part is not None and all(isinstance(key, Element) for key in part):
                    return True
        return False

    def _is_memory(self, state: State, register: int) -> bool:
        return any(isinstance(value, Memory) for value in self.transfer.values(state.frame.function, register))

    def _holds(self, state: State, register: int) -> bool:
        """Whether a register holds the memory itself."""
        return register >= 0 and any(
            held.kind == BUFFER and rest_behind(held.place, place) == ()
            for place in self.places.names(state.frame.function, register)
            for held in state.tracked
        )

    def _is_fetched(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction gives memory of the host, to which it copies."""
        copies = (each for each in self.transfer.of(function, one) if isinstance(each, Copied) and each.direction == "d2h")
        return op.DEFINES[one[0]] and any(each.target == one[2] for each in copies)

    def _is_other_part(self, state: State, one: Instruction) -> bool:
        """Whether a view is a part, which its own names tell of."""
        return one[0] == op.BINARY

    def _has(self, state: State, kind: str, register: int) -> bool:
        if register < 0:
            return False
        names = self.places.names(state.frame.function, register)
        return any(held.kind == kind and rest_behind(place, held.place) == () for place in names for held in state.tracked)

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

    def _up(self, state: State, register: int) -> Iterator[State]:
        """Callers; what was the ambient stream is the one that is current where they call."""
        yield from self._again(state)
        for up in super()._up(state, register):
            functions = self._functions_left(state, up)
            lane = self.lanes.of(up.frame, up.path[-1], Stream(CURRENT))
            if lane.kind == NAMED:
                moved = {held for held in up.tracked if held.place == AMBIENT}
                renamed = {one for held in moved for one in lane.tracked(held.kind)}
                up = up._replace(tracked=(up.tracked - moved) | renamed)
                if self._lane.kind == CURRENT:
                    self._chosen[up.path] = lane
            if functions is not None and self._lane.kind == NAMED and (self._lane.blocking is None or AMBIENT in self._lane.places):
                up = self._handed_down(functions, up)
            yield up

    def _functions_left(self, state: State, up: State) -> tuple[Function, ...] | None:
        """The functions that a path has left by its calls, that of the work first; None where others ran between, called by nobody."""
        home = self._site.function
        left = self._left.get((home, state.path)) if state.path or state.frame.function is not home else (home,)
        if left is not None:
            left = self._left[home, up.path] = (*left, up.frame.function)
        return left

    def _handed_down(self, functions: tuple[Function, ...], up: State) -> State:
        """A path that has left a function by a call: the stream of the work is the one that this call hands down, of all that calls do."""
        home = self._site.function
        frame = Frame(functions[-1], None, None, 0)
        for function, call in zip(reversed(functions[:-1]), reversed(up.path), strict=True):
            frame = Frame(function, frame, call, frame.depth + 1)
        given = self.lanes.of(frame, self._site.instruction, self._stream(home, self._work))
        if given.kind != NAMED or given.blocking is None:
            return up
        self._chosen[up.path] = given
        return up if AMBIENT in given.places else up._replace(tracked=up.tracked - {Tracked(STREAM, AMBIENT)})

    def _again(self, state: State) -> Iterator[State]:
        """What nobody in view calls runs once more: a method on the same object, if the stream never leaves that, and a hook."""
        function = state.frame.function
        marker = next(function.code.instructions())
        if not self._writes or marker in state.path:
            return
        mine = frozenset(held for held in state.tracked if _lasts(held.place, function))
        if not any(held.kind == BUFFER for held in mine):
            return
        is_hook = self.hooks.runs_again(function, self._lane)
        if not is_hook and not self._is_open(function):
            return
        others = open_methods(self.transfer, function) if self.is_wide and not is_hook else ()
        for method in dict.fromkeys((function, *others)):
            path = (*state.path, marker if method is function else next(method.code.instructions()))
            yield State(Frame(method, None, None, 0), 0, 0, 0, mine, state.guesses, frozenset(), frozenset(), path)

    def _is_open(self, function: Function) -> bool:
        """Whether callers out of view run a method, and cannot wait for the stream of the work."""
        if function.method is not function or not function.has_receiver or any(True for _ in self.facts.call_places(function)):
            return False
        lane = next((place for place in self._lane.places if place.root == ("parameter", 0)), None)
        return self._lane.kind != NAMED or (
            lane is not None and not self.settled.leaves(function, lane) and not self.settled.is_settled(function, lane)
        )

    def places_returned(self, function: Function, register: int) -> tuple[Place, ...]:
        """New memory is not what was read before from where it is now."""
        one = function.definitions[register] if register >= 0 else None
        is_read = one is not None and one[0] == op.ATTR and self._work.made >= 0
        return (register_place(register),) if is_read else self.places.names(function, register)

    def _tell(self, state: State, one: Instruction, use: Worked, other: Lane) -> None:
        second = Site(state.frame.function, one)
        lane, calls, whose = self._mine(state), state.frame.calls, self._out_of_view
        race = Race(self._site, second, self._work, use, lane, other, self._writes, (), calls, state.doubts, whose)
        known = self._found.get(second)
        if known is not None and not self._is_shown:
            return
        self._ways.setdefault(second, {})[calls] = None
        if known is None or (race.out_of_view == known.out_of_view and race.doubts <= known.doubts) or not race.out_of_view:
            self._found[second] = race


def _lasts(place: Place, function: Function) -> bool:
    """Whether a place is there when a function runs once more: of its object, of a variable around it, or of a module."""
    return place.root[0] == "global" or (place.root == ("parameter", 0) and function.has_receiver) or is_around(place.root, function)


def _reads(function: Function, register: int, depth: int = 4) -> Iterator[int]:
    """The registers that a condition is computed from."""
    one = function.definitions[register] if register >= 0 and depth else None
    for each in op.reads(one) if one is not None and one[0] in (op.COMPARE, op.UNARY, op.BINARY, op.CALL, op.COPY) else ():
        yield each
        yield from _reads(function, each, depth - 1)


def _functions(frame: Frame) -> Iterator[Function]:
    """The functions that a path has entered and not left, the innermost first."""
    inner: Frame | None = frame
    while inner is not None:
        yield inner.function
        inner = inner.caller


def _is_beside(place: Place, other: Place) -> bool:
    """Whether two places may be one element of a container: their indices are not two constants."""
    if place.root != other.root or len(place.path) != len(other.path) or place.path[:-1] != other.path[:-1]:
        return False
    keys = [path[-1].key for path in (place.path, other.path) if isinstance(path[-1], Element)]
    return len(keys) == 2 and (keys[0] == keys[1] or not all(isinstance(key, int | str) for key in keys))


def _is_range(key: Key) -> bool:
    """Whether a key is the offset of a pointer, in this function or another one."""
    told = key.key if isinstance(key, Element) else None
    while isinstance(told, tuple) and len(told) == 2 and told[0] == "elsewhere":
        told = told[1]
    return isinstance(told, tuple) and told[:1] == (_RANGE,)
