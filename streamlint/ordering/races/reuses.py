"""SL008: the host writes, or frees, page-locked memory that an asynchronous copy, or a kernel, may still be using."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.counters import iterable_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Instance, Memory, Object, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.captures.replayed_copies import Launch, ReplayedCopies
from streamlint.ordering.memory.kernel_accesses import KernelAccesses
from streamlint.ordering.memory.parts import Sum, as_entered, begins, length, lies_in, plus, sum_of
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.ring_lags import RingLags
from streamlint.ordering.paths.ring_sizes import RingSizes
from streamlint.ordering.paths.rounds import Rounds, next_round
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.paths.turns import Pools
from streamlint.ordering.paths.walk_names import aside
from streamlint.ordering.places.alternation import Alternation
from streamlint.ordering.places.flow import BUFFER, EVENT, EXACT, STREAM, Tracked
from streamlint.ordering.places.open_methods import open_methods
from streamlint.ordering.places.origins import YIELDED
from streamlint.ordering.places.places import ANY, ASIDE, Element, Place, register_place
from streamlint.ordering.walk.indices import Indexed, is_named
from streamlint.transfer.actions import Action, Copied, Freed, Synchronized, Updated, Viewed, Written
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.operands import operand_of

_UP = frozenset({"h2d", "unknown<host", "device<unknown", "unknown<unknown"})
_DOWN = frozenset({"d2h", "host<unknown", "host<device"})


class Reuse(NamedTuple):
    """A copy, the write or free that it may not see the end of, and the calls that lead to each from where their paths meet."""

    copy: Site
    copied: Copied
    write: Site
    name: str
    is_free: bool
    copy_calls: tuple[Site, ...]
    write_calls: tuple[Site, ...]
    doubts: int


class Reuses(Indexed):
    """Finds the writes of a program to memory that copies still use."""

    flow_of = Pools
    is_wide = False
    """Whether it counts, too, what no known caller connects: a method and the next call of one."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.replayed = transfer.one_of(ReplayedCopies, transfer, self.places)
        self._rounds = Rounds(RingSizes(transfer.facts).fills)
        self._lags = RingLags(transfer)
        self._alternation = transfer.one_of(Alternation)
        self._copied: Copied
        self._site: Site
        self._reported: Site  # of a copy that a graph runs, where it was captured
        self._side_of = op.NONE
        self._size: Sum | None = None
        self._ahead: Sum = ()
        self._is_whole = False  # whether the copied range begins where the memory does
        self._given_at: int | None = None
        self._found: dict[tuple[Site, Site], Reuse] = {}

    def find(self) -> Iterator[Reuse]:
        """The reuses of the program."""
        for call, copied in self.transfer.copies():
            if copied.asynchronous is False or (copied.asynchronous is None and copied.flag == op.NONE):
                continue
            memory = self._side(call, copied)
            if memory is not None:
                yield from self._followed(Site(call.function, call.instruction), copied, memory, self._size_of(call, memory))
        self._given_at = None
        for site, copied, offset in self.transfer.one_of(KernelAccesses, self.transfer, self.places).reads():
            yield from self._followed(site, copied, copied.source, None if offset is None else (), offset or ())

    def _followed(self, site: Site, copied: Copied, memory: int, size: Sum | None, offset: Sum = ()) -> Iterator[Reuse]:
        """The reuses of the memory of a copy, or of what a kernel reads, which begins so far behind what a register holds."""
        self._found = {}
        self._copied, self._site, self._reported = copied, site, site
        self._side_of, self._size, self._ahead = memory, size, plus((), offset, -1)
        self._is_whole = not any(self._distances(site.function, memory).values())
        launches = list(self.replayed.launches(site))
        if not launches:
            self.follow(site, copied, memory)
        self._follow_launches(launches, memory)
        yield from self._found.values()

    def _follow_launches(self, launches: Iterable[Launch], memory: int) -> None:
        """The copy where graphs are launched that have recorded it: the capture itself copies nothing."""
        site = self._reported
        for launch in launches:
            self._site, self._side_of, self._size = launch.site, op.NONE, None
            names = self.replayed.memory(site, launch, self._memory(site.function, memory))
            self.follow_launch(launch.site, names, launch.call.stream())

    # --- which copies

    def _size_of(self, call: ModelledCall, memory: int) -> Sum | None:
        """How much is copied; None for all of the memory."""
        size = call.one("bytes")
        if size is not None:
            return sum_of(call.function, size)
        one = call.function.definitions[memory]
        return length(call.function, one) if one is not None else None

    def redone(self, state: State, one: Instruction) -> bool:
        return self.held(state, self._side_of) is not None

    def _side(self, call: ModelledCall, copied: Copied) -> int | None:
        """The side of a copy that the host must leave alone: memory that the program is seen to have page-locked."""
        self._given_at = None
        if copied.direction in _UP and self._is_locked(call, copied.source):
            return None if self.origins.is_of_host_module(call.function, copied.target) else copied.source
        if copied.direction in _DOWN and self._is_locked(call, copied.target):
            return None if self._goes_either_way(call, copied) else copied.target
        side = copied.source if copied.direction in _UP else copied.target if copied.direction in _DOWN else op.NONE
        place = self.places.of(call.function, side) if side >= 0 else None
        if place is not None and place.root[0] == "parameter" and not place.path and _kinds(call.values(side)) != {"pageable"}:
            self._given_at = int(str(place.root[1]))
            if any(self._gives_locked(*where, call.function) for where in self.callers(call.function)):
                return side
        return None

    def _goes_either_way(self, call: ModelledCall, copied: Copied) -> bool:
        """Whether a setting says which way a call copies, and nothing shows that it comes from a device: on the host all is there."""
        actions = self.transfer.of(call.function, call.instruction)
        is_up = any(isinstance(action, Copied) and action.direction in _UP for action in actions)
        return is_up and call.space(copied.source) != "device"

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        """Of memory that some callers have page-locked and others not, the former tell."""
        return self._given_at is None or state.path != () or self._gives_locked(caller, call, self._site.function)

    def _gives_locked(self, caller: Function, call: Instruction, function: Function) -> bool:
        given = operand_of(caller, call, function, self._given_at or 0)
        shared = self.transfer.shared(caller, given) if given is not None and given >= 0 else ()
        return any(_kinds(self.transfer.values(caller, register)) == {"pinned"} for register in shared)

    def _is_locked(self, call: ModelledCall, register: int) -> bool:
        one = call.function.definitions[register] if register >= 0 else None
        if one is not None and any(made.row.effect == "pin" for made in self.transfer.modelled(call.function, one)):
            return True
        kinds = _kinds(call.memory(register))
        if kinds == {"pageable"}:
            return self._is_registered(call.function, register)
        return "pinned" in kinds and "pageable" not in kinds

    def _is_registered(self, function: Function, register: int) -> bool:
        """Whether the same variable was page-locked in place."""
        given = self._registered.get(function)
        names = self._names_of(function, register) if given else set()
        return any(not names.isdisjoint(self._names_of(function, each)) for each in given or ())

    def _names_of(self, function: Function, register: int) -> set[Place]:
        """All names of what a register holds or is the address of."""
        return {name for each in self.transfer.shared(function, register) for name in self.places.names(function, each)}

    @cached_property
    def _registered(self) -> dict[Function, list[int]]:
        found: dict[Function, list[int]] = defaultdict(list)
        for call in self.transfer.sites(frozenset({"register"})):
            found[call.function] += call.all("of")
        return dict(found)

    # --- names of the memory

    def _memory(self, function: Function, target: int) -> Iterator[Tracked]:
        """The memory by all its names, and views of it that were made before."""
        behind = self._distances(function, target)
        names = [self._placed(held, behind) for held in super()._memory(function, target)]
        yield from names
        for register in behind:
            yield from (Tracked(BUFFER, place) for place in self.origins.of(function, register))
            yield from (Tracked(BUFFER, place, "", None, behind[register]) for place in self._returned_from(function, register))
        yield from self._seen_by(function, names)

    def raised(self, state: State, call: Instruction) -> State:
        state = super().raised(state, call)
        function = state.frame.function
        names = [held for held in state.tracked if held.kind == BUFFER]
        loops = {other for held in names for other in self.by_origin(function, held)}
        return state._replace(tracked=state.tracked | set(self._seen_by(function, names)) | loops)

    def _up(self, state: State, register: int) -> Iterator[State]:
        yield from super()._up(state, register)
        yield from self._next_calls(state)

    def _next_calls(self, state: State) -> Iterator[State]:
        """The methods of an object that no known code calls, behind another one of them; a method that waits is there for callers."""
        function = state.frame.function
        methods = open_methods(self.transfer, function) if self.is_wide and all(one[0] in CALLING for one in state.path) else []
        if not any(self._synchronizes(method) for method in methods if method is not function):
            yield from self._called_next(state, methods)

    def _synchronizes(self, function: Function) -> bool:
        """Whether a function waits for a stream, an event or the device."""
        calls = (one for opcode in CALLING for one in function.by_opcode[opcode])
        return any(isinstance(action, Synchronized) for one in calls for action in self.transfer.of(function, one))

    def _distances(self, function: Function, target: int) -> dict[int, Sum]:
        """By register that the copied memory is a view of: how far behind the copied range it begins."""
        found: dict[int, Sum] = {target: self._ahead}
        for register in self.transfer.shared(function, target):
            one = function.definitions[register] if register >= 0 else None
            for action in self.transfer.of(function, one) if one is not None else ():
                if isinstance(action, Viewed) and one is not None:
                    found.setdefault(action.register, plus(found.get(register, ()), begins(function, one), -1))
        return found

    def _placed(self, held: Tracked, behind: dict[int, Sum]) -> Tracked:
        root = held.place.root
        part = behind.get(int(str(root[1]))) if root[0] == "register" and not held.place.path else None
        if part is None:
            parts = set(behind.values())
            part = parts.pop() if len(parts) == 1 else list(behind.values())[-1]
        return held._replace(part=part)

    def part_of(self, function: Function, one: Instruction, held: Tracked) -> Sum:
        return plus(held.part, begins(function, one))

    # --- indices that change from round to round, generators that go on

    def _entering(self, state: State, block: int) -> Iterator[State]:
        function = state.frame.function
        loop = next_round(function, state.block, block)
        for after in super()._entering(state, block):
            if loop is None:
                yield after
                continue
            is_slot = any(held.kind == BUFFER and any(isinstance(key, Element) for key in held.place.path) for held in after.tracked)
            known = {(state.frame, key, said) for key, said in self._rounds.later(function, loop, is_slot)}
            yield self._anew(after._replace(decided=after.decided | known), function)
            if later := self._alternation.other_names(function, loop, after.tracked) if is_slot else frozenset():
                asked = {(state.frame, key, said) for key, said in self._rounds.later(function, loop)}
                yield after._replace(decided=after.decided | asked, tracked=later)

    def _inside(self, state: State, one: Instruction, index: int, callee: Function) -> Iterator[State]:
        is_later = self._is_later_round(state, one)
        for inside in super()._inside(state, one, index, callee):
            if is_later and inside.frame.caller is state.frame:
                known = {(inside.frame, key, said) for key, said in self._rounds.entered(callee)}
                yield inside._replace(decided=inside.decided | known)
            else:
                yield inside

    def _is_later_round(self, state: State, one: Instruction) -> bool:
        """Whether a call comes in a later round than the copy, which a call behind it has made: a slot that it finds comes again."""
        frame, at = state.frame, one
        while (caller := frame.caller) is not None and (call := frame.call) is not None:
            frame, at = caller, call
        function = frame.function
        if not state.path or state.path[-1] not in function.homes or at not in function.homes:
            return False
        if (over := iterable_of(function, at)) >= 0 and over == state.path[-1][2]:
            return True  # a generator goes on that the path has come out of
        loops = [loop for loop in function.loop_heads.values() if function.blocks[at] in loop.body]
        is_behind = at == state.path[-1] or function.runs_before(at, state.path[-1])
        return is_behind and any(function.blocks[state.path[-1]] in loop.body for loop in loops)

    def _returned(self, state: State, register: int) -> Iterator[State]:
        yield from super()._returned(self._anew(state, state.frame.function), register)

    def _anew(self, state: State, function: Function) -> State:
        """A state whose indices are computed anew: of memory only what comes again is known, of what orders any element may be meant.

        Once a slot comes again all others have had their turn: on one stream each of their events was recorded behind the copy.
        """
        kept: set[Tracked] = set()
        slots = {held.kind for held in state.tracked if any(map(is_named, held.place.path))}
        for held in state.tracked:
            if held.place.root[0] == ASIDE:  # by the names of another function
                kept.add(held)
                continue
            stays = all(self.turns.returns(function, atom) for monomial, _ in held.part for atom in monomial)
            is_any = held.kind == EVENT and BUFFER in slots and STREAM not in slots
            if stays and not is_any and self.turns.stays(function, held.place):
                kept.add(held)
            elif held.kind not in EXACT:
                path = (ANY if isinstance(key, Element) else key for key in held.place.path)
                kept.add(held._replace(place=Place(held.place.root, tuple(path))))
        return state._replace(tracked=frozenset(kept))

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        given = []
        if one[0] == op.NEXT:
            given = [held for held in state.tracked if held.place.root == ("register", one[3]) and held.place.path[:1] == (YIELDED,)]
        if not given:
            yield from super()._entered(state, one, index)
            return
        function, depth = state.frame.function, state.frame.depth
        rest = {held._replace(place=aside(held.place, depth)) for held in state.tracked}
        for edge in self.transfer.edges(function, one):
            for at in edge.callee.by_opcode[op.YIELD]:
                registers = [self.origins.inside(edge.callee, at[3], held.place.path[1:]) for held in given]
                inner = {held for register in registers if register is not None for held in self._memory(edge.callee, register)}
                block, place = edge.callee.homes[at]
                frame = Frame(edge.callee, state.frame, one, depth + 1)
                if not state.frame.runs(edge.callee):
                    yield state._replace(frame=frame, block=block, place=place + 1, before=0, tracked=frozenset(rest | inner))

    def _taken(self, state: State, one: Instruction) -> Iterator[State]:
        """Where threads take out of a queue what is put in."""
        function = state.frame.function
        names = self.places.names(function, one[6]) if len(one) > 6 else ()
        given = tuple(self.flow.moved(state.tracked, names, Place(("register", op.NONE))))
        for taken in self.origins.taken(function, one[3]) if any(held.kind == BUFFER for held in given) else ():
            at = taken.instruction
            tracked = frozenset(held._replace(place=register_place(at[2]).behind(*held.place.path)) for held in given)
            resumed = self.start(taken.function, at, tracked, ())
            yield resumed._replace(stream=state.stream, sites=state.sites, guesses=state.doubts)

    def _is_elsewhere(self, state: State) -> bool:
        """Whether a path goes on in another thread."""
        return not state.path and state.frame.root.function is not self._site.function

    # --- what writes

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        return super().is_quiet(function, one) and not self.origins.blocks(function, one)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        if self._written(state, one, action) is not None or self._is_of_earlier_round(state, one, action):
            return False
        return super().orders(state, one, action) or (self._is_elsewhere(state) and self.origins.blocks(state.frame.function, one))

    def _is_of_earlier_round(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether the host waits for an event in a ring that is longer than that of the buffers, and was recorded before the copy."""
        if not isinstance(action, Synchronized) or not isinstance(action.of, int) or self._side_of < 0:
            return False
        if state.frame.of(self._site.function) is None:
            return False
        return self._lags.is_before(self._site.function, self._side_of, state.frame, one, action.of)

    def meets(self, state: State, one: Instruction, action: Action) -> bool:
        if self._written(state, one, action) is None or state.doubts > MOST_GUESSES:
            return False
        if self._given_at is not None and not state.path:
            return False
        write = Site(state.frame.function, one)
        copy_calls = tuple(Site(state.frame.root.function, call) for call in state.path[-1:] if call[0] in CALLING)
        name = action.call.name if isinstance(action, Copied) else str(getattr(action, "name", ""))
        found = Reuse(self._reported, self._copied, write, name, isinstance(action, Freed), copy_calls, state.frame.calls, state.doubts)
        before = self._found.get((self._reported, write))
        if before is None or found.doubts < before.doubts:
            self._found[self._reported, write] = found
        return True

    def _written(self, state: State, one: Instruction, action: Action) -> Tracked | None:
        """The memory, if an action is a write of the host to it: by itself, by a copy that it waits for, or the memory's end."""
        function = state.frame.function
        held: Tracked | None = None
        if isinstance(action, Written):
            held = self.held(state, action.register) or self.held_at(state, self._referred(function, one))
        elif isinstance(action, Freed):
            return self.held(state, action.register)
        elif isinstance(action, Updated):
            return self.updated(state, action)
        elif isinstance(action, Copied) and action.asynchronous is False and action.direction not in ("d2h", "h2d", "d2d"):
            held = self.held(state, action.target)
        if held is None:
            return None
        begin, extent = as_entered(state.frame, begins(function, one)), _extent(function, one, action)
        extent = as_entered(state.frame, extent) if extent is not None else None
        return held if lies_in(function, plus(held.part, begin), self._size, extent, self._is_whole) else None

    def _referred(self, function: Function, one: Instruction) -> Iterator[Place]:
        """C++: memory to an element of which ``operator[]`` of a class gives a reference."""
        if not function.is_cpp or one[0] != op.SET_ITEM:
            return
        for value in self.transfer.values(function, one[2]):
            found = self.facts.hierarchy.lookup(value.definition, "operator[]") if isinstance(value, Instance) else None
            for callee in found[1] if found is not None else ():
                for returned in callee.by_opcode[op.RETURN]:
                    place = self.places.of(callee, returned[2])
                    if place.root == ("parameter", 0):
                        for name in self.places.names(function, one[2]):
                            yield name.behind(*place.path[:-1])


def _extent(function: Function, one: Instruction, action: Action) -> Sum | None:
    """How much a write sets: a part by its index, or the view that it is given; nothing where that is not seen."""
    if one[0] == op.SET_ITEM:
        return length(function, one)
    register = action.register if isinstance(action, Written) else action.target if isinstance(action, Copied) else op.NONE
    view = function.definitions[register] if register >= 0 else None
    return length(function, view) if view is not None and view[0] == op.ITEM else ()


def _kinds(values: Iterable[Object]) -> set[str]:
    """How values are kept on the host: page-locked or not."""
    return {value.pinning for value in values if isinstance(value, Memory) and value.space != "device"}
