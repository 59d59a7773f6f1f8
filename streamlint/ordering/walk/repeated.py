"""Work of loops on a path: what indices have named in an earlier round, and work that meets itself where each round has its stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.memory.regions import ADDS, Region, Regions
from streamlint.ordering.paths.rounds import Rounds, next_round
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.places import rotation
from streamlint.ordering.places.alternation import Alternation
from streamlint.ordering.places.flow import BUFFER, STREAM, Tracked
from streamlint.ordering.places.places import ASIDE, Place
from streamlint.ordering.streams.lanes import MADE, WAITER, Lane, Lanes
from streamlint.ordering.walk.walk import Walk
from streamlint.transfer.actions import CURRENT, NAMED
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import Worked
from streamlint.waits.operands import operand_of


class Repeated(Walk):
    """Follows work over the rounds of loops."""

    renames = True

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.lanes = Lanes(transfer, self.places, self.currents)
        self.regions = Regions(transfer)
        self._alternation = transfer.one_of(Alternation)
        self._rounds = Rounds()
        self._loop: Loop | None = None  # whose rounds put the work on a stream each
        self._touched: dict[str, Region] = {}  # by the register of memory: the part of it that the work touches
        self._work: Worked
        self._lane: Lane
        self._writes: bool

    def redone(self, state: State, one: Instruction) -> bool:
        """What a caller still holds of the last round's memory is used later. On another stream, the work may meet itself."""
        if self._writes and (self._work.writes or self._work.made >= 0) and self._meets_itself(state, one):
            self._report(state, one, self._work, self.lanes.of(state.frame, one, self._work.stream))
        memory = [held.place for held in state.tracked if held.kind == BUFFER]
        if any(any(map(rotation.is_cyclic, place.path)) for place in memory) or self._is_at_other_slot(state, one, memory):
            return False
        return self._work.made < 0 or not any(place.root[0] == ASIDE for place in memory)

    def _is_at_other_slot(self, state: State, one: Instruction, memory: list[Place]) -> bool:
        """Whether all that is followed stands at indices of its own, and this round does the work at others: ``slots[(i + 1) % 2]``."""
        function = state.frame.function
        if not memory or not all(self._alternation.names_slot(function, function.blocks[one], place) for place in memory):
            return False
        registers = (*self._work.writes, *self._work.reads)
        return not any(place in memory for register in registers for place in self.places.names(function, register))

    def _meets_itself(self, state: State, one: Instruction) -> bool:
        """Whether the next round writes the same memory on its own stream, and nothing orders that behind the last one."""
        function, work = state.frame.function, self._work
        loop = self._loop if state.frame.caller is None else None
        if state.doubts > MOST_GUESSES or (loop is None and not self._is_of_other(state, one)):
            return False
        lane = self.lanes.of(state.frame, one, work.stream)
        mine = {each.place for each in lane.tracked(STREAM) if each.place.root[:2] != MADE}
        if lane.kind != NAMED or any(each.kind in (STREAM, WAITER) and each.place in mine for each in state.tracked):
            return False
        if work.made >= 0:  # what it has made last is what it reads now
            read = {place for register in work.reads if register != work.made for place in self.places.names(function, register)}
            return any(held.kind == BUFFER and held.place in read for held in state.tracked)
        return self._touches_next_round(state, one, loop)

    def _touches_next_round(self, state: State, one: Instruction, loop: Loop | None) -> bool:
        return self._writes_next_round(state, one, loop) or (loop is not None and self._reads_last(state, loop))

    def _reads_last(self, state: State, loop: Loop) -> bool:
        """Whether work reads what the round before has written, by the name that this round has for it: ``levels[i - 1]``."""
        function = state.frame.function
        used = (*self._work.reads, *self._work.writes)
        places = (place for register in used for place in self.places.names(function, register))
        read = {place for place in places if rotation.counts(place, function, loop)}
        return any(held.kind == BUFFER and held.place in read for held in state.tracked)

    def _writes_next_round(self, state: State, one: Instruction, loop: Loop | None) -> bool:
        """Whether work writes memory that is tracked in each round, no other part of it; in another call, also whether it reads it."""
        function, work = state.frame.function, self._work
        regions = self.regions.of(function, one)
        if loop is not None and not regions and rotation.is_distinguished(function, one, loop, (*work.writes, *work.reads)):
            return False
        for register in (*work.writes, *(work.reads if loop is None else ())):
            region = regions.get(register)
            if region is not None and (region.kind == ADDS or (loop is not None and rotation.varies(region.terms, function, loop))):
                continue
            places = self.places.names(function, register)
            kept = [place for place in places if loop is None or rotation.stays(place, function, loop)]
            if any(held.kind == BUFFER and held.place in kept for held in state.tracked):
                return True
        return False

    def _is_of_other(self, state: State, one: Instruction) -> bool:
        """Whether the function was called anew for another object with its own stream: one of several that a loop goes through."""
        caller, call = state.frame.caller, state.frame.call
        if caller is None or call is None or caller.caller is not None or call[0] not in (op.CALL, op.INVOKE):
            return False
        around = self.currents.at(caller.function, call) if self._work.stream.kind == CURRENT else None
        if around is not None and around.kind == NAMED and self.currents.at(state.frame.function, one) is None:
            return rotation.turning(caller.function, around.register) is not None
        for place in self.lanes.of(state.frame, one, self._work.stream).places:
            index = place.root[1] if place.root[0] == "parameter" and place.path else None
            register = operand_of(caller.function, call, state.frame.function, index) if isinstance(index, int) else None
            if index == 0 and state.frame.function.has_receiver and call[0] == op.INVOKE:
                register = call[3]
            if register is not None and register >= 0:
                return rotation.turning(caller.function, register) is not None
        return False

    def _turning(self, function: Function, one: Instruction, work: Worked) -> Loop | None:
        """The loop whose rounds put work on a stream each."""
        stream = self.currents.at(function, one) if work.stream.kind == CURRENT and work.stream.register < 0 else work.stream
        if stream is None or stream.kind != NAMED or stream.register < 0:
            return None
        return rotation.turning(function, stream.register)

    def _entering(self, state: State, block: int) -> Iterator[State]:
        """Slots that take turns have their other names in the next round."""
        function = state.frame.function
        loop = next_round(function, state.block, block)
        for after in super()._entering(state, block):
            if loop is not None:
                if (turned := _turned(function, loop, after)) is not None:
                    yield turned
                asked = {(state.frame, key, said) for key, said in self._rounds.later(function, loop)}
                after = after._replace(decided=after.decided | asked)
                if any(rotation.is_slot(held.place) for held in after.tracked):
                    after = after._replace(tracked=frozenset(self._in_next_round(function, loop, after.tracked)))
            elif (entered := function.loop_heads.get(block)) is not None:
                begun = self._alternation.first_round(function, entered, after.tracked) - after.tracked
                after = after._replace(tracked=after.tracked.union(held._replace(place=rotation.ahead(held.place)) for held in begun))
            yield after

    def _in_next_round(self, function: Function, loop: Loop, tracked: frozenset[Tracked]) -> Iterator[Tracked]:
        for held in tracked:
            for each in self._alternation.next_round(function, loop, frozenset({held})):
                yield each if each == held else each._replace(place=rotation.ahead(each.place))

    def forgotten(self, state: State, one: Instruction) -> State:
        """What indices have named before a loop goes on is what they named in an earlier round."""
        if one[0] not in (op.PHI, op.NEXT, op.UNPACK) or not any(held.place.path or held.type for held in state.tracked):
            return state
        renamed = frozenset(self._earlier(state.frame.function, held, one[2]) for held in state.tracked)
        return state._replace(tracked=renamed)

    def _earlier(self, function: Function, held: Tracked, register: int) -> Tracked:
        region = self._touched.get(held.type)
        if (
            region is not None
            and region.function is function
            and any(rotation.is_own(terms) and rotation.names(terms, register) for terms in region.terms)
        ):
            key = f"{held.type} before"
            self._touched[key] = region._replace(terms=frozenset((rotation.EARLIER, terms) for terms in region.terms))
            held = held._replace(type=key)
        return held._replace(place=rotation.earlier(held.place, register)) if rotation.is_stale(held.place, register) else held

    def _report(self, state: State, one: Instruction, use: Worked, other: Lane) -> bool:
        """Note that the work meets other work; whether that is what is looked for, so that the path ends there."""
        raise NotImplementedError


def _turned(function: Function, loop: Loop, state: State) -> State | None:
    """A state as some rounds later, when the indices that go round mean the same elements again; None where memory is at no such index.
    It has gone through a whole round before, for what that orders by other indices."""
    again = {held: held._replace(place=rotation.again(held.place, function, loop)) for held in state.tracked}
    if not any(held.kind == BUFFER and held != later for held, later in again.items()):
        return None
    return state._replace(tracked=frozenset(again.values()).union(held for held in state.tracked if held.kind != BUFFER))
