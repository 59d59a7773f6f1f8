"""What memory the registers of a path hold, and whether work touches what is tracked of it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.on_device import OnDevice
from streamlint.ordering.memory.parts import fits, sum_of
from streamlint.ordering.memory.regions import PLACED, Region, are_apart
from streamlint.ordering.paths.states import State
from streamlint.ordering.places import rotation
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import ANY, ASIDE, POINTEE, Element, Key, Place, register_place, rest_behind
from streamlint.ordering.walk.repeated import Repeated
from streamlint.transfer.actions import Copied, Viewed
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.work import tensors_in
from streamlint.waits.questions import alike

_RANGE = "range"
_MOST_ENTERED = 2
"""Functions that one call may enter, of which is asked what they give back."""
_ADDRESSES = frozenset({op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ATTR})


class RaceMemory(Repeated):
    """Knows the memory of the work that is followed by all its names."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.memory = OnDevice(transfer)
        self._site: Site
        self._distances: dict[tuple[Function, Key], int] = {}
        self._back: dict[tuple[Function, Instruction], tuple[Place, ...]] = {}

    def _names(self, function: Function, register: int) -> Iterator[Tracked]:
        """The memory in a register, by all the names that its function has for it."""
        for each in self._shared(function, register):
            for place in self._names_of(function, each):
                yield Tracked(BUFFER, place)
                if self.memory.held_in(function, each):
                    yield Tracked(BUFFER, place.behind(ANY))

    def names_of(self, function: Function, register: int) -> tuple[Place, ...]:
        each = self._shared(function, register) if register >= 0 else ()
        return tuple(place for shared in each for place in self._names_of(function, shared))

    def _names_of(self, function: Function, register: int) -> Iterator[Place]:
        """The names of a register's value. C++: a pointer with an offset is a range of what the pointer leads to."""
        one = function.definitions[register] if register >= 0 else None
        yield from (*self.places.names(function, register), *rotation.elements(self.places, function, register))
        if one is not None and one[0] in (op.CALL, op.INVOKE) and not function.is_cpp:
            yield from self._given_back(function, one)
        if one is not None and one[0] in _ADDRESSES and any(use[0] == op.BUILD for use in function.uses[register]):
            yield self.places.of(function, register).behind(POINTEE)  # an array of the addresses of a kernel's arguments
        is_offset = one is not None and function.is_cpp and one[0] == op.BINARY and function.text(one[3]) in ("+", "-")
        if one is not None and is_offset and not tensors_in(self.facts, function, one):
            for base, offset in (one[4:6], one[5:3:-1]):
                for place in (name for each in self._shared(function, base) for name in self.places.names(function, each)):
                    key = Element((_RANGE, alike(function, offset)))
                    self._distances[function, key] = offset
                    yield place.behind(key)

    def _given_back(self, function: Function, call: Instruction) -> tuple[Place, ...]:
        """Where the memory has a name that the functions which a call enters give back, or a view of it: ``self.slot(n)``."""
        found = self._back.get((function, call))
        if found is None:
            self._back[function, call] = ()  # in a cycle, the others tell
            edges = [edge for edge in self.transfer.edges(function, call) if edge.is_direct]
            back = (place for edge in edges[:_MOST_ENTERED] for place in self._back_from(function, call, edge.callee))
            found = self._back[function, call] = tuple(dict.fromkeys(back))
        return found

    def _back_from(self, function: Function, call: Instruction, callee: Function) -> Iterator[Place]:
        keys = self.keys(function, call, callee, is_down=False)
        returned = (end[2] for end in callee.by_opcode[op.RETURN] if end[2] >= 0 and not callee.is_cpp)
        for root, path in (place for each in returned for shared in self._shared(callee, each) for place in self._names_of(callee, shared)):
            sources = self.sources(function, call, callee, int(str(root[1]))) if root[0] == "parameter" and path else ()
            for source in sources:
                yield self._rekeyed(Tracked(BUFFER, source.behind(*path)), keys).place

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

    def _in_region(self, one: Instruction, register: int, held: Tracked) -> Tracked:
        """Memory of which the work touches a part: that is known by its number."""
        region = self.regions.of(self._site.function, one).get(register)
        if region is None:
            return held
        self._touched[str(register)] = region
        return held._replace(type=str(register))

    def _is_apart(self, state: State, one: Instruction, register: int, place: Place, held: Tracked) -> bool:
        """Whether what work touches of a register shares nothing with the part that is tracked."""
        region = self._touched.get(held.type)
        if region is None:
            return False
        beyond = rest_behind(held.place, place)
        if region.kind == PLACED and state.frame.function is region.function and any(map(_is_range, beyond or ())):
            return True
        touched = self.regions.of(state.frame.function, one).get(register)
        steps = beyond or rest_behind(place, held.place)
        return are_apart(region, touched) or (touched is not None and self._are_disjoint(region, touched, steps or ()))

    def _are_disjoint(self, first: Region, second: Region, steps: tuple[Key, ...]) -> bool:
        """Whether of two pieces of one memory each ends before the distance between their beginnings."""
        function = first.function
        offset = self._distances.get((function, steps[0])) if function is not None and len(steps) == 1 else None
        if function is None or offset is None or function is not second.function:
            return False
        distance = sum_of(function, offset)
        return fits(first.extent, distance) and fits(second.extent, distance)

    def _touches(self, state: State, register: int, depth: int = 0, is_written: bool = False, by: Instruction | None = None) -> bool:
        """Whether what a register holds overlaps with the memory that is tracked."""
        for place in self.names_of(state.frame.function, register):
            for held in state.tracked:
                if held.kind != BUFFER or held.place.root != place.root:
                    continue
                if held.type and by is not None and self._is_apart(state, by, register, place, held):
                    continue
                if self._overlaps(state, register, place, held.place, depth, is_written):
                    return True
        return False

    def _overlaps(self, state: State, register: int, place: Place, held: Place, depth: int, is_written: bool) -> bool:
        """Whether a name of a register and a place that is tracked share memory. Two ranges that are written are tiles."""
        function = state.frame.function
        rest, part = rest_behind(place, held), rest_behind(held, place)
        if is_written and self._writes and any(map(_is_range, (*(rest or ()), *(part or ())))):
            return False
        if part is not None and all(isinstance(key, Element) for key in part):
            return True
        if rest is None:
            return False
        if all(isinstance(key, Element) for key in rest):
            return len(rest) <= depth or function.is_cpp or self._is_memory(state, register)
        is_view = len(rest) == 1 and not function.is_cpp and rest[0] in self.transfer.view_names
        return is_view and place in self.places.names(function, register)  # ``x.data = …`` is what ``x`` is from here on

    def _is_memory(self, state: State, register: int) -> bool:
        function = state.frame.function
        return any(isinstance(value, Memory) for value in self.transfer.values(function, register)) or bool(
            self.memory.held_in(function, register)
        )

    def _holds(self, state: State, register: int) -> bool:
        """Whether a register holds the memory itself."""
        return self.has(state, BUFFER, register)

    def _is_fetched(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction gives memory of the host, to which it copies."""
        copies = (each for each in self.transfer.of(function, one) if isinstance(each, Copied) and each.direction == "d2h")
        return op.DEFINES[one[0]] and any(each.target == one[2] for each in copies)

    def _is_all(self, state: State, registers: list[int]) -> bool:
        """Whether all that is tracked is written anew."""
        places = [place for register in registers for place in self.names_of(state.frame.function, register)]
        held = (each.place for each in state.tracked if each.kind == BUFFER and each.place.root[0] != ASIDE)
        return all(any(rest_behind(place, each) is not None for place in places) for each in held)

    def over(self, state: State) -> bool:
        """Nothing can race without memory."""
        return not any(held.kind == BUFFER for held in state.tracked)

    def places_returned(self, function: Function, register: int) -> tuple[Place, ...]:
        """New memory is not what was read before from where it is now."""
        one = function.definitions[register] if register >= 0 else None
        is_read = one is not None and one[0] == op.ATTR and self._work.made >= 0
        return (register_place(register),) if is_read else self.places.names(function, register)


def _is_range(key: Key) -> bool:
    """Whether a key is the offset of a pointer, in this function or another one."""
    offset = key.key if isinstance(key, Element) else None
    while isinstance(offset, tuple) and len(offset) == 2 and offset[0] == rotation.EARLIER:
        offset = offset[1]
    return isinstance(offset, tuple) and offset[:1] == (_RANGE,)
