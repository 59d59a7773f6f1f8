"""What the actions of a path mean for the work that is followed, and whether other work is a race with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.given_work import GivenWork
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.generators import taking
from streamlint.ordering.paths.quiet import INDEX, MODULES, OUTER
from streamlint.ordering.paths.same_members import SameMembers
from streamlint.ordering.paths.states import MOST_GUESSES, Answer, State
from streamlint.ordering.places import rotation
from streamlint.ordering.places.flow import BUFFER, DONE, EVENT, STATUS, STREAM, Tracked
from streamlint.ordering.places.places import Place, register_place
from streamlint.ordering.races.race_callers import RaceCallers
from streamlint.ordering.races.race_orders import GIVEN
from streamlint.ordering.streams.lanes import WAITER, Lane
from streamlint.ordering.threads.communicators import has_communicator
from streamlint.ordering.threads.not_inherited import is_not_inherited
from streamlint.ordering.walk.stepping import Stepping
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import APART, CURRENT, NAMED, UNKNOWN, Action, Asked, Copied, Lost, Recorded, Stream, Viewed, Written
from streamlint.transfer.language import OPERATORS
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Order, Transfer
from streamlint.transfer.waiting import Exchanged, Waited
from streamlint.transfer.work import Worked

AMBIENT_LANE = Lane(CURRENT, (), frozenset(), True, "torch")
"""The stream that is current where unknown code calls."""
_HIGHEST = 3
"""Calls above one another that are looked at for the stream that is current."""
_RAW = "cupy.cuda.runtime."


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
    unknown_work: str = ""  # whose work is unknown: that of the first is GIVEN or RECYCLED, that of the second LEFT or RESULT
    others: tuple[Site, ...] = ()  # other calls of the second's function, from which it meets work that nothing orders as well


class Use(NamedTuple):
    """What work does with memory that is tracked: the registers that it reads and writes, and whether it runs or moves its module."""

    writes: list[int]
    reads: list[int]
    runs: bool
    moves: bool


class RaceJudge(Stepping, RaceCallers):
    """Judges the actions behind the work."""

    meets_memory = True
    hooked = frozenset({op.SET_ATTR})
    forgets = forgets_rounds = True
    ends_alike = True
    judges_by_touch = True
    """Whether work means nothing that touches nothing of what is tracked."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.given = GivenWork(transfer, self.places, self.lanes)
        self.same_members = transfer.one_of(SameMembers, transfer, self.places)
        self._found: dict[Site, Race] = {}
        self._ways: dict[Site, dict[tuple[Site, ...], None]] = {}  # by second piece of work: the calls that lead to it
        self._arrays = transfer.facts.models.marked("arrays")
        self._on_host = transfer.facts.models.marked("on-host")
        self._actions: dict[tuple[Function, Instruction], tuple[Action, ...]] = {}
        self._is_shown = True
        self._is_evident: bool
        self._fills = False  # whether the work is an unknown call that fills new memory

    def actions(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """Waits of the host come last: what waits has worked before."""
        known = self._actions.get((function, one))
        if known is None:
            known = self._actions[function, one] = (*self.transfer.works(function, one), *super().actions(function, one))
        return known

    def is_hooked(self, function: Function, one: Instruction) -> bool:
        """Of assignments to attributes only those that give a parameter memory; a collective may mean something for others before it."""
        if one[0] in CALLING and self._is_collective(function, one):
            return True
        is_plain = self.judges_by_touch and one[0] == op.SET_ATTR
        return super().is_hooked(function, one) and not (is_plain and not self.modules.gives(function, one))

    def is_passive(self, function: Function, action: Action) -> bool:
        """Also work, but for what optimizers do, and for what the null stream waits for; and unknown calls, and copies that do not wait."""
        if not self.judges_by_touch or not isinstance(action, (Worked, Lost, Written, Copied)):
            return super().is_passive(function, action)
        if isinstance(action, Worked):
            return not (action.steps or action.clips) and action.library in ("", "torch", *self._on_host)
        return not isinstance(action, Copied) or action.asynchronous is not False or action.direction in ("h2d", "d2d")

    def is_idle(self, function: Function, one: Instruction, callee: Function) -> bool:
        """Such a function is not entered, if it neither waits nor steps with an optimizer."""
        if not self.judges_by_touch or one[0] not in (op.CALL, op.INVOKE) or taking(function, one) is not None:
            return False
        return not self._orders_inside(callee) and not self.training.steps_in(callee)

    def touches(self, function: Function, one: Instruction) -> Iterator[Place]:
        """What work uses, and what a call is given; a function that is entered may also name what everybody can name."""
        for edge in self.transfer.edges(function, one) if one[0] in (op.CALL, op.INVOKE) else ():
            if edge.is_followed:
                yield from (source for sources, _ in self._given_to(function, one, edge.callee) for source in sources)
                yield from (OUTER, MODULES, INDEX)
        for action in self.actions(function, one):
            if isinstance(action, Worked):
                registers = (*action.reads, *action.writes, action.made, *action.moves, *(module.register for module in action.runs))
                yield from (place for register in registers for place in self.names_of(function, register))
                yield MODULES
            elif isinstance(action, Lost):
                yield from (place for register in action.registers for place in self.names_of(function, register))

    def arrive(self, state: State, one: Instruction) -> Answer:
        """Parameters that are given memory make it that of their module; parts of modules have weights of these."""
        if one[0] == op.SET_ATTR:
            return self.modules.given(state.frame.function, one, state.tracked)
        more = self.modules.taken(state.frame.function, one, state.tracked)
        return state.tracked | more if more else None

    def _behind_collective(self, state: State, one: Instruction) -> Answer:
        """What a further collective means for one on a stream of its own: it comes behind it, and so does whoever waits for it."""
        function = state.frame.function
        if not self._is_collective(function, one):
            return None
        is_asynchronous = any(
            call.switch("asynchronous")[1] is True for call in self.transfer.modelled(function, one) if _is_collective(call)
        )
        return state.tracked | self._recorded(function, one) if is_asynchronous else ORDERED

    def _is_collective(self, function: Function, one: Instruction) -> bool:
        return any(map(_is_collective, self.transfer.modelled(function, one)))

    def raised(self, state: State, call: Instruction) -> State:
        """A gradient that a caller has given is one of the module whose parameter it is; members of an object may hold one value, and its
        constructor was given something by who made it."""
        function = state.frame.function
        tracked = self.training.named(function, state.tracked) | set(self.same_members.aliases(function, state.tracked))
        tracked |= set(rotation.as_elements(self.places, function, state.tracked))
        by_arguments = self.modules.parameters.by_arguments
        tracked |= {held._replace(place=place) for held in state.tracked for place in by_arguments(function, held.place)}
        return state._replace(tracked=state.tracked | tracked) if tracked else state

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if self._work.stream.kind == APART and (behind := self._behind_collective(state, one)) is not None:
            return behind
        if self._unknown_work == GIVEN and self.given.is_brought(state.frame.function, one) and self._holds(state, one[3]):
            return state.tracked | {Tracked(BUFFER, register_place(one[2]))}
        if isinstance(action, Worked):
            return self._worked(state, one, action)
        if self.orders(state, one, action):
            return ORDERED
        if isinstance(action, Lost):
            return self._lost(state, one, action)
        if isinstance(action, Waited) and action.of != op.NONE:
            return self._waited(state, one, action)
        more = self._passed_on(state, one, action)
        if isinstance(action, Exchanged) and self._is_ordered(state, one, action.of):
            more = self.lanes.of(state.frame, one, action.stream).tracked(WAITER)
        return state.tracked | more if more else None

    def _waited(self, state: State, one: Instruction, action: Waited) -> Answer:
        """A stream that waits for the work is behind it from here on; one of which nothing is known may be any."""
        if not self._is_behind(state, one, action):
            return None
        lane = self.lanes.of(state.frame, one, action.stream)
        if lane.kind == UNKNOWN:
            return ORDERED
        return state.tracked | lane.tracked(WAITER) | self._each(state.frame.function, action.stream)

    def _passed_on(self, state: State, one: Instruction, action: Action) -> frozenset[Tracked]:
        """What else is tracked behind an action: events that it records, views, and answers of queries."""
        function, found = state.frame.function, frozenset[Tracked]()
        if isinstance(action, Recorded):
            lane = self.lanes.of(state.frame, one, action.stream)
            if self.lanes.is_same(state.tracked, lane) or self.same.may_be_given_twice(lane, self._lane):
                return self._recorded(function, one)
        elif not op.DEFINES[one[0]]:
            return found
        elif isinstance(action, Viewed):
            is_part = one[0] == op.BINARY  # which its own names tell of
            if not is_part and self._holds(state, action.register) and not self._is_fetched(function, one):
                return frozenset({Tracked(BUFFER, register_place(one[2]))})
        elif isinstance(action, Asked) and (self.has(state, EVENT, action.of) or self.has(state, STREAM, action.of)):
            return frozenset({Tracked(STATUS if action.is_status else DONE, register_place(one[2]))})
        return found

    def _lost(self, state: State, one: Instruction, action: Lost) -> str | None:
        """An unknown call may wait for a stream or event that it is given; a module that runs does not."""
        if not any(self._leads_to_order(state, register, one) for register in action.registers):
            return None
        is_module = any(work.runs and not work.assumed for work in self.transfer.works(state.frame.function, one))
        return None if is_module else ORDERED

    def _worked(self, state: State, one: Instruction, work: Worked) -> str | None:
        runs = self._runs(state, work)
        may_fill = (*work.writes, *(work.reads if work.assumed else ())) if self._fills else ()
        if any(self._touches(state, register, 1, by=one) for register in may_fill):
            return ORDERED
        if work.assumed and not runs:
            if self._is_own_affair(state.frame.function, one):
                return None
            if any(self._leads_to_order(state, register, one) for register in work.reads):
                return ORDERED
        if self._waits_as_null(state, one, work):
            return ORDERED
        use = self._use(state, one, work, runs)
        return self._conflict(state, one, work, use) if self._is_concerned(state, one, work, use) else None

    def _conflict(self, state: State, one: Instruction, work: Worked, use: Use) -> str | None:
        """What it means that work uses the memory that is tracked: a race, if its stream is another one and nothing orders the two."""
        function = state.frame.function
        lane = self.lanes.of(state.frame, one, self._stream(function, work))
        is_here = function is self._site.function
        if self.lanes.is_same(state.tracked, lane) and not (is_here and self.same.is_of_another(function, state.tracked, lane, self._lane)):
            return ORDERED if use.moves or (use.writes and self._is_all(state, use.writes)) else None
        if not self._is_unordered(state, one, work, lane) or not self._is_on_device(function, work, use, lane, self._mine(state)):
            return None
        if lane.kind == self._stream(function, work).kind == CURRENT and self._runs_under(state.frame.root.function, self._mine(state)):
            return None
        if self._unknown_work and not any(self.given.is_private(each, lane) for each in _functions(state.frame)):
            return ORDERED
        return ORDERED if self._report(state, one, work, lane) else None

    def _runs_under(self, function: Function, lane: Lane, depth: int = _HIGHEST) -> bool:
        """Whether all calls of a function in view make a stream current that may be the one of a lane."""
        callers = self.transfer.callers(function) if depth and lane.made else ()
        currents = [(caller, self.lanes.of(Frame(caller, None, None, 0), call, Stream(CURRENT))) for caller, call in callers]
        return bool(currents) and all(
            not lane.made.isdisjoint(current.made) if current.kind == NAMED else self._runs_under(caller, lane, depth - 1)
            for caller, current in currents
        )

    def _runs(self, state: State, work: Worked) -> bool:
        """Whether work runs a module whose memory is tracked, or reads gradients or parameters of it."""
        function, tracked = state.frame.function, state.tracked
        if self.modules.is_run(function, work.runs, tracked, work.assumed) or self.training.reads(function, work, tracked):
            return True
        return not work.assumed and self.modules.is_parameter(function, (*work.reads, *work.writes), tracked)

    def _use(self, state: State, one: Instruction, work: Worked, runs: bool) -> Use:
        """What work does with the memory that is tracked."""
        function = state.frame.function
        is_of_tensors = work.assumed or work.library in self.transfer.facts.models.marked("tensors")
        depth = 1 if is_of_tensors else 2 if work.library == "cuda_python" else 0
        writes = [register for register in work.writes if self._touches(state, register, is_written=True, by=one)]
        reads = [register for register in work.reads if self._touches(state, register, depth, by=one)]
        is_stepped = self.training.are_weights(list(self.stepped(state, work)), state.tracked)
        is_moved = self.modules.is_moved(function, work.moves, state.tracked) or is_stepped
        return Use(writes, reads, runs, is_moved)

    def _waits_as_null(self, state: State, one: Instruction, work: Worked) -> bool:
        """Whether work is on the null stream, which waits for blocking streams, and they for it."""
        mine = self._mine(state)
        if mine.kind != NAMED or mine.blocking is False or work.library in ("", "torch", *self._on_host):
            return False
        lane = self.lanes.of(state.frame, one, work.stream)
        if lane.kind != CURRENT or not lane.blocking:
            return False
        if self.transfer.passed is None:
            return True
        self.transfer.passed.append(Order(self._site, Site(state.frame.function, one), work, frozenset()))
        return False

    def _is_concerned(self, state: State, one: Instruction, work: Worked, use: Use) -> bool:
        """Whether work uses memory on the device that the followed work writes, or the other way round, on this path."""
        function = state.frame.function
        if not (use.writes or use.moves or ((use.reads or use.runs) and self._writes)) or self._is_foreign(state, one, work):
            return False
        is_module = use.runs or use.moves
        if not is_module and all(self.memory.is_on_host(function, register) for register in (*use.writes, *use.reads)):
            return False
        if self.is_on_other_way(state, one):
            return False
        return self.currents.is_guessed(function, one) == self.currents.is_guessed(self._site.function, self._site.instruction)

    def _is_unordered(self, state: State, one: Instruction, work: Worked, lane: Lane) -> bool:
        """Whether a stream is surely another one than that of the followed work, and does not wait for it."""
        may_be_one = self.same.may_be_one(lane, self._mine(state), state.frame.function is self._site.function)
        if state.doubts > MOST_GUESSES or may_be_one or self.same.may_wait(state.tracked, lane):
            return False
        return not is_not_inherited(self.currents, state.frame, one, work.stream)

    def _is_written_there(self, in_scope: bool) -> bool:
        """Whether the followed work writes memory of a device, in the scope of a stream or not."""
        written = (*self._work.writes, self._work.made)
        return any(self.memory.is_on_device(self._site.function, each, self._work, in_scope) for each in written)

    def _is_on_device(self, function: Function, work: Worked, use: Use, lane: Lane, mine: Lane) -> bool:
        """Whether either piece of work shows that the memory is on a device; a move to one does not say that it was written there."""
        if self._is_evident or (use.moves and not self._writes) or (self._work.assumed and not work.assumed and work.library == "torch"):
            return True
        if self._lane.kind == CURRENT and mine.kind == NAMED and self._is_written_there(True):
            return True
        used = (*use.writes, *use.reads, *((*work.writes, *work.reads) if use.runs else ()))
        return any(self.memory.is_on_device(function, each, work, lane.kind == NAMED) for each in used)

    def _is_own_affair(self, function: Function, one: Instruction) -> bool:
        """Whether an unknown call is a method of an object, or unknown callers give what is called and nobody wants its result: a log."""
        if one[0] == op.INVOKE:
            return True
        values = list(self.transfer.values(function, one[3])) if one[0] == op.CALL and not function.uses.get(one[2]) else []
        return bool(values) and all(isinstance(value, Unknown) and value.reason == "caller" for value in values)

    def _is_foreign(self, state: State, one: Instruction, work: Worked) -> bool:
        """Whether two libraries with arrays of their own work on the memory, or C or C++ on the null stream, or on an address."""
        is_driver = work.library == "cuda_python"
        library = work.library or self.memory.library(state.frame.function, work.reads)
        is_number = one[0] in OPERATORS and not library and self._work.library == "cuda_python"  # an address, or a kernel's argument
        if is_number or (not self._is_evident and (is_driver or work.name.startswith(_RAW))):
            return True
        is_across = state.frame.function.is_cpp and not self._site.function.is_cpp and work.library not in self._arrays
        if (is_driver or is_across) and self._work.library in self._arrays and self.lanes.of(state.frame, one, work.stream).kind == CURRENT:
            return True
        return len({library, self._work.library} & self._arrays) > 1

    def _may_be_one(self, lane: Lane) -> bool:
        """Whether a stream may be that of the work, or is ordered with it."""
        return self.same.may_be_one(lane, self._lane, False)

    def _report(self, state: State, one: Instruction, use: Worked, other: Lane) -> bool:
        second = Site(state.frame.function, one)
        lane, calls, whose = self._mine(state), state.frame.calls, self._unknown_work
        race = Race(self._site, second, self._work, use, lane, other, self._writes, (), calls, state.doubts, whose)
        known = self._found.get(second)
        if known is not None and not self._is_shown:
            return True
        self._ways.setdefault(second, {})[calls] = None
        if known is None or (race.unknown_work == known.unknown_work and race.doubts <= known.doubts) or not race.unknown_work:
            self._found[second] = race
        return True


def _is_collective(call: ModelledCall) -> bool:
    return has_communicator(call.row) or bool(call.row.get("ranks"))


def _functions(frame: Frame) -> Iterator[Function]:
    """The functions that a path has entered and not left, the innermost first."""
    inner: Frame | None = frame
    while inner is not None:
        yield inner.function
        inner = inner.caller
