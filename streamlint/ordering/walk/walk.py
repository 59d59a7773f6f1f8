"""Follows one pending operation forward over all paths, into calls and back to callers, until something orders it or reaches it.

A state is where the path stands, where the memory, the stream and the events are that matter, and the branches that were taken without
evidence. Paths that agree on all of that are one. Of a branch whose other way would have ordered the operation, or that guards what
reaches it, one may be guessed, not two (`policies`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.deciding import deciding
from streamlint.ordering.paths.quiet import Heads, Quiet, Region, Touch
from streamlint.ordering.paths.states import Merged, State
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.walk.walk_branches import Branches
from streamlint.transfer.actions import Action
from streamlint.transfer.transfer import Order, Transfer
from streamlint.waits.questions import Key

MOST_STATES = 3_000
"""States of one pending operation that are looked at."""
ORDERED = "ordered"
_Origin = tuple[Function, int, int]
"""Where the operation stands: its function, the block, and the place in that."""


class Walk(Branches):
    """Walks for pending operations of a program."""

    most_states = MOST_STATES

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._quiet = Quiet(self)
        self.cut = 0  # operations that took more states
        self._at_head: frozenset[Tracked] = frozenset()  # what was tracked at the beginning of a block

    def start(self, function: Function, one: Instruction, tracked: frozenset[Tracked], decided: Iterable[tuple[Key, bool]]) -> State:
        """The state right behind an instruction, on a path that has come there as its branches say; ``decided`` is what else is known."""
        block, index = function.homes[one]
        frame = Frame(function, None, None, 0)
        ways = (block, *self.currents.ways(function, one))
        known = frozenset((frame, key, holds) for key, holds in (*decided, *(each for way in ways for each in deciding(function, way))))
        known = known.union(*(self.fixed.said(function, way) for way in ways))
        state = State(frame, block, index + 1, 0, tracked, 0, frozenset(), known, ())
        state = state._replace(chosen=frozenset({function.unit.number}))
        return self.generators.begun(state) if self.resumes else state

    def run(self, start: State) -> None:
        """Follow all paths from a state."""
        origin = start.frame.function, start.block, start.place - 1
        merged = Merged()
        waiting = deque([start])
        self._quiet.forget()
        self._run_block = lambda state: self._block(state, origin)
        while waiting:
            state = waiting.popleft()
            if self.over(state) or (new := merged.added(state)) is None:
                continue
            if merged.count > self.most_states:
                merged.is_cut = True
                break
            waiting.extend(self._run_block(new))
        self.cut += merged.is_cut

    def _block(self, state: State, origin: _Origin) -> Iterator[State]:
        """Run the rest of a block; what follows it."""
        function = state.frame.function
        code = function.code.blocks[state.block]
        steps = self._quiet.steps(function, state.block)
        home = origin[2] if origin[:2] == (function, state.block) else op.NONE
        is_concurrent = state.frame.depth > 0 and self.meanwhile.is_concurrent(state.frame)
        self._at_head = state.tracked
        at_head = heads = self._quiet.heads(state.tracked)
        is_passed = home == op.NONE and not is_concurrent and self._is_untouched(heads, self._quiet.whole(function, state.block))
        for index in range(state.place, len(code)) if not is_passed else ():
            if is_concurrent and self.meanwhile.waits(function, code[index]):
                return  # whoever it waits for may have waited for the operation
            if index != home and self._is_untouched(at_head if code[index][0] == op.PHI else heads, steps[index]):
                continue
            after, others = self._step(state, index, origin)
            yield from others
            if after is None:
                return
            state, heads = after, self._quiet.heads(after.tracked)
        region = self._passed_by(state, origin) if not is_concurrent else None
        yield from self._past(state, region) if region is not None else self._ends(state, code[-1])

    @staticmethod
    def _is_untouched(heads: Heads, touched: Touch | None) -> bool:
        """Whether what is looked at means nothing for what is tracked: None is never passed by."""
        return touched is not None and not heads.are_touched(touched)

    def _past(self, state: State, region: Region) -> Iterator[State]:
        """What follows a part of the function that is passed by."""
        state = state._replace(block=region.last)
        if region.join != NOBODY:
            yield from self._entering(state, region.join)
        else:
            yield from self._ends(state, state.frame.function.code.blocks[region.last][-1])

    def _passed_by(self, state: State, origin: _Origin) -> Region | None:
        """What is behind a branch until its ways meet, if nothing there means anything for what is tracked."""
        function = state.frame.function
        region = self._quiet.region(function, state.block) if function.code.blocks[state.block][-1][0] == op.BRANCH else None
        if region is None or (origin[0] is function and origin[1] in region.blocks):
            return None
        return None if self._quiet.heads(state.tracked).are_touched(region.touch) else region

    def _step(self, state: State, index: int, origin: _Origin) -> tuple[State | None, Iterable[State]]:
        """The state behind an instruction in its block, None where the path leaves that; and the states that it leads to elsewhere."""
        function = state.frame.function
        one = function.code.blocks[state.block][index]
        if origin == (function, state.block, index) and self.redone(state, one):
            return None, ()
        heard = self._judged(state, one, origin)
        if heard is None or self.passed(heard, one):
            return None, ()
        if one[0] == op.YIELD:
            return None, self._yielded(heard._replace(place=index), one, one[3])
        entered = list(self._entered(heard, one, index))
        others = [after for after in entered if after.tracked]
        if entered and not self.meanwhile.lets_go(function, one):  # else who has started the thread goes on
            return None, others
        behind = self._flowed(heard, one)
        if not behind.tracked:
            return None, others
        if one[0] == op.INVOKE and function.text(one[4]) in function.known("queue-put"):
            others += self._taken(behind, one)
        return behind, [*others, *self.woken(behind, one)]

    def _judged(self, state: State, one: Instruction, origin: _Origin) -> State | None:
        """The state once all is judged that an instruction does; None where that orders the operation."""
        if op.DEFINES[one[0]]:  # made anew
            stale = frozenset(held for held in state.tracked if held.place.root == ("register", one[2]))
            state = state._replace(tracked=state.tracked - stale) if stale else state
        state = self.forgotten(state, one)
        answer = self.arrive(state, one)
        if answer == ORDERED:
            return None
        if isinstance(answer, frozenset):
            state = state._replace(tracked=answer)
        for action in self.heard(state, one) if one[1] >= 0 else ():
            if self._is_passed_over(state, one, action, origin):
                continue
            answer = self.judge(state, one, action)
            if answer == ORDERED:
                return None
            if isinstance(answer, frozenset):
                state = state._replace(tracked=answer)
        return state

    def _flowed(self, state: State, one: Instruction) -> State:
        """The state behind an instruction: what its actions have made of its result stays."""
        if one[0] == op.PHI:  # those of a block join their values at once: two variables may change places
            joined = self.flow.after(state.frame.function, one, self._at_head, state.before)
            tracked = state.tracked | {held for held in joined if held.place.root == ("register", one[2])}
        else:
            tracked = self.flow.after(state.frame.function, one, state.tracked, state.before)
        if op.DEFINES[one[0]]:
            tracked |= {held for held in state.tracked if held.place.root == ("register", one[2])}
        if self.resumes and (left := self.generators.known(state, one)[1]):
            tracked = self.generators.in_hand(tracked, left)
        state = state._replace(tracked=tracked)
        more = self.derived(state, one) if one[0] in (op.COMPARE, op.UNARY) else None
        return state._replace(tracked=tracked | more) if more else state

    def _is_passed_over(self, state: State, one: Instruction, action: Action, origin: _Origin) -> bool:
        """Whether an order is noted, and the path goes on as if it were not there: where silence is explained."""
        if self.transfer.passed is None or not self.is_order(state, one, action):
            return False
        function, block, index = origin
        operation = Site(function, function.code.blocks[block][index])
        self.transfer.passed.append(Order(operation, Site(state.frame.function, one), action, state.sites))
        return True
