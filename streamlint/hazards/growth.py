"""Guards of what is made once and kept: behind them a function changes what they ask for, so that they hold no more for the same request.

What a condition asks is of two kinds: places that outlive the round, which what stands behind it sets, and a request, from which the new
value is computed. Which comparisons ask for it, in which parts of a condition, and in which of the functions that answer it, is all one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, uncast, unnegated
from streamlint.hazards.kept_sizes import Answer, KeptSizes, Leaves, general_place, is_within, root_place
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import ADDRESS, POINTEE, Place, cell_of, register_place
from streamlint.support.memo import memoized
from streamlint.waits.operands import operand_of

Edge = tuple[int, int]
_DEEPEST = 8
"""Parts of a condition in one another."""
_LARGER = {">": True, ">=": True, "<": False, "<=": False}
_THIS = ("parameter", 0)
_CHANGING = frozenset({op.NEXT, op.INPLACE, op.ITEM, op.CALL, op.INVOKE})
_COMPUTING = frozenset({op.PHI, op.COPY, op.CAST, op.BINARY, op.UNARY})


class _Behind(NamedTuple):
    """The blocks that an edge leads to, those that it alone leads to, those of the loop around, and whether it leads to another round."""

    reached: frozenset[int]
    only: frozenset[int]
    within: frozenset[int] | None
    goes_on: bool


class _View(NamedTuple):
    """A function whose values decide a branch: its own function, or one that answers it, with the calls that lead there."""

    function: Function
    calls: tuple[tuple[Function, Instruction], ...] = ()

    def entered(self, answer: Answer) -> _View:
        """The function that a call enters."""
        return _View(answer[1], (*self.calls, (self.function, answer[0])))


class Growth:
    """The edges of a function's branches behind which what the branch asks for is changed so that the edge is taken once."""

    def __init__(self, kept: KeptSizes, function: Function, is_new: bool) -> None:
        """``is_new``: the function works for a constructor, so that nothing was kept in its object before."""
        self.kept = kept
        self.places = kept.places
        self.function = function
        self.graph = function.control
        self.is_new = is_new
        self.home = function.blocks

    def edges(self, within: frozenset[int] | None) -> Iterator[Edge]:
        """These edges of a loop's body, or of the whole function."""
        for number in self.graph.order if within is None else sorted(within):
            end = self.function.code.blocks[number][-1]
            if end[0] != op.BRANCH or end[3] == end[4]:
                continue
            for truth, after, other in zip((True, False), end[3:5], (end[4], end[3]), strict=True):
                reached = self._behind((number,), after, within)
                only = reached - self._behind((number, after), other, within)  # another part of the condition may lead there as well
                goes_on = any((number, other) in loop.exits and after in loop.body for loop in self.graph.loops)
                if self._is_taken_once(_View(self.function), end[2], truth, _Behind(reached, only, within, goes_on)):
                    yield number, after

    def _behind(self, ends: tuple[int, ...], after: int, within: frozenset[int] | None) -> frozenset[int]:
        """The blocks of a loop that an edge leads to before its branch, or another end, is reached."""
        header = min(within, key=self.graph.order.index) if within else -1
        outside = () if within is None else (number for number in range(len(self.graph)) if number not in within)
        return frozenset(self.graph.reach([after], (*ends, header, *outside)))

    # --- the parts of a condition

    def _is_taken_once(self, view: _View, register: int, truth: bool, ways: _Behind, depth: int = _DEEPEST) -> bool:
        """Whether what an edge leads to ends what it asks for: of a condition with parts, whichever of them it was."""
        register, turned = unnegated(view.function, register)
        truth = truth != turned
        one = view.function.definitions[register] if register >= 0 else None
        if one is None or not depth:
            return False
        if self._settles(view, one, truth, ways):
            return True
        if one[0] == op.CAST:
            return self._is_taken_once(view, one[-1], truth, ways, depth - 1)
        if one[0] == op.PHI:
            home = view.function.blocks[one]
            joined = zip(one[3:], view.function.phi_order[home], strict=False)
            parts = [part for part in joined if _truth(view.function, *part, home) is not (not truth)]
            return bool(parts) and all(
                self._is_taken_once(view, part, truth, ways, depth - 1) or self._is_led_to(view, block, one, ways, depth - 1)
                for part, block in parts
            )
        answer = self.kept.answer(view.function, register)
        return answer is not None and self._is_taken_once(view.entered(answer), answer[2], truth, ways, depth - 1)

    def _is_led_to(self, view: _View, block: int, phi: Instruction, ways: _Behind, depth: int) -> bool:
        """Whether all branches that lead to a block alone, before a join, are taken once: a flag that they set is."""
        control = view.function.control
        around = {guard for guard, _ in control.controlled_by[view.function.blocks[phi]]}
        guards = [each for each in control.controlled_by[block] if each[0] not in around]
        ends = [(view.function.code.blocks[guard][-1], after) for guard, after in guards]
        return bool(ends) and all(
            end[0] == op.BRANCH and self._is_taken_once(view, end[2], end[3] == after, ways, depth - 1) for end, after in ends if depth
        )

    def _settles(self, view: _View, one: Instruction, truth: bool, ways: _Behind) -> bool:
        """Whether what stands behind a single question ends it."""
        if one[0] != op.COMPARE:
            return not truth and self._is_filled(view, one[2], ways)
        operator, left, right = view.function.text(one[3]), one[4], one[5]
        if operator in _LARGER:
            larger, smaller = self._moved(view, *((left, right) if _LARGER[operator] == truth else (right, left)))
            is_strict = (operator in ("<", ">")) == truth
            return self._is_set(view, smaller, larger, ways) or (is_strict and self._is_set(view, larger, smaller, ways))
        if operator in ("==", "!=", "is", "is not") and (_is_nothing(view.function, right) or self._is_end(view, left, right)):
            return (operator in ("==", "is")) == truth and self._is_filled(view, left, ways)
        if operator not in ("==", "!=") or (operator == "!=") != truth:
            return False
        sides = (([left], [right]), ([right], [left]))
        return any(self._is_steady(view, wanted, ways) and self._is_set(view, kept, wanted, ways) for kept, wanted in sides)

    def _moved(self, view: _View, larger: int, smaller: int) -> tuple[list[int], list[int]]:
        """The sides of a comparison; what one takes away stands on the other: ``wanted - held > 0``."""
        sides: list[list[int]] = [[], []]
        for number, register in enumerate((larger, smaller)):
            one = view.function.definitions[uncast(view.function, register)]
            is_difference = one is not None and one[0] == op.BINARY and view.function.text(one[3]) == "-"
            sides[number].append(one[4] if one is not None and is_difference else register)
            sides[1 - number] += [one[5]] if one is not None and is_difference else []
        return sides[0], sides[1]

    # --- what a request is, and what is set to it

    def _outer(self, view: _View, found: Leaves) -> Leaves:
        """What values are computed from, by the names that the branch's function has for it."""
        callee = view.function
        for caller, call in reversed(view.calls):
            found, callee = self.kept.outer_leaves(caller, call, callee, found), caller
        return found

    def _is_set(self, view: _View, kept: Iterable[int], wanted: Iterable[int], ways: _Behind) -> bool:
        """Whether one side of a comparison is set to something that is computed from the other one, and not from itself."""
        states, request = (self._outer(view, self.kept.sources(view.function, side)) for side in (kept, wanted))
        states = frozenset(each for each in states if not (isinstance(each, Place) and self.is_new and each.root == _THIS))
        mine, open_ = self._outer(view, self.kept.leaves(view.function, kept)), states - request
        written = self._written(ways, open_) if request and open_ else ()
        return any(values & request and not values & mine and target not in values for target, values in written)

    def _written(self, ways: _Behind, states: Leaves) -> Iterator[tuple[object, Leaves]]:
        """What some blocks set of places, also in functions, with what one of the values that it may get is computed from."""
        for number in ways.reached:
            if number in ways.only:
                yield from (each for each in self._set_by_calls(number) if any(is_within(each[0], state) for state in states))
            for target, value in self._set_in(number):
                if any(is_within(target, state) for state in states):
                    yield from ((target, found) for found in self._values(value, ways))
        for state, value in self._carried(states, ways.reached):
            yield from ((state, found) for found in self._values(value, ways))

    @memoized
    def _set_by_calls(self, number: int) -> list[tuple[Place, Leaves]]:
        """What the functions that a block calls set, with what one of the values is computed from."""
        calls = (one for one in self.function.code.blocks[number] if one[0] in (op.CALL, op.INVOKE))
        return [each for one in calls for each in self.kept.assigned(self.function, one)]

    @memoized
    def _set_in(self, number: int) -> list[tuple[Place, int]]:
        """What a block itself sets."""
        return [each for one in self.function.code.blocks[number] for each in self._assigned(one)]

    def _carried(self, states: Leaves, reached: frozenset[int]) -> Iterator[tuple[int, int]]:
        """What some blocks give variables for the rounds that follow."""
        joins = {one[2]: one for one in self.function.by_opcode[op.PHI]}
        for state in states.intersection(joins):
            phi = joins[int(str(state))]
            for value, before in zip(phi[3:], self.function.phi_order[self.home[phi]], strict=False):
                if before in reached and value != phi[2]:
                    yield phi[2], value

    def _values(self, register: int, ways: _Behind) -> list[Leaves]:
        """What each value is computed from that a register may have; what counts the rounds of a loop, from all of them."""
        found = list(self.kept.values(self.function, register, ways.reached))
        return [frozenset[object]().union(*found)] if ways.goes_on else found

    def _assigned(self, one: Instruction) -> Iterator[tuple[Place, int]]:
        """What an instruction sets: places, static variables, parameters that are references, and what a method of an object is given."""
        for target, value in self.kept.assigned_at(self.function, one):
            inner = self._element_of(int(str(target.root[1]))) if target.root[0] == "register" else None
            yield target if inner is None else root_place(inner), value
        if one[0] == op.SET_DEREF and (held := self._element_of(one[2])) is not None:
            yield root_place(held), one[3]

    def _is_steady(self, view: _View, registers: Iterable[int], ways: _Behind) -> bool:
        """Whether a value is not made in the loop, and no caller counts it in a loop of its own."""
        leaves = self._outer(view, self.kept.leaves(view.function, registers))
        if ways.within is not None:
            made = (self.function.definitions[leaf] for leaf in leaves if isinstance(leaf, int) and not view.calls)
            return not any(one is not None and self.home[one] in ways.within for one in made)
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
        return any(caller.is_repeated(one) for one in changing)

    # --- what is made once

    def _is_end(self, view: _View, left: int, right: int) -> bool:
        """``held.find(i) == held.end()``: the container holds no such element."""
        one = view.function.definitions[right] if right >= 0 else None
        if one is None or view.calls or one[0] != op.INVOKE or view.function.text(one[4]) not in ("end", "cend"):
            return False
        return self._element_of(left) == general_place(self.places.of(self.function, one[3]))

    def _is_filled(self, view: _View, register: int, ways: _Behind) -> bool:
        """Whether a variable that holds nothing is given something: it is assigned, or its address is passed on."""
        inner = frozenset({self.places.of(view.function, register)}) if view.calls else frozenset[object]()
        places = self._outer(view, inner) if view.calls else (self._place(register),)
        if any(isinstance(place, Place) and self._is_given(place, ways.reached) for place in places):
            return True
        joined = self.function.definitions[register] if register >= 0 and not view.calls else None
        begun = joined[3:] if joined is not None and joined[0] == op.PHI else ()
        is_holder = any(self._is_holder(register_place(each)) for each in begun)
        return is_holder and any(not _is_nothing(self.function, each) for _, each in self._carried(frozenset({register}), ways.reached))

    def _is_given(self, place: Place, reached: frozenset[int]) -> bool:
        if (place.root[0] == "cell" and not place.path and not self._outlives(place, reached)) or (self.is_new and place.root == _THIS):
            return False
        return any(self._gives(one, place) for number in reached for one in self.function.code.blocks[number])

    def _gives(self, one: Instruction, place: Place) -> bool:
        """Whether an instruction gives a place something."""
        assigned = self.kept.assigned_at(self.function, one)
        if any(general_place(target) == place and not _is_nothing(self.function, value) for target, value in assigned):
            return True
        if one[0] == op.CALL and any(self._points_to(read, place) for read in op.reads(one)):
            return True
        if one[0] == op.INVOKE and len(one) > 6 and self.function.invokes(one, "emplaces", "drops-reference"):
            return self._place(one[3]) == place  # C++: what holds an object is given another one
        return one[0] in (op.CALL, op.INVOKE) and any(general_place(target) == place for target in self.kept.filled(self.function, one))

    def _place(self, register: int) -> Place | None:
        """The place that a register was read from, whichever element it is; None for a value that is computed, or not kept yet."""
        if (static := self.kept.static(self.function, register)) is not None:
            return static
        place = self.places.of(self.function, register)
        if place.path and place.path[-1] == ADDRESS:  # an iterator: of what it leads to
            place = place.behind(POINTEE)
        if self._is_holder(place):
            return place
        if place.root[0] == "register" or (place.root[0] == "parameter" and not place.path) or (self.is_new and place.root == _THIS):
            one = self.function.definitions[register] if register >= 0 else None
            return self._place(one[-1]) if one is not None and one[0] in (op.CAST, op.REBIND) else self._element_of(register)
        return general_place(place)

    def _element_of(self, register: int) -> Place | None:
        """``held.at(i)``, ``held.size()``, ``held.find(i)->second``: the container."""
        one = self.function.definitions[register] if register >= 0 else None
        while one is not None and one[0] in (op.ATTR, op.DEREF, op.COPY):
            one = self.function.definitions[one[3]]
        if one is None or one[0] != op.INVOKE or self.function.text(one[4]) not in self.function.known("looks-into"):
            return None
        place = self.places.of(self.function, one[3])
        is_passing = place.root[0] == "register" and not self._is_holder(place)
        return None if is_passing or (self.is_new and place.root == _THIS) else general_place(place)

    def _is_holder(self, place: Place) -> bool:
        """C++: whether a place is a variable that begins with nothing and may be given an object later, as an `std::optional` does."""
        one = self.function.definitions[int(str(place.root[1]))] if place.root[0] == "register" and not place.path else None
        return one is not None and one[0] == op.DECLARE and self.places.facts.brace_lists.is_holder(self.function, one[2])

    def _outlives(self, place: Place, reached: frozenset[int]) -> bool:
        """Whether a variable is not made anew in the rounds: it is set outside of them as well."""
        stores = [one for one in self.function.by_opcode[op.STORE] if cell_of(self.function, one[2]).root == place.root]
        loops = [loop for loop in self.graph.loops if loop.body & reached]
        return any(all(self.home[one] not in loop.body for loop in loops) for one in stores)

    def _points_to(self, register: int, place: Place) -> bool:
        found = self.places.of(self.function, register)
        return bool(found.path) and found.path[-1] == ADDRESS and general_place(found.behind(POINTEE)) == place


def _computed_from(one: Instruction) -> Iterable[int]:
    """The registers that arithmetic, or a name for a value, reads."""
    return one[-1:] if one[0] == op.REBIND else op.reads(one) if one[0] in _COMPUTING else ()


def _is_nothing(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.CONST and not function.unit.ir.constants[one[3]]


def _truth(function: Function, register: int, before: int, block: int) -> bool | None:
    """The truth of a part of a condition where it joins the others: a constant, or what the branch that leads on from there has asked."""
    end = function.code.blocks[before][-1]
    if end[0] == op.BRANCH and end[2] == register and end[3] != end[4]:
        return end[3] == block
    return function.truth(uncast(function, register))
