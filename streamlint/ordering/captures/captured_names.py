"""The names of memory that a graph has captured, and what refers to it: whether other memory takes its place, or its last name goes."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Scalar, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.captured import Captured, Input
from streamlint.ordering.paths.last_reads import LastReads
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.gradients import GRADIENT
from streamlint.ordering.places.local_names import LocalNames, may_be_one
from streamlint.ordering.places.places import ASIDE, Place, register_place
from streamlint.ordering.walk.event_walk import Unordered
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.origins import Origins
from streamlint.transfer.transfer import Transfer

GRAPH, READ, MAYBE, UNNAMED = "graph", "read", "maybe", "unnamed"
"""The graph; a name through which the capture has read; what may keep the memory; a name that a register has no longer."""
OPEN, CAPTURED, STALE, LOST, GUARDED, OWNED = "open", "captured", "stale", "lost", "guarded", "owned"
"""The capture goes on; it has read the memory; a name of the capture means other memory; the last reference is gone; a branch decides
whether the name does; something else may have got the memory."""
POOLED, TAKEN = "pooled", "taken"
"""A container has got the memory behind the capture; something was taken out of that container since."""
STORING = frozenset({op.SET_ATTR, op.SET_ITEM, op.SET_NAME, op.STORE, op.DEL_ATTR, op.DEL_ITEM})
"""What puts a value under another name, or takes one away."""
MARK = Place(("global", "captured"))
"""Where the state of the capture is noted."""


class CapturedNames(Unordered):
    """Follows the names of an input of a capture: registers, and the local names that they have."""

    _input: Input

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self._origins = transfer.one_of(Origins, transfer)
        self.captured = Captured(transfer, self.places)
        self._local = LocalNames()
        self._last = LastReads()

    def _alive(self, state: State, kind: str) -> bool:
        """Whether something refers to the memory (BUFFER), or may keep it (MAYBE)."""
        return any(self._refers(state, held) for held in state.tracked if held.kind == kind)

    def _refers(self, state: State, held: Tracked) -> bool:
        frame, root = state.frame, held.place.root
        while root[0] == ASIDE and frame.caller is not None and frame.depth != root[1]:
            frame = frame.caller
        root = root[2] if root[0] == ASIDE and isinstance(root[2], tuple) else root
        if root[0] != "register":
            return True
        names = self._local.of(frame.function, int(str(root[1])))
        return any(Tracked(UNNAMED, held.place, name) not in state.tracked for name in names)

    def _replaces(self, state: State, register: int) -> bool:
        """Whether a register holds other memory, which may be meant for the graph."""
        function = state.frame.function
        if register < 0 or self.has(state, BUFFER, register) or self.has(state, MAYBE, register):
            return False
        names = self.places.names(function, register)
        if any(may_be_one(name, held.place) for name in names for held in state.tracked if held.kind == BUFFER):
            return False
        values = list(self.transfer.values(function, register))
        if values and all(isinstance(value, Constant | Scalar) for value in values):
            return False
        return self.captured.memory.may_be_memory(function, register)

    def _changed_hands(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """Whether the memory goes into a container behind the capture, or a container that has got it gives something away."""
        function, calls = state.frame.function, state.frame.calls
        if one[0] != op.INVOKE or not is_noted(state, CAPTURED) or is_noted(state, OPEN):
            return frozenset()
        name = function.text(one[4])
        if name in function.known("puts") and any(self.has(state, BUFFER, each) for each in operands_of(function, one, receiver=False)):
            return frozenset({Tracked(POOLED, MARK, "", calls[0] if calls else Site(function, one))})
        is_taken = name in function.known("shrinks") and is_noted(state, POOLED) and self.leads(state, BUFFER, one[3])
        return frozenset({Tracked(TAKEN, MARK)}) if is_taken else frozenset()

    def _reused(self, state: State) -> frozenset[Tracked]:
        """Work outside of the capture has the memory, once a pool has given it to somebody else."""
        pooled = mark_of(state, POOLED) if is_noted(state, TAKEN) else None
        return frozenset({Tracked(STALE, MARK, "reused", pooled.announced)}) if pooled is not None else frozenset()

    def _unnamed(self, state: State, name: str, register: int, one: Instruction) -> frozenset[Tracked]:
        """A local name means another register from here on, or nothing."""
        function = state.frame.function
        lost = frozenset(
            Tracked(UNNAMED, held.place, name)
            for held in state.tracked
            if held.place.root[0] == "register"
            and held.kind in (BUFFER, MAYBE)
            and held.place.root != ("register", register)
            and name in self._local.of(function, int(str(held.place.root[1])))
        )
        back = frozenset({Tracked(UNNAMED, register_place(register), name)}) & state.tracked
        after = state._replace(tracked=(state.tracked | lost) - back)
        if lost and self._is_of_origin(function, register):
            return after.tracked | {Tracked(BUFFER, register_place(register))}
        if lost and self._is_exchanged(state, after, one, register, lost):
            return after.tracked | {Tracked(STALE, MARK, "rebound", Site(function, one))}
        return self._let_go(state, after, one, register) if lost else after.tracked

    def _is_of_origin(self, function: Function, register: int) -> bool:
        """Whether all that a register may hold was allocated where the memory was, though the path has lost its way there."""
        origin = self._input.origin
        if register < 0 or function.is_cpp or function.definitions[register] == origin.instruction:
            return False
        return {each.site for each in self._origins.of(function, register)} == {origin}

    def _is_exchanged(self, before: State, after: State, one: Instruction, register: int, lost: frozenset[Tracked]) -> bool:
        """Whether a name through which the capture has read means what a call gives for the memory that it is given: nothing else leads to
        that from here on."""
        function = before.frame.function
        made = function.definitions[register] if register >= 0 else None
        is_read = any(Tracked(READ, each.place) in before.tracked for each in lost)
        if made is None or made[0] not in (op.CALL, op.INVOKE) or not is_read or is_noted(before, OPEN):
            return False
        roots = {held.place.root for held in after.tracked if held.kind == BUFFER and self._refers(after, held)}
        given = {("register", each) for each in op.reads(made)}
        if not roots or not roots <= given or not self._replaces(before, register):
            return False
        return not any(self._last.is_read_behind(function, one, int(str(root[1]))) for root in roots)

    def _let_go(self, before: State, after: State, one: Instruction, register: int) -> frozenset[Tracked]:
        """Notes where the last reference goes, and whether something else takes its place."""
        if not is_noted(before, CAPTURED) or not self._alive(before, BUFFER) or self._alive(after, BUFFER):
            return after.tracked
        function = before.frame.function
        kind = "rebound" if not is_noted(before, OPEN) and self._replaces(before, register) else "dropped"
        return after.tracked | {Tracked(LOST, MARK, kind, Site(function, one))}

    def _changed(self, function: Function, one: Instruction) -> Iterator[tuple[Place, int]]:
        """The places that an instruction assigns a register to; NONE where it deletes what is there."""
        yield from self.places.assigned(function, one)
        if one[0] == op.DEL_ATTR:
            yield self.places.member(function, one[2], function.text(one[3])), op.NONE
        elif one[0] == op.DEL_ITEM:
            yield self.places.of(function, one[2]).behind(self.places.element(function, one[3])), op.NONE

    def _leaves(self, after: State, place: Place) -> bool:
        """Whether what is assigned to a place through which the capture has read leaves its memory to the graph alone. The capture itself
        may assign it, but gradients, which it gives anew, and buffers that change their names."""
        if Tracked(READ, place) not in after.tracked or not is_noted(after, OPEN):
            return Tracked(READ, place) in after.tracked
        held = [each.place.root[1] for each in after.tracked if each.kind == BUFFER and each.place.root[0] == "register"]
        uses = (use for register in held for use in after.frame.function.uses.get(int(str(register)), ()))
        is_put = any(use[0] in STORING for use in uses)  # under its next name
        return place.path[-1:] != (GRADIENT,) and not is_put and not self._alive(after, BUFFER)

    def _is_before(self, state: State) -> bool:
        """Whether a place is followed that has to hold what the capture reads once that begins."""
        raise NotImplementedError

    def _stored(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """An attribute, an element or a shared variable is assigned or deleted, through which the capture may have read."""
        function, tracked = state.frame.function, state.tracked
        for target, register in self._changed(function, one):
            targets = {target, register_place(one[2]).behind(target.path[-1])} if one[0] in (op.SET_ITEM, op.DEL_ITEM) else {target}
            held = {each for each in tracked if each.kind == BUFFER and each.place in targets}
            if not held or self.has(state, BUFFER, register):
                continue
            if self._is_before(state) and self._replaces(state, register):  # that is what the capture is to read
                names = {Tracked(BUFFER, name) for name in self.places.names(function, register)}
                tracked = frozenset(each for each in tracked if each.kind != BUFFER) | held | names
                continue
            after = state._replace(tracked=tracked - held)
            tracked = self._let_go(state, after, one, register)
            is_left = any(self._leaves(after, each) for each in targets)
            if is_left and self._replaces(state, register) and is_noted(state, CAPTURED):
                tracked |= {Tracked(STALE, MARK, "rebound", Site(function, one))}
                tracked |= {Tracked(GUARDED, MARK)} if _is_guarded(function, one) else frozenset()
        return tracked


def _is_guarded(function: Function, one: Instruction) -> bool:
    """Whether a branch decides whether an instruction runs."""
    return any(by not in function.loop_heads for by, _ in function.control.controlled_by[function.homes[one][0]])


def is_noted(state: State, kind: str) -> bool:
    """Whether a path has noted something of a kind."""
    return any(held.kind == kind for held in state.tracked)


def mark_of(state: State, kind: str) -> Tracked | None:
    """What is noted of a kind: the first in the program of several."""
    noted = [held for held in state.tracked if held.kind == kind]
    return min(
        noted,
        key=lambda held: (held.announced.function.unit.path, held.announced.at) if held.announced is not None else ("", ()),
        default=None,
    )
