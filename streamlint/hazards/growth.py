"""Guards of what is made once and kept: buffers that only grow, what is made where there is none yet, or for another size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.instructions import COPIES, behind, unnegated
from streamlint.hazards.kept_sizes import Answer, KeptSizes, root_place
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY, Graph
from streamlint.ordering.places import ADDRESS, POINTEE, Element, Place, cell_of
from streamlint.waits.operands import operand_of

Edge = tuple[int, int]
_DEEPEST = 8
"""Parts of a condition in one another."""
_LARGER = {">": True, ">=": True, "<": False, "<=": False}
_THIS = ("parameter", 0)
_CHANGING = frozenset({op.NEXT, op.INPLACE, op.ITEM, op.CALL, op.INVOKE})
_COMPUTING = frozenset({op.PHI, op.COPY, op.CAST, op.BINARY, op.UNARY})


class _Behind(NamedTuple):
    """The blocks that an edge leads to, those that it alone leads to, and those of the loop around."""

    reached: frozenset[int]
    only: frozenset[int]
    within: frozenset[int] | None


class Growth:
    """The edges of a function's branches behind which what the branch asks for is changed so that the edge is taken once."""

    def __init__(self, kept: KeptSizes, function: Function, graph: Graph, is_new: bool) -> None:
        """``is_new``: the function works for a constructor, so that nothing was kept in its object before."""
        self.kept = kept
        self.places = kept.places
        self.function = function
        self.graph = graph
        self.is_new = is_new
        self.home = {one: number for number, block in enumerate(function.code.blocks) for one in block}

    def edges(self, within: frozenset[int] | None) -> Iterator[Edge]:
        """These edges of a loop's body, or of the whole function."""
        for number in self.graph.order if within is None else sorted(within):
            end = self.function.code.blocks[number][-1]
            if end[0] != op.BRANCH or end[3] == end[4]:
                continue
            register, turned = unnegated(self.function, end[2])
            for truth, after, other in zip((True, False), end[3:5], (end[4], end[3]), strict=True):
                reached = self._behind((number,), after, within)
                only = reached - self._behind((number, after), other, within)  # another part of the condition may lead there as well
                if self._is_taken_once(register, truth != turned, _Behind(reached, only, within)):
                    yield number, after

    def _is_taken_once(self, register: int, truth: bool, ways: _Behind, depth: int = _DEEPEST) -> bool:
        """Whether what an edge leads to ends what it asks for: of a condition with parts, whichever of them it was."""
        if self._settles(register, truth, ways.reached, ways.within) or self._is_settled_inside(register, truth, ways):
            return True
        one = self.function.definitions[register] if register >= 0 else None
        if one is not None and one[0] == op.CAST and depth:
            return self._is_taken_once(one[-1], truth, ways, depth - 1)
        if one is None or one[0] != op.PHI or not depth:
            return False
        parts = [unnegated(self.function, part) for part in one[3:] if self.function.constant(part) is not (not truth)]
        return bool(parts) and all(self._is_taken_once(part, truth != turned, ways, depth - 1) for part, turned in parts)

    def _behind(self, ends: tuple[int, ...], after: int, within: frozenset[int] | None) -> frozenset[int]:
        """The blocks of a loop that an edge leads to before its branch, or another end, is reached."""
        header = min(within, key=self.graph.order.index) if within else -1
        outside = () if within is None else (number for number in range(len(self.graph)) if number not in within)
        return frozenset(self.graph.reach([after], (*ends, header, *outside)))

    def _settles(self, register: int, truth: bool, reached: frozenset[int], within: frozenset[int] | None) -> bool:
        one = self.function.definitions[register] if register >= 0 else None
        if one is None:
            return False
        if one[0] == op.COMPARE:
            operator, left, right = self.function.text(one[3]), one[4], one[5]
            if operator in _LARGER:
                larger, smaller = (left, right) if _LARGER[operator] == truth else (right, left)
                return self._is_raised(smaller, larger, reached)
            if operator in ("==", "!=", "is", "is not") and (self._is_nothing(right) or self._is_end(left, right)):
                return (operator in ("==", "is")) == truth and self._is_filled(left, reached)
            return operator in ("==", "!=") and (operator == "!=") == truth and self._is_kept_for(left, right, reached, within)
        return not truth and self._is_filled(register, reached)

    def _is_kept_for(self, left: int, right: int, reached: frozenset[int], within: frozenset[int] | None) -> bool:
        """Whether one side is what something was made for, and is set to the other, which is the same in all rounds of the loop."""
        sides = ((left, right), (right, left))
        return any(self._is_steady(wanted, within) and self._is_raised(kept, wanted, reached) for kept, wanted in sides)

    def _is_steady(self, register: int, within: frozenset[int] | None) -> bool:
        """Whether a value is not made in the loop, and no caller counts it in a loop of its own."""
        leaves = self._leaves([register])
        made = [self.function.definitions[leaf] for leaf in leaves if isinstance(leaf, int)]
        if within is not None:
            return not any(one is not None and self.home[one] in within for one in made)
        given = [int(str(leaf.root[1])) for leaf in leaves if isinstance(leaf, Place) and leaf.root[0] == "parameter"]
        places = self.places.facts.call_places(self.function) if given else ()
        return not any(self._is_counted(caller, call, index) for caller, call in places for index in given)

    def _is_counted(self, caller: Function, call: Instruction, index: int) -> bool:
        """Whether a call gives a value that the rounds of a loop around it change."""
        given = operand_of(caller, call, self.function, index) if call[0] in (op.CALL, op.INVOKE) else None
        made = list(behind(caller, [op.NONE if given is None else given], _computed_from))
        back = {register for one in made if one[0] == op.PHI for register in one[3:]}
        made = [one for one in made if one[0] != op.CALL or caller.dotted(one[3]) != "sizeof"]
        changing = (one for one in made if one[0] in _CHANGING or (one[0] == op.BINARY and one[2] in back))
        return any(caller.control.innermost[caller.homes[one][0]] != NOBODY for one in changing)

    # --- what grows

    def _is_raised(self, smaller: int, larger: int, reached: frozenset[int]) -> bool:
        """Whether the smaller side is set to something that is computed from the larger one, and not from itself."""
        mine, wanted = self._leaves([smaller]), self._leaves([larger])
        for value in (*self._assigned(smaller, reached), *self._carried(smaller, reached), *self._of_variable(smaller, reached)):
            leaves = self._leaves([value])
            if leaves & wanted and not leaves & mine:
                return True
        return False

    def _assigned(self, register: int, reached: frozenset[int]) -> Iterator[int]:
        """What is assigned to the place that a register was read from."""
        place = self._place(register)
        if place is None:
            return
        for number in reached:
            for one in self.function.code.blocks[number]:
                for target, value in self.places.assigned(self.function, one):
                    if self._home(target) == place or (one[0] == op.SET_DEREF and self._element_of(one[2]) == place):
                        yield value

    def _carried(self, register: int, reached: frozenset[int]) -> Iterator[int]:
        """What a variable without a place of its own is given for the rounds that follow."""

        def before(one: Instruction) -> Iterable[int]:
            is_copy = one[0] in (op.CAST, op.REBIND, op.COPY) and self.home[one] not in reached
            return one[3:] if one[0] == op.PHI else one[COPIES[one[0]] :][:1] if is_copy else ()

        values = behind(self.function, [register], before)
        return (one[2] for one in values if one[0] != op.PHI and self.home[one] in reached)

    def _of_variable(self, register: int, reached: frozenset[int]) -> Iterator[int]:
        """What a static variable, or a parameter that is a reference, is given: neither has a place of its own."""
        one = self.function.definitions[register] if register >= 0 else None
        index = one[3] if one is not None and one[0] == op.PARAM else op.NONE
        is_static = register in self.function.code.statics
        names = {use[2] for use in self.function.uses[register] if use[0] == op.BIND} if is_static else set[int]()
        for each in (each for number in reached for each in self.function.code.blocks[number]):
            if (each[0] == op.BIND and each[2] in names) or (each[0] == op.OUT and each[2] == index and each[3] != register):
                yield from self._arriving(each[3], reached)

    def _arriving(self, register: int, reached: frozenset[int]) -> Iterator[int]:
        """A value, or those of a join that come by way of some blocks."""
        one = self.function.definitions[register] if register >= 0 else None
        if one is None or one[0] != op.PHI:
            yield register
            return
        for value, before in zip(one[3:], self.function.phi_order[self.home[one]], strict=False):
            if before in reached and value != register:
                yield value

    def _place(self, register: int) -> Place | None:
        """The place that a register was read from, whichever element it is; None for a value that is computed, or not kept yet."""
        place = self.places.of(self.function, register)
        if place.path and place.path[-1] == ADDRESS:  # an iterator: of what it leads to
            place = place.behind(POINTEE)
        if place.root[0] == "register" or (place.root[0] == "parameter" and not place.path) or (self.is_new and place.root == _THIS):
            one = self.function.definitions[register] if register >= 0 else None
            if one is not None and one[0] in (op.CAST, op.REBIND):
                return self._place(one[-1])
            return self._element_of(register)
        return _general(place)

    def _home(self, target: Place) -> Place | None:
        """The place that is assigned to; the container, by what it has given."""
        return self._element_of(int(str(target.root[1]))) if target.root[0] == "register" else _general(target)

    def _element_of(self, register: int) -> Place | None:
        """``held.at(i)``, ``held.size()``, ``held.find(i)->second``: the container."""
        one = self.function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.ATTR, op.DEREF, op.COPY):
            one = self.function.definitions[one[3]]
        if one is None or one[0] != op.INVOKE or self.function.text(one[4]) not in self.function.known("looks-into"):
            return None
        place = self.places.of(self.function, one[3])
        return None if place.root[0] == "register" or (self.is_new and place.root == _THIS) else _general(place)

    def _leaves(self, registers: Iterable[int]) -> frozenset[object]:
        return self.kept.leaves(self.function, registers)

    # --- what called functions ask and set

    def _is_settled_inside(self, register: int, truth: bool, ways: _Behind) -> bool:
        """Whether a branch asks for a larger size, or another that is the same in all rounds, by itself or in a function, and a function
        that its way alone calls keeps it."""
        asked = self.kept.answer(self.function, register)
        holder, inner = (asked[1], asked[2]) if asked is not None else (self.function, register)
        inner, turned = unnegated(holder, inner)
        one = holder.definitions[inner] if inner >= 0 else None
        if one is None or one[0] != op.COMPARE:
            return False
        operator, sides = holder.text(one[3]), (one[4], one[5])
        if operator in _LARGER:
            larger = sides if _LARGER[operator] == (truth != turned) else sides[::-1]
            return self._is_kept_inside(asked, holder, larger, ways.only)
        if operator not in ("==", "!=") or (operator == "!=") != (truth != turned) or holder is not self.function:
            return False
        pairs = [pair for pair in (sides, sides[::-1]) if self._is_steady(pair[0], ways.within)]
        return any(self._is_kept_inside(asked, holder, pair, ways.only) for pair in pairs)

    def _is_kept_inside(self, asked: Answer | None, holder: Function, pair: tuple[int, int], only: frozenset[int]) -> bool:
        """Whether a function keeps what is wanted, the first of two, in the place of the other."""
        kept, wanted = self._size(holder, pair[1]), self.kept.leaves(holder, [pair[0]])
        if asked is not None and kept is not None:
            kept, wanted = self.kept.outer(self.function, *asked[:2], kept), self.kept.outer_leaves(self.function, *asked[:2], wanted)
        return kept is not None and not (self.is_new and kept.root == _THIS) and self._is_set(root_place(kept), wanted, only)

    def _size(self, holder: Function, register: int) -> Place | None:
        """The place of a size, also of one that a function gives."""
        given = self.kept.answer(holder, register)
        if given is not None:
            one, callee, inner = given
            place = self.kept.outer(holder, one, callee, self.places.of(callee, inner))
        else:
            place = self.places.of(holder, register)
        return place if place is not None and (place.path or place.root[0] == "global") else None

    def _is_set(self, kept: Place, wanted: frozenset[object], only: frozenset[int]) -> bool:
        """Whether some blocks set a place, in functions too, to what is computed from something and not from itself."""
        for one in (one for number in only for one in self.function.code.blocks[number]):
            found = list(self.kept.assigned(self.function, one)) if one[0] in (op.CALL, op.INVOKE) else []
            found += [(place, self._leaves([value])) for place, value in self.places.assigned(self.function, one)]
            if any(root_place(place) == kept and leaves & wanted and kept not in leaves for place, leaves in found):
                return True
        return False

    # --- what is made once

    def _is_nothing(self, register: int) -> bool:
        one = self.function.definitions[register] if register >= 0 else None
        return one is not None and one[0] == op.CONST and not self.function.unit.ir.constants[one[3]]

    def _is_end(self, left: int, right: int) -> bool:
        """``held.find(i) == held.end()``: the container holds no such element."""
        one = self.function.definitions[right] if right >= 0 else None
        is_end = one is not None and one[0] == op.INVOKE and self.function.text(one[4]) in ("end", "cend")
        return is_end and one is not None and self._element_of(left) == _general(self.places.of(self.function, one[3]))

    def _is_filled(self, register: int, reached: frozenset[int]) -> bool:
        """Whether a variable that holds nothing is given something: it is assigned, or its address is passed on."""
        place = self._place(register)
        if place is None or (place.root[0] == "cell" and not place.path and not self._outlives(place, reached)):
            return False
        for number in reached:
            for one in self.function.code.blocks[number]:
                if any(
                    _general(target) == place and not self._is_nothing(value) for target, value in self.places.assigned(self.function, one)
                ):
                    return True
                if one[0] == op.CALL and any(self._points_to(read, place) for read in op.reads(one)):
                    return True
                if one[0] in (op.CALL, op.INVOKE) and any(_general(target) == place for target in self.kept.filled(self.function, one)):
                    return True
        return False

    def _outlives(self, place: Place, reached: frozenset[int]) -> bool:
        """Whether a variable is not made anew in the rounds: it is set outside of them as well."""
        stores = [one for one in self.function.by_opcode[op.STORE] if cell_of(self.function, one[2]).root == place.root]
        loops = [loop for loop in self.graph.loops if loop.body & reached]
        return any(all(self.home[one] not in loop.body for loop in loops) for one in stores)

    def _points_to(self, register: int, place: Place) -> bool:
        found = self.places.of(self.function, register)
        return bool(found.path) and found.path[-1] == ADDRESS and _general(found.behind(POINTEE)) == place


def _computed_from(one: Instruction) -> Iterable[int]:
    """The registers that arithmetic, or a name for a value, reads."""
    return one[-1:] if one[0] == op.REBIND else op.reads(one) if one[0] in _COMPUTING else ()


def _general(place: Place) -> Place:
    """A place without its elements' keys."""
    return Place(place.root, tuple(key for key in place.path if not isinstance(key, Element)))
