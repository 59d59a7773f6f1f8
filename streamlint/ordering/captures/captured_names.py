"""The names of memory that a graph has captured, and what refers to it: whether other memory takes its place, or its last name goes."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, Scalar, Site
from streamlint.ir import Instruction
from streamlint.ordering.memory.captured import Captured
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.local_names import LocalNames, may_be_one
from streamlint.ordering.places.places import Place, register_place
from streamlint.ordering.walk.event_walk import Unordered
from streamlint.transfer.transfer import Transfer

GRAPH, READ, MAYBE, UNNAMED = "graph", "read", "maybe", "unnamed"
"""The graph; a name through which the capture has read; what may keep the memory; a name that a register has no longer."""
OPEN, CAPTURED, STALE, LOST, GUARDED, OWNED = "open", "captured", "stale", "lost", "guarded", "owned"
"""The capture goes on; it has read the memory; a name of the capture means other memory; the last reference is gone; a branch decides
whether the name does; something else may have got the memory."""
MARK = Place(("global", "captured"))
"""Where the state of the capture is noted."""


class CapturedNames(Unordered):
    """Follows the names of an input of a capture: registers, and the local names that they have."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.captured = Captured(transfer, self.places)
        self._local = LocalNames()

    def _alive(self, state: State, kind: str) -> bool:
        """Whether something refers to the memory (BUFFER), or may keep it (MAYBE)."""
        return any(self._refers(state, held) for held in state.tracked if held.kind == kind)

    def _refers(self, state: State, held: Tracked) -> bool:
        if held.place.root[0] != "register":
            return True
        register = int(str(held.place.root[1]))
        names = self._local.of(state.frame.function, register)
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
        return self._let_go(state, after, one, register) if lost else after.tracked

    def _let_go(self, before: State, after: State, one: Instruction, register: int) -> frozenset[Tracked]:
        """Notes where the last reference goes, and whether something else takes its place."""
        if not is_noted(before, CAPTURED) or not self._alive(before, BUFFER) or self._alive(after, BUFFER):
            return after.tracked
        function = before.frame.function
        kind = "rebound" if not is_noted(before, OPEN) and self._replaces(before, register) else "dropped"
        return after.tracked | {Tracked(LOST, MARK, kind, Site(function, one))}

    def _stored(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """An attribute, an element or a shared variable is assigned: what the capture has read through it, it will not find there."""
        function, tracked = state.frame.function, state.tracked
        for target, register in self.places.assigned(function, one):
            held = {each for each in tracked if each.kind == BUFFER and each.place == target}
            if not held or self.has(state, BUFFER, register):
                continue
            after = state._replace(tracked=tracked - held)
            tracked = self._let_go(state, after, one, register)
            is_read = any(each.kind == READ and each.place == target for each in tracked)
            if is_read and self._replaces(state, register) and is_noted(state, CAPTURED) and not is_noted(state, OPEN):
                tracked |= {Tracked(STALE, MARK, "rebound", Site(function, one))}
                if _is_guarded(function, one):
                    tracked |= {Tracked(GUARDED, MARK)}
        return tracked


def _is_guarded(function: Function, one: Instruction) -> bool:
    """Whether a branch decides whether an instruction runs."""
    return any(by not in function.loop_heads for by, _ in function.control.controlled_by[function.homes[one][0]])


def is_noted(state: State, kind: str) -> bool:
    """Whether a path has noted something of a kind."""
    return any(held.kind == kind for held in state.tracked)
