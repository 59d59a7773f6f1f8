"""SL007: memory of one stream's pool is used on another stream, and its last reference goes before the pool's stream waits for that use."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, ModuleObject, Site, is_unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.given_storage import GivenStorage, GivenUse
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import BUFFER, EVENT, STREAM, Tracked
from streamlint.ordering.places.places import Place
from streamlint.ordering.races.beginnings import casts
from streamlint.ordering.races.crossing import DROPPED, MARK, USED, as_lent, is_lent, is_lent_by
from streamlint.ordering.races.lost_gradients import LostGradients
from streamlint.ordering.races.races import Races
from streamlint.ordering.streams.lanes import AMBIENT, WAITER, Lane
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer.actions import CURRENT, NAMED, UNKNOWN, Action, Asked, Recorded, Released, Signalled, Stream, Viewed
from streamlint.transfer.origins import Origins
from streamlint.transfer.sizes import Sizes
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited
from streamlint.transfer.work import Kept, Worked

TAKER, VIEW, GRAPH = "taker", "view", "graph"
"""The types of names that are not those of the tensor which was allocated: of another one that has taken the memory over, of views, and
of what was computed of it, whose graph may refer to the tensor, whatever its memory is by then."""
_SMALL = 1 << 20
"""Bytes of a block up to which PyTorch has pools of their own."""
_PLAIN = frozenset(
    "all any bool callable enumerate float hasattr id int isinstance iter len list next print range repr reversed sorted str tuple "
    "type zip".split()
)
"""Functions of the language that keep nothing but what `flow` knows."""
_OF_USE = frozenset({USED, DROPPED, STREAM, WAITER, EVENT})


class Release(NamedTuple):
    """An allocation, the use of it on another stream, where its last reference goes, and where memory is allocated next (None where
    that is the caller's affair). ``home`` and ``lane`` are the streams of the allocation and of the use. ``kind``: resize or replace, where
    the storage is released and the object stays."""

    allocation: Site
    use: Site
    drop: Site
    again: Site | None
    home: Lane
    lane: Lane
    library: str
    kind: str = ""
    calls: tuple[Site, ...] = ()  # that lead to the use


class Releases(LostGradients):
    """Finds memory that goes back to its pool too early."""

    ordering = (*Races.ordering, Kept)
    hooked = Races.hooked | CALLING | {op.NEXT, op.UNBIND}
    forgets = False  # what refers to memory keeps it
    most_states = 800  # uses on other streams are near, and most allocations have none

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.flow.is_of_references = True
        self._released: dict[Site, Release] = {}
        self._known: list[Release] | None = None
        self._streams: dict[Site, Lane] = {}
        self._calls: dict[Site, tuple[Site, ...]] = {}  # that led to a use
        self._raised: list[tuple[State, Lane]] = []
        self._by_callers = False
        self._sizes = transfer.one_of(Sizes, transfer.one_of(Origins, transfer))

    def releases(self) -> Iterator[Release]:
        """The releases of the program, one for each allocation. They are looked for once, but where orders are passed over."""
        if self._known is None or self.transfer.passed is not None:
            self._released.clear()
            self._known = list(self._find())
        return iter(self._known)

    def _find(self) -> Iterator[Release]:
        self._by_callers = False
        for (function, one, work), partners in self.beginnings.found:
            is_pooled = (not function.is_cpp or work.library == "torch") and not self._is_raw(function, one)
            if is_pooled and self.comes_to(function, partners):
                self._follow_allocation(function, one, work)
        for (function, one), users in self.beginnings.casts.items():
            if self.comes_to(function, frozenset(users)) and (cast := self._cast(function, one)) is not None:
                self._follow_allocation(function, one, cast)
        for gradients in self.gradients():
            self._follow_use(*gradients)
        for use in GivenStorage(self.transfer, self.lanes).uses(begun for begun, _ in self.beginnings.found):
            self._follow_emptied(use)
        yield from self._released.values()

    def _cast(self, function: Function, one: Instruction) -> Worked | None:
        """A cast as work: it reads what it is given, and makes memory."""
        sources = (action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed) and action.casts)
        call, source = next(iter(self.transfer.modelled(function, one)), None), next(sources, None)
        if call is None or source is None:
            return None
        return Worked(Stream(CURRENT, library=call.row.library), (source,), (), call.name, call.row.library, one[2])

    def _is_fetched(self, function: Function, one: Instruction) -> bool:
        """Also whether it is a cast: that is memory of its own."""
        return super()._is_fetched(function, one) or casts(self.transfer, function, one)

    def _is_raw(self, function: Function, one: Instruction) -> bool:
        """Whether memory is the driver's own: it has no pool that hands it out again, and its free waits for the device."""
        return any(call.row.get("raw") for call in self.transfer.modelled(function, one))

    def _follow_emptied(self, use: GivenUse) -> None:
        """A tensor that an unknown caller gives is allocated on the stream that is current there; the caller keeps its references."""
        if not self.memory.is_on_device(use.function, use.register, use.work, True):
            return
        self._by_callers = True
        names = frozenset(Tracked(BUFFER, place) for place in self.names_of(use.function, use.register))
        self._follow_use(use.function, use.instruction, use.work, use.lane, names)

    def _follow_use(self, function: Function, one: Instruction, work: Worked, lane: Lane, names: frozenset[Tracked]) -> None:
        """Work on another stream uses memory that the program is not seen to allocate."""
        self._site = site = Site(function, one)
        self._work, self._writes, self._is_evident = work, True, True
        self._lane, self._streams[site] = Lane(CURRENT, (), frozenset(), True, ""), lane
        self.run(self.start(function, one, names | {Tracked(USED, MARK, "", site)} | lane.tracked(STREAM), frozenset()))

    def _follow_allocation(self, function: Function, one: Instruction, work: Worked) -> None:
        frame = Frame(function, None, None, 0)
        lane = self.lanes.of(frame, one, work.stream)
        if work.made < 0 or work.assumed or lane.kind == UNKNOWN:
            return
        self._is_evident = self.memory.is_on_device(function, work.made, work, False) or any(
            self.memory.is_on_device(function, each, work, lane.kind != CURRENT) for each in work.reads
        )
        if not self._is_evident and not (work.library and self.memory.may_be_memory(function, work.made)):
            return
        self._site, self._work, self._writes = Site(function, one), work, True
        tracked = {Tracked(BUFFER, place) for place in self._names_of(function, work.made)}
        waiting = self._raised = [(self.start(function, one, frozenset(tracked), frozenset()), lane)]
        for state, self._lane in waiting:
            self.run(state)

    # --- what actions mean

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        if isinstance(action, Worked):
            return self._used(state, one, action)
        if isinstance(action, Released):
            return self._storage_changed(state, one, action)
        if isinstance(action, Kept):
            return ORDERED if self._is_told(state, one, action) else None
        if isinstance(action, Signalled):
            return ORDERED if any(self.leads(state, BUFFER, each) or self._captures(state, each) for each in action.registers) else None
        if isinstance(action, Viewed):
            return self._viewed(state, one, action)
        if not self._is_in_use(state.tracked):
            return None
        if isinstance(action, Waited) and action.of != op.NONE:
            return self._waited(state, one, action)
        if isinstance(action, (Recorded, Asked)):
            return super().judge(state, one, action)
        return self._unused(state) if self.orders(state, one, action) else None

    def _viewed(self, state: State, one: Instruction, action: Viewed) -> Answer:
        """A view of the memory is followed. What a cast gives is none."""
        if not action.casts:
            answer = super().judge(state, one, action)
            made = answer - state.tracked if isinstance(answer, frozenset) else frozenset()
            return answer - made | {held._replace(type=VIEW) for held in made} if isinstance(answer, frozenset) else answer
        cast = self._cast(state.frame.function, one)
        return self._used(state, one, cast) if cast is not None else None

    def _waited(self, state: State, one: Instruction, action: Waited) -> Answer:
        """The stream of the storage waits for the use, or another one does."""
        if not self._is_behind(state, one, action):
            return None
        lane = self.lanes.of(state.frame, one, action.stream)
        return self._unused(state) if self._is_home(lane) else state.tracked | lane.tracked(WAITER)

    def _storage_changed(self, state: State, one: Instruction, action: Released) -> Answer:
        """A tensor takes the memory over (``x.data = memory``), or lets go of it, and is empty or has another storage."""
        function = state.frame.function
        if one[0] == op.SET_ATTR and self._touches(state, one[4]):
            return state.tracked | {Tracked(BUFFER, place, TAKER) for place in self.places.names(function, action.register)}
        if not self._touches(state, action.register):
            return None
        after = state._replace(tracked=state.tracked - self._losing(state, one, action))
        if not after.tracked:
            return ORDERED
        if not self._is_in_use(after.tracked) or self._alive(after):
            return after.tracked
        site = Site(function, one)
        return after.tracked | {Tracked(DROPPED, MARK, "resize" if action.is_shared else "replace", site)}

    def _losing(self, state: State, one: Instruction, action: Released) -> frozenset[Tracked]:
        """The names that no longer lead to the memory: those of the tensor that lets go of it, with what is behind them, or all."""
        held = frozenset(each for each in state.tracked if each.kind == BUFFER)
        if action.is_shared:
            return held
        targets = {target for target, _ in self.places.assigned(state.frame.function, one)}
        kinds = {GRAPH, *self._kinds(state, action.register)}
        gone = {each for each in held if each.type in kinds or each.place in targets or self._is_object(state, action.register, each)}
        places = {each.place for each in gone}
        return frozenset(gone) | {each for each in held if self.owning(each.place) != each.place and self.owning(each.place) in places}

    def _kinds(self, state: State, register: int) -> Iterator[str]:
        """Which tensor a register holds, of those that have the memory: all names of that one are of one type."""
        names = set(self.places.names(state.frame.function, register))
        yield from (held.type for held in state.tracked if held.kind == BUFFER and held.type != VIEW and held.place in names)

    def _unused(self, state: State) -> str | frozenset[Tracked]:
        """What is left when the use is over."""
        rest = frozenset(held for held in state.tracked if held.kind not in _OF_USE)
        return rest if rest else ORDERED

    def _is_home(self, lane: Lane) -> bool:
        """Whether a lane may be the stream of the pool."""
        mine = self._lane
        if UNKNOWN in (lane.kind, mine.kind):
            return True
        return self.lanes.is_same(mine.tracked(STREAM), lane)

    def _is_reused(self, state: State, work: Worked, lane: Lane) -> bool:
        """Whether work takes new memory on the stream of the storage, which is gone while it is in use."""
        if work.made < 0 or not self._is_in_use(state.tracked) or not self._is_home(lane) or self._alive(state):
            return False
        return self._allocates(state.frame.function, work) and self._may_share(state.frame.function, work.made)

    def _used(self, state: State, one: Instruction, work: Worked) -> Answer:
        touched = any(self._touches(state, each, int(work.assumed)) for each in (*work.reads, *work.writes))
        if work.assumed and one[0] == op.CALL and state.frame.function.dotted(one[3]) in _PLAIN:
            return None
        if work.assumed and self._may_own(state.frame.function, one) and any(self.leads(state, BUFFER, each) for each in work.reads):
            return ORDERED  # an unknown owner may keep it
        lane = self.lanes.of(state.frame, one, work.stream)
        if not touched:
            if not self._is_reused(state, work, lane):
                return None
            self._report_release(state, one)
            return ORDERED
        if self._is_home(lane) or self.is_on_other_way(state, one):
            return None
        if self._may_be_one(lane):
            return ORDERED
        function, in_scope = state.frame.function, lane.kind == NAMED
        if not self._is_evident and not any(self.memory.is_on_device(function, r, work, in_scope) for r in (*work.reads, *work.writes)):
            return None
        return self._in_use(state, one, work, lane)

    def _in_use(self, state: State, one: Instruction, work: Worked, lane: Lane) -> frozenset[Tracked]:
        """What is tracked behind a use of the storage on another stream."""
        kept = frozenset(held for held in state.tracked if held.kind not in _OF_USE)
        site = Site(state.frame.function, one)
        self._streams[site], self._calls[site] = lane, state.frame.calls
        found = kept | {Tracked(USED, MARK, "", site)} | lane.tracked(STREAM)
        if op.DEFINES[one[0]] and (work.assumed or self._may_keep(state, work)):
            found |= {Tracked(BUFFER, Place(("register", one[2])), GRAPH if not work.assumed else "")}
        return found

    def _may_own(self, function: Function, one: Instruction) -> bool:
        """Whether an unknown call may keep what it is given: a method, a constructor, or an unknown value whose result nobody uses."""
        if one[0] not in (op.CALL, op.INVOKE):
            return True
        called = list(self.transfer.values(function, one[3]))
        if function.uses.get(one[2]) and (one[0] == op.CALL or any(isinstance(value, (External, ModuleObject)) for value in called)):
            return False
        return one[0] == op.INVOKE or is_unknown(called)

    def _may_share(self, function: Function, made: int) -> bool:
        """Whether new memory may be the block that is released: blocks of the two classes of sizes never are."""
        one, two = self._size(self._site.function, self._work.made), self._size(function, made)
        return one is None or two is None or (one <= _SMALL) == (two <= _SMALL)

    def _size(self, function: Function, register: int) -> int | None:
        found = {self._sizes.of(each).bytes for each in self._sizes.origins.of(function, register)}
        return found.pop() if len(found) == 1 else None

    def _may_keep(self, state: State, work: Worked) -> bool:
        """Whether autograd may hold an operand for the backward pass: there is another one, which may need a gradient."""
        function = state.frame.function
        if work.made < 0 or any("no_grad" in each or "inference_mode" in each for each in function.code.decorators):
            return False
        return any(not self._touches(state, each) and self.memory.may_be_memory(function, each) for each in work.reads)

    def may_be_order(self, action: Action) -> bool:
        return isinstance(action, Kept) or super().may_be_order(action)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Also what tells the pool of the use."""
        if isinstance(action, Kept):
            return self._is_told(state, one, action)
        return self._is_in_use(state.tracked) and super().orders(state, one, action)

    def _is_told(self, state: State, one: Instruction, action: Kept) -> bool:
        """Whether the pool is told of a use: not by a mark for its own stream, behind which the memory is anyway."""
        if not self._touches(state, action.register) and not self._is_gradient_told(state, action.register):
            return False
        home, lane = self._lane, self.lanes.of(state.frame, one, action.stream)
        return not (lane.kind == home.kind == CURRENT or (lane.is_one and lane.made == home.made and lane.owner == home.owner))

    # --- references

    def redone(self, state: State, one: Instruction) -> bool:
        """The next round allocates anew: the name of the last one is bound again."""
        gone = ("register", one[2])
        if any(self._is_kept(state, held) for held in state.tracked if held.kind == BUFFER and held.place.root != gone):
            return False
        if self._is_in_use(state.tracked):
            self._report_release(state, one)
        return True

    def arrive(self, state: State, one: Instruction) -> Answer:
        """A generator that is resumed refers no longer to what it has lent, and allocates anew."""
        if one[0] != op.NEXT or not self._is_in_use(state.tracked):
            return None
        lent = {held for held in state.tracked if held.kind == BUFFER and is_lent_by(held.place, one[3])}
        if not lent:
            return None
        left = {held for held in state.tracked if held.kind != BUFFER or not is_lent(held.place)}
        state = state._replace(tracked=frozenset(left))
        if not self._alive(state) and self._is_home(self.lanes.of(state.frame, one, Stream(CURRENT))):
            self._report_release(state, one)
            return ORDERED
        return state.tracked

    def forgotten(self, state: State, one: Instruction) -> State:
        """``del x``: the registers of a name refer to nothing. A container that is emptied keeps nothing."""
        function = state.frame.function
        if one[0] in CALLING and one in state.path and self._is_in_use(state.tracked):
            is_entered = any(self._orders_inside(edge.callee) for edge in self.transfer.edges(function, one))
            _ = is_entered or self.redone(state, one)
        after = self._let_go(state, one)
        if after.tracked == state.tracked or not self._is_in_use(after.tracked) or self._alive(after):
            return after
        return after._replace(tracked=after.tracked | {Tracked(DROPPED, MARK, "", Site(function, one))})

    def _returned(self, state: State, register: int) -> Iterator[State]:
        after = list(super()._returned(state, register))
        function = state.frame.function
        if state.frame.caller is None and not self.callers(function):
            if function.code.kind == "module":
                return  # the program is over
            end = function.code.blocks[state.block][-1]
            if self._is_in_use(state.tracked) and self._lane.kind == CURRENT and not self._outlives(state, register):
                self._report_release(state, end, is_over=True)
            else:
                after = [*self._next_call(state, register, end)]
        yield from after

    def over(self, state: State) -> bool:
        """What has used memory is followed on when that is gone."""
        return not state.tracked

    def _up(self, state: State, register: int) -> Iterator[State]:
        """Callers. Where one has made a stream current, the call allocates on that: the path begins there anew."""
        for up in super()._up(state, register):
            lane = self.lanes.of(up.frame, up.path[-1], Stream(CURRENT)) if self._lane.kind == CURRENT else self._lane
            if lane is self._lane or lane.kind == CURRENT:
                yield up
            elif lane.kind == NAMED:
                self._raised.append((up, lane))

    def _yielded(self, state: State, one: Instruction, register: int) -> Iterator[State]:
        """Whoever takes a value that a stream of the generator's own has made uses it on the stream that is current there."""
        function = state.frame.function
        if state.frame.caller is not None or self._lane.kind != NAMED or self.callers(function):
            for after in super()._yielded(state, one, register):
                yield after._replace(tracked=frozenset(map(as_lent, after.tracked))) if state.frame.caller is None else after
            return
        tracked = state.tracked
        if self.leads(state, BUFFER, register):
            if any(self._is_from_outside(place) for place in self._lane.places) and not self._lane.made:
                return
            tracked = tracked | {Tracked(USED, MARK, "", Site(function, one)), Tracked(STREAM, AMBIENT)}
        yield state._replace(place=state.place + 1, tracked=tracked)

    def _is_from_outside(self, place: Place) -> bool:
        return place.root[0] == "parameter" and not place.path

    def _report_release(self, state: State, again: Instruction, is_over: bool = False) -> None:
        if state.guesses:
            return
        site = Site(state.frame.function, again)
        use, drop = (self._first(state, kind, site) for kind in (USED, DROPPED))
        lane = self._streams.get(use, Lane(CURRENT, (), frozenset(), True, ""))
        kind = min((held.type for held in state.tracked if held.kind == DROPPED and held.announced == drop), default="")
        if self._by_callers and (not kind or any(one.kind and one.drop == drop for one in self._released.values())):
            return
        found = Release(
            self._site, use, drop, None if is_over else site, self._lane, lane, self._work.library, kind, self._calls.get(use, ())
        )
        if self._site not in self._released or (kind and not self._released[self._site].kind):  # another path may only let go of it
            self._released[self._site] = found

    def _first(self, state: State, kind: str, otherwise: Site) -> Site:
        """The first place in the program that is noted as one of a kind."""
        noted = [held.announced for held in state.tracked if held.kind == kind and held.announced is not None]
        return min(noted, key=lambda site: (site.function.unit.path, site.at), default=otherwise)
