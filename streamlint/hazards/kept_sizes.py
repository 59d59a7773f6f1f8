"""What called functions say of a size that is kept: whether another one is larger, what it is, and what it is set to.

Their parameters stand for what the call gives: an object, a pointer, a size.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES, behind
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ADDRESS, POINTEE, Element, Place, Places
from streamlint.ordering.walk.across import given_for
from streamlint.support.memo import memoized
from streamlint.transfer.transfer import Transfer

Leaves = frozenset[object]
Answer = tuple[Instruction, Function, int]
"""A call, the only function that it enters, and the register that this gives back."""
_DEEPEST = 2
_MOST = 40
"""Values of a variable that are looked at."""
_LEAVES = frozenset({op.PARAM, op.PHI, op.NEXT, op.INVOKE, op.CALL})


class KeptSizes:
    """Looks into the functions that a call enters."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.places = places
        self._known: dict[tuple[Function, int], tuple[Place, ...]] = {}

    def answer(self, function: Function, register: int) -> Answer | None:
        """The call that has given a value, the only function that it enters, and the register that this gives back at its only end."""
        one = function.definitions[register] if register >= 0 else None
        if one is None or one[0] not in (op.CALL, op.INVOKE):
            return None
        edges = self.transfer.edges(function, one)
        ends = edges[0].callee.by_opcode[op.RETURN] if len(edges) == 1 and edges[0].is_followed and not edges[0].is_higher_order else []
        return (one, edges[0].callee, ends[0][2]) if len(ends) == 1 and ends[0][2] >= 0 else None

    def outer(self, function: Function, one: Instruction, callee: Function, place: Place) -> Place | None:
        """A place of a function by the name that its caller has for it."""
        if place.root[0] in ("global", "static"):
            return place
        given = given_for(function, one, callee, int(str(place.root[1]))) if place.root[0] == "parameter" else None
        return self.places.of(function, given).behind(*place.path) if given is not None and given >= 0 else None

    def outer_leaves(self, function: Function, one: Instruction, callee: Function, found: Leaves) -> Leaves:
        """What a value of a function is computed from, as its caller has it."""
        result: set[object] = set()
        for leaf in found:
            if not isinstance(leaf, Place):
                continue
            given = given_for(function, one, callee, int(str(leaf.root[1]))) if leaf.root[0] == "parameter" and not leaf.path else None
            if given is not None and given >= 0:
                result |= self.leaves(function, [given])
            elif (outer := self.outer(function, one, callee, leaf)) is not None:
                result.add(root_place(outer))
        return frozenset(result)

    def assigned(self, function: Function, one: Instruction, depth: int = _DEEPEST) -> Iterator[tuple[Place, Leaves]]:
        """The places that a call sets, each with what one of the values that it may get is computed from, as the caller has both."""
        for edge in self.transfer.edges(function, one) if depth else ():
            if not edge.is_followed or edge.is_higher_order:
                continue
            for place, found in self._assigned(edge.callee, depth):
                outer = self.outer(function, one, edge.callee, place)
                if outer is not None:
                    yield root_place(outer), self.outer_leaves(function, one, edge.callee, found)

    @memoized
    def _assigned(self, callee: Function, depth: int) -> list[tuple[Place, Leaves]]:
        found: list[tuple[Place, Leaves]] = []
        for inner in callee.code.instructions():
            if inner[0] in (op.CALL, op.INVOKE):
                found += self.assigned(callee, inner, depth - 1)
            for place, value in self.assigned_at(callee, inner):
                found += ((place, leaves) for leaves in self.values(callee, value))
        return found

    def assigned_at(self, function: Function, one: Instruction) -> Iterator[tuple[Place, int]]:
        """What an instruction sets: a place, a static variable, a parameter that is a reference, what a library's method of it is given."""
        yield from ((root_place(place), value) for place, value in self.places.assigned(function, one))
        if one[0] == op.BIND and function.code.statics and (static := self._statics(function).get(function.text(one[2]))) is not None:
            yield static, one[3]
        elif one[0] == op.OUT:
            yield Place(("parameter", one[2])), one[3]
        elif one[0] == op.INVOKE and function.is_cpp and not self.transfer.edges(function, one):
            given = one[6:] if function.text(one[4]) not in function.known("looks-into") else ()
            yield from ((root_place(self.places.of(function, one[3])), each) for each in given)

    def static(self, function: Function, register: int) -> Place | None:
        """The static variable that a register begins."""
        if register not in function.code.statics:
            return None
        return next((place for use in function.uses[register] if (place := self._named(function, use)) is not None), None)

    def _statics(self, function: Function) -> dict[str, Place]:
        uses = (use for register in function.code.statics for use in function.uses[register])
        return {function.text(use[2]): place for use in uses if (place := self._named(function, use)) is not None}

    def _named(self, function: Function, use: Instruction) -> Place | None:
        return Place(("static", function.unit.number, function.code.number, function.text(use[2]))) if use[0] == op.BIND else None

    def filled(self, function: Function, one: Instruction, depth: int = _DEEPEST) -> Iterator[Place]:
        """The places that a call gives something, as the caller has them: it assigns to them, or hands their address on."""
        for edge in self.transfer.edges(function, one) if depth else ():
            if edge.is_followed and not edge.is_higher_order:
                outer = (self.outer(function, one, edge.callee, place) for place in self._filled(edge.callee, depth))
                yield from (place for place in outer if place is not None)

    def _filled(self, callee: Function, depth: int) -> tuple[Place, ...]:
        found = self._known.get((callee, depth))
        if found is None:
            self._known[callee, depth] = ()
            found = self._known[callee, depth] = tuple(dict.fromkeys(self._find_filled(callee, depth)))
        return found

    def _find_filled(self, callee: Function, depth: int) -> Iterator[Place]:
        for inner in callee.code.instructions():
            if inner[0] in (op.CALL, op.INVOKE):
                yield from self.filled(callee, inner, depth - 1)
                given = (self.places.of(callee, each) for each in op.reads(inner) if each >= 0)
                yield from (place.behind(POINTEE) for place in given if place.path and place.path[-1] == ADDRESS)
            for place, value in self.places.assigned(callee, inner):
                made = callee.definitions[value] if value >= 0 else None
                if made is not None and not (made[0] == op.CONST and not callee.unit.ir.constants[made[3]]):
                    yield place

    def leaves(self, function: Function, registers: Iterable[int]) -> Leaves:
        """What values are computed from: places, and registers that nothing is computed for. Indices do not count."""
        return self._behind(function, registers, joins=False)

    def sources(self, function: Function, registers: Iterable[int]) -> Leaves:
        """The same, also of all that a join brings together."""
        return self._behind(function, registers, joins=True)

    def _behind(self, function: Function, registers: Iterable[int], joins: bool) -> Leaves:
        found: set[object] = set()

        def onward(one: Instruction) -> Iterable[int]:
            place = self.static(function, one[2]) or self.places.of(function, one[2])
            if place.root[0] != "register":
                found.add(root_place(place))
                return ()
            if one[0] in _LEAVES:
                found.add(one[2])
            return op.reads(one)[:1] if one[0] == op.ITEM else op.reads(one) if joins or one[0] != op.PHI else ()

        for _ in behind(function, registers, onward):
            pass
        return frozenset(found)

    def values(self, function: Function, register: int, arriving: Container[int] | None = None) -> Iterator[Leaves]:
        """What each of the values is computed from that a register may have: of a join those that come by way of some blocks, of a call
        its arguments; also what the rounds of a loop go on for that compute it."""
        waiting = [register]
        for each in waiting:
            one = function.definitions[each] if each >= 0 else None
            if one is None or len(waiting) > _MOST:
                continue
            if one[0] == op.PHI and function.blocks[one] in function.loop_heads:
                yield self.sources(function, _ends(function, function.blocks[one])) - self.sources(function, [each])
            if one[0] == op.PHI:
                order = function.phi_order[function.blocks[one]]
                ways = [value for value, before in zip(one[3:], order, strict=False) if arriving is None or before in arriving]
                waiting += [value for value in ways if value not in waiting]
            elif one[0] in COPIES and one[0] != op.REBIND:
                waiting.append(one[COPIES[one[0]]])
            else:
                yield self.leaves(function, [each])
                waiting += [given for given in op.reads(one) if one[0] in (op.CALL, op.INVOKE, op.REBIND) and given not in waiting]


def is_within(target: object, state: object) -> bool:
    """Whether what is set is a place that was asked for, or what holds it."""
    if not isinstance(target, Place) or not isinstance(state, Place):
        return target == state
    return target.root == state.root and state.path[: len(target.path)] == target.path


def general_place(place: Place) -> Place:
    """A place without its elements' keys."""
    return Place(place.root, tuple(key for key in place.path if not isinstance(key, Element)))


def root_place(place: Place) -> Place:
    """A place without its elements' keys, however many pointers lead there."""
    return Place(place.root, tuple(key for key in place.path if not isinstance(key, Element) and key not in (ADDRESS, POINTEE)))


def _ends(function: Function, header: int) -> Iterator[int]:
    """The conditions with which the rounds of a loop end."""
    ends = (function.code.blocks[block][-1] for block, _ in function.loop_heads[header].exits)
    return (end[2] for end in ends if end[0] == op.BRANCH and end[2] >= 0)
