"""References to memory that is followed: names, attributes, elements, variables of callers. With the last one, the pool gets it back."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import FunctionObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import BUFFER, Tracked, leads_to
from streamlint.ordering.places.places import ASIDE, Place, rest_behind
from streamlint.ordering.places.queues import may_be_taken, takes_first
from streamlint.ordering.races.crossing import Crossing, frame_of

_NAMED = frozenset({op.BIND, op.ITEM, op.ITER, op.UNPACK, op.MORE})
"""What is done with a container without another reference to it."""


class References(Crossing):
    """Follows memory until the last reference to it is gone."""

    def _captures(self, state: State, register: int) -> bool:
        """Whether a function that a register holds keeps the memory, or its object does."""
        function = state.frame.function
        one = function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.ATTR and self.leads(state, BUFFER, one[3]):
            return True
        for value in self.transfer.values(function, register) if register >= 0 else ():
            inner = value.function if isinstance(value, FunctionObject) else None
            places = (self.places.of(inner, each) for each in range(len(inner.definitions))) if inner is not None else ()
            cells = [place for place in places if place.root[0] == "cell"]
            if leads_to(state.tracked, cells, BUFFER):
                return True
        return False

    def _is_kept(self, state: State, held: Tracked) -> bool:
        """Whether a place outlives a round: a container, an attribute, a variable that holds what the last round has made."""
        if (held.place.path and not self._is_unpacked(state, held)) or held.place.root[0] in ("cell", "global", ASIDE):
            return True
        if held.place.root[0] != "register":
            return False
        function = state.frame.function
        register = int(str(held.place.root[1]))
        definition = function.definitions[register]
        return definition is not None and definition[0] == op.PHI and any(use[0] != op.PHI for use in function.uses[register])

    def _alive(self, state: State) -> bool:
        """Whether something refers to the memory: a name, an attribute, an element, a variable of a caller."""
        return any(self._refers(state, held) for held in state.tracked if held.kind == BUFFER)

    def _is_unpacked(self, state: State, held: Tracked) -> bool:
        """Whether a register holds a tuple that is taken apart, and nothing else refers to."""
        uses = state.frame.function.uses[int(str(held.place.root[1]))] if held.place.root[0] == "register" else ()
        return bool(uses) and all(use[0] == op.UNPACK for use in uses)

    def owning(self, place: Place) -> Place:
        """The place of the tensor of which one is another name: ``x.data`` is no container of x."""
        while place.path and place.path[-1] in self.transfer.replacing:
            place = Place(place.root, place.path[:-1])
        return place

    def _refers(self, state: State, held: Tracked) -> bool:
        frame, root = frame_of(state, held.place)
        if root[0] != "register" or frame is None:
            return True
        register, is_outer = int(str(root[1])), frame is not state.frame
        if self.owning(held.place).path:
            return is_outer or not (self._is_unpacked(state, held) or self._is_only_given(frame.function, register))
        is_bound = any(use[0] in (op.BIND, op.PHI) for use in frame.function.uses[register])
        return is_bound or (is_outer and self._is_on_stack(state, frame, register))

    @staticmethod
    def _is_on_stack(state: State, outer: Frame, register: int) -> bool:
        """Whether the call of a function that the path has not left is given a register: the caller refers to it until then."""
        frame = state.frame
        while frame.caller is not None and frame.caller is not outer:
            frame = frame.caller
        return frame.call is None or register in op.reads(frame.call)

    def _is_only_given(self, function: Function, register: int, name: int | None = None) -> bool:
        """Whether a register holds a container that is made there, and to which nothing refers but calls of known functions that are
        given it, as in ``copy_out([rows])``, and one name, if there is one."""
        one = function.definitions[register]
        if one is None or one[0] not in (op.BUILD, op.DICT):
            return False
        for use in function.uses[register]:
            if use[0] in (op.CALL, op.INVOKE):
                edges = self.transfer.edges(function, use)
                if not edges or not all(edge.is_direct for edge in edges):
                    return False
            elif name is None or use[0] not in _NAMED or (use[0] == op.BIND and use[2] != name):
                return False
        return True

    def _outlives(self, state: State, register: int) -> bool:
        """Whether the memory is referred to when its function is over."""
        places = [held.place for held in state.tracked if held.kind == BUFFER]
        is_outside = any(root[0] in ("global", "cell", "this") or (root[0] == "parameter" and path) for root, path in places)
        return is_outside or self.leads(state, BUFFER, register)

    def _let_go(self, state: State, one: Instruction) -> State:
        """The state without the references that an instruction ends."""
        function = state.frame.function
        if one[0] == op.UNBIND:
            gone = {("register", each[3]) for each in function.by_opcode[op.BIND] if each[2] == one[2]}
            inside = {root for root in gone if self._is_only_given(function, root[1], one[2])}  # containers that nothing else refers to
            kept_here = (held for held in state.tracked if held.place.root not in (inside if held.place.path else gone))
            return state._replace(tracked=frozenset(kept_here))
        if one[0] == op.INVOKE and function.text(one[4]) in function.known("empties") and not function.uses[one[2]]:
            names, is_first = self.places.names(function, one[3]), takes_first(function, one)
            kept = (
                held
                for held in state.tracked
                if held.kind != BUFFER
                or not any(rest_behind(each, held.place) for each in names)
                or (is_first and not may_be_taken(self.places, function, one, held.place))
            )
            return state._replace(tracked=frozenset(kept))
        return state
