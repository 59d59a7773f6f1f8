"""Which way a path takes at a branch: what it knows of the condition, and what it guesses."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.counters import counts_rounds, empties
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import unnegated
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Loop
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.deciding import deciding
from streamlint.ordering.paths.exhausted import Exhausted
from streamlint.ordering.paths.further_rounds import FurtherRounds
from streamlint.ordering.paths.liveness import Liveness
from streamlint.ordering.paths.rounds import next_round
from streamlint.ordering.paths.set_flags import compared_with_none
from streamlint.ordering.paths.states import MOST_GUESSES, State
from streamlint.ordering.paths.topics import implied, topic
from streamlint.ordering.paths.turns import unless_new
from streamlint.ordering.places.flow import OBJECTS, Tracked, leads_to
from streamlint.ordering.streams.made_streams import MadeStreams, as_positive
from streamlint.ordering.walk.walk_calls import Calls
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Action, Stream
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike, asked_by


class Branches(Calls):
    """Follows paths through branches. One whose other way would have ordered the operation may be guessed, not two (`policies`)."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.made_streams = transfer.one_of(MadeStreams, transfer, self.places, self.currents)
        self._topics: dict[Function, dict[int, list[int]]] = {}
        self._meaning: dict[tuple[Function, int], list[tuple[Instruction, tuple[Action, ...], list[Function]]]] = {}
        self._live = Liveness(self)
        self._exhausted = Exhausted()
        self.further = FurtherRounds()

    def _entering(self, state: State, block: int) -> Iterator[State]:
        frame = state.frame
        before = self._edge(frame.function, state.block, block)
        guards = frozenset(guard for guard in state.guards if guard[0] != frame or guard[2] != block)
        decided = state.decided
        loop = next_round(frame.function, state.block, block) if decided else None
        if loop is not None:  # what a round has computed is computed anew
            again = frozenset((frame, *asked) for asked in self.further.promised(frame, decided, loop))
            kept = (known for known in decided if known[0] != frame or not self._changes(frame.function, known[1], loop))
            decided = again.union(kept)
        decided = self._live.decided(frame, block, decided) if decided else decided
        tracked = self._live.tracked(frame.function, block, state.tracked) if self.forgets else state.tracked
        tracked = self._exhausted.behind(frame.function, state.block, block, tracked)
        if tracked:
            yield state._replace(block=block, place=0, before=before, tracked=tracked, guards=guards, decided=decided)

    def _changes(self, function: Function, key: Key, loop: Loop) -> bool:
        """Whether a condition rests on a register that the rounds of a loop define."""
        if len(key) == 1 and isinstance(key[0], int):
            definition = function.definitions[key[0]] if 0 <= key[0] < len(function.definitions) else None
            return definition is not None and function.homes[definition][0] in loop.body
        return any(self._changes(function, part, loop) for part in key if isinstance(part, tuple))

    def _edge(self, function: Function, block: int, after: int) -> int:
        """The number of the edge by which a block is entered, where that matters: for what meets there, and for the head of a loop."""
        predecessors = function.phi_order[after]
        if len(predecessors) < 2 or (function.code.blocks[after][0][0] != op.PHI and after not in function.loop_heads):
            return 0
        return predecessors.index(block) if block in predecessors else 0

    def _branched(self, state: State, end: Instruction) -> Iterator[State]:
        """The blocks behind a branch to which a path may go."""
        function = state.frame.function
        condition, turned = unnegated(function, end[2])
        done = self._of_operation(state, condition)
        if done is not None:
            yield from self._entering(state, end[4] if done != turned else end[3])
            return
        key = alike(function, condition)
        known = self._truths(state, condition, key)
        loop = function.loop_heads.get(state.block)
        is_first = loop is not None and self._is_first(state, loop)
        for holds, block, other in ((not turned, end[3], end[4]), (turned, end[4], end[3])):
            after = state
            if (known and holds not in known) or (loop is not None and self._is_no_way(state, condition, loop, block)):
                continue
            if loop is not None and is_first and block not in loop.body:
                after = state._replace(guesses=state.guesses + self._may_order(state, other, state.block))
            if not known and loop is None:
                after = self._guessed(state, key, holds, block, other)
                if (fixed := self.fixed.tested(function, condition)) is not None:
                    after = after._replace(decided=after.decided | {(*fixed, holds)})
            if after.guesses <= MOST_GUESSES:
                tracked = unless_new(function, condition, holds, after.tracked) | self.learned(state, condition, holds)
                yield from self._entering(after._replace(tracked=tracked), block)

    def _is_no_way(self, state: State, condition: int, loop: Loop, block: int) -> bool:
        """Whether a path does not go from the head of a loop to a block: a loop over elements is looked at as it runs, one over a single
        element as it runs once."""
        if not self._is_first(state, loop):
            return block in loop.body and self._is_only_round(state.frame, loop)
        is_counted = counts_rounds(state.frame.function, condition) or empties(state.frame.function, condition, loop)
        is_run = is_counted or self.is_bounded(state, condition) or self.meanwhile.is_polling(state.frame, loop)
        return block not in loop.body and is_run

    def _of_operation(self, state: State, condition: int) -> bool | None:
        """The truth of a condition that asks about what is followed: whether it is over, gone, or what a generator still has in hand."""
        done = self.done_where(state, condition)
        if done is None:
            done = self._gone_where(state, condition)
        if done is None and self.resumes and self.generators.goes_on(state, condition):
            return False
        return done

    def _truths(self, state: State, condition: int, key: Key) -> set[bool]:
        """The truths that a condition may have by what a path has decided, or by what it asks; empty where that is not known."""
        constant = self.conditions.truth(state.frame, condition)
        if constant is not None:
            return {constant}
        places = [(state.frame, key)]
        if (fixed := self.fixed.tested(state.frame.function, condition)) is not None:
            places.append(fixed)
        decided = ((asked, holds, mine) for frame, asked, holds in state.decided for where, mine in places if frame == where)
        found = {truth for asked, holds, mine in decided if (truth := implied(asked, holds, mine)) is not None}
        if not found and (above := self.conditions.kept_flags.above(state.frame, key, state.decided)) is not None:
            found.add(above)
        return found

    def _guessed(self, state: State, key: Key, holds: bool, block: int, other: int) -> State:
        """The state on one way of a branch whose condition is not known."""
        function = state.frame.function
        join = function.control.post_dominators[state.block]
        after = state
        if self._may_order(state, other, join, *_next_head(function, state.block, block, other)):
            after = state._replace(guesses=state.guesses + (not self.conditions.is_rare(function, state.block, other)))
        elif join not in (NOBODY, block):
            after = state._replace(guards=state.guards | {(state.frame, state.block, join)})
        if self._is_same_question(function, key):
            after = after._replace(decided=after.decided | {(state.frame, key, holds)})
        return after

    def _gone_where(self, state: State, condition: int) -> bool | None:
        """The truth of a condition that says that the memory is gone, or what orders it: what holds one of them is not None."""
        compared = compared_with_none(state.frame.function, condition)
        names = self.places.names(state.frame.function, compared[0]) if compared is not None else ()
        return compared[1] if compared is not None and leads_to(state.tracked, names, *OBJECTS) else None

    def learned(self, state: State, condition: int, holds: bool) -> frozenset[Tracked]:
        """What a path knows of the operation by the way that it takes at a branch."""
        return frozenset()

    def _is_first(self, state: State, loop: Loop) -> bool:
        """Whether a path stands at the head of a loop before the first round."""
        before = state.frame.function.phi_order[state.block]
        came = before[state.before] if state.before < len(before) else NOBODY
        return came not in loop.body and len(before) > 1

    @memoized
    def _is_only_round(self, frame: Frame, loop: Loop) -> bool:
        """Whether a loop has one round: over what holds one element, here, or as the call gives it that entered the function, or all."""
        trips = self.transfer.rounds.trips
        if trips.most(frame.function, loop) == 1:
            return True
        is_entered = frame.caller is not None and frame.call is not None
        calls = frame.calls[-1:] if is_entered else [Site(*place) for place in self.transfer.callers(frame.function)]
        return bool(calls) and all(trips.given(frame.function, loop, *call) == 1 for call in calls)

    def _is_same_question(self, function: Function, key: Key) -> bool:
        is_known = self.says_more(function, key) or self.conditions.is_given(function, key)
        return is_known or self.conditions.kept_flags.is_shared(function, key)

    def says_more(self, function: Function, key: Key) -> bool:
        """Whether the way that a branch takes tells which way another one of its function takes."""
        topics = self._topics.get(function)
        if topics is None:
            topics = self._topics[function] = {}
            for one in function.by_opcode[op.BRANCH]:
                topics.setdefault(hash(topic(asked_by(function, one))), []).append(one[2])
        if key in self.further.of(function):
            return True
        is_stream = as_positive(key)[0] in self.currents.entered(function) or key in self.made_streams.tested(function)
        return is_stream or key in self.currents.choosing(function) or len(topics.get(hash(topic(key)), ())) > 1

    def _may_order(self, state: State, block: int, *joins: int) -> bool:
        """Whether the way that was not taken holds, before both meet, what orders the operation."""
        function = state.frame.function
        for number in function.control.reach([block], joins):
            for one, actions, entered in self._meant(function, number):
                if any(self.orders(state, one, action) for action in actions):
                    return True
                if any(self._may_order_inside(state, one, callee) for callee in entered):
                    return True
        return False

    def _meant(self, function: Function, block: int) -> list[tuple[Instruction, tuple[Action, ...], list[Function]]]:
        """The instructions of a block that may order something, with what they do and enter."""
        known = self._meaning.get((function, block))
        if known is None:
            known = self._meaning[function, block] = []
            for one in function.code.blocks[block]:
                actions = tuple(action for action in self.actions(function, one) if self.may_be_order(action))
                entered = [edge.callee for edge in self.transfer.edges(function, one) if edge.is_followed]
                if actions or entered:
                    known.append((one, actions, entered))
        return known

    def _may_order_inside(self, state: State, one: Instruction, callee: Function) -> bool:
        """Whether a function that an instruction enters may order the operation."""
        return self._orders_inside(callee)

    def _ends(self, state: State, end: Instruction) -> Iterator[State]:
        """Where a path goes from the end of a block."""
        if end[0] == op.RETURN:
            yield from self._finished(state, end[2])
        elif end[0] == op.JUMP:
            yield from self._entering(state, end[2])
        elif end[0] == op.BRANCH:
            yield from self._branched(state, end)

    def _finished(self, state: State, register: int) -> Iterator[State]:
        """The state behind a function that has ended: of a generator, behind the loop that takes its values."""
        call = state.frame.call
        ended = state.frame.function.by_opcode
        is_over = self.resumes and call is not None and call[0] == op.NEXT and bool(ended[op.YIELD] or ended[op.YIELD_FROM])
        for after in self._returned(state, register):
            graph = after.frame.function.control
            number = graph.innermost[after.block] if is_over else NOBODY
            if number == NOBODY:
                yield after
                continue
            loop = graph.loops[number]
            for block in (each for each in graph.successors[loop.header] if each not in loop.body):
                yield from self._entering(after._replace(block=loop.header), block)

    def is_on_other_way(self, state: State, one: Instruction) -> bool:
        """Whether a path has not come through what makes the stream current that is so at an instruction."""
        around = self._made_current(state.frame, one) if state.decided else None
        return around is not None and self._is_other(state, *around)

    def _is_other(self, state: State, frame: Frame, one: Instruction, stream: Stream) -> bool:
        """Whether a path through a frame has another current stream than the one that its function makes current."""
        function = frame.function
        known = {(key, holds) for where, key, holds in state.decided if where == frame}
        if any((key, not holds) in known for way in self.currents.ways(function, one) for key, holds in deciding(function, way)):
            return True
        mine = alike(function, stream.register) if stream.register >= 0 else None
        if any(as_positive(key) == (mine, not holds) for key, holds in known):
            return True
        return not known.isdisjoint(self.made_streams.denied_by(function, stream))


def _next_head(function: Function, branch: int, *ways: int) -> tuple[int, ...]:
    """The head of the loop around a branch whose ways all stay in the loop: they meet there, though one of them may return before."""
    number = function.control.innermost[branch]
    loop = function.control.loops[number] if number != NOBODY else None
    return (loop.header,) if loop is not None and all(way in loop.body for way in ways) else ()
