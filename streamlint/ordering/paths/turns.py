"""Indices whose slots come again: rings that a counter goes round in, and pools that hand out what was given back last."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Container, Object
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.set_flags import SetFlags
from streamlint.ordering.places.flow import BUFFER, Tracked
from streamlint.ordering.places.places import Element, Key, Place, rest_behind
from streamlint.ordering.places.queues import takes_first
from streamlint.ordering.places.rotation import EARLIER
from streamlint.support.memo import memoized
from streamlint.waits.operands import argument_registers
from streamlint.waits.questions import Key as Term
from streamlint.waits.questions import alike

_ROUND = frozenset({"%", "&", "%=", "&=", "^", "^="})
_READING = frozenset({op.ATTR, op.NAME, op.LOAD})
_WRITING = (op.SET_ATTR, op.SET_NAME, op.STORE)
_BELOW = {"<": (True, True), ">=": (True, False), ">": (False, True), "<=": (False, False)}
"""By comparison: whether the first side is the lesser one where it says so, and whether it holds there."""
_DEEPEST = 6


class Turns:
    """Whether an index means the same element again later on."""

    def stays(self, function: Function, place: Place) -> bool:
        """Whether all indices on the way to a place do: they are constant, or go round."""
        return all(not isinstance(key, Element) or self.returns(function, key.key) for key in place.path)

    def returns(self, function: Function, key: object) -> bool:
        """Whether an index means the same element later on."""
        if not isinstance(key, tuple) or not key:
            return True
        if len(key) == 1:
            return not isinstance(key[0], int) or self._is_cyclic(function, key[0])
        if key[0] in (op.CALL, op.INVOKE):
            return False
        if key[0] == op.BINARY and key[1] in _ROUND:
            return True
        if key[0] in _READING:
            stored = self._stores(function.unit, str(key[1]))
            return not stored or any(self._goes_round(*one) for one in stored)
        return all(self.returns(function, part) for part in key[1:] if isinstance(part, tuple))

    def _is_cyclic(self, function: Function, register: int) -> bool:
        """Whether a register that is no expression holds the same index again: an argument does, a loop's variable only by going round."""
        one = function.definitions[register] if 0 <= register < len(function.definitions) else None
        if one is None or one[0] in (op.PARAM, op.CONST):
            return True
        return one[0] == op.PHI and any(self._goes_round(function, source) for source in one[3:])

    def _goes_round(self, function: Function, register: int, depth: int = _DEEPEST) -> bool:
        one = function.definitions[register] if register >= 0 else None
        if one is None or depth == 0:
            return False
        if one[0] in (op.BINARY, op.INPLACE):
            return function.text(one[3]) in _ROUND
        if one[0] in (op.COPY, op.CAST):
            return self._goes_round(function, one[3 if one[0] == op.COPY else 4], depth - 1)
        return one[0] == op.PHI and any(self._goes_round(function, source, depth - 1) for source in one[3:])

    @memoized
    def _stores(self, unit: Unit, name: str) -> list[tuple[Function, int]]:
        """What functions of a file, constructors and bodies of classes aside, assign to a name."""
        return list(_stores_in(unit, name))


def _stores_in(unit: Unit, name: str) -> Iterator[tuple[Function, int]]:
    for function in unit.functions:
        if function.code.kind != "function" or function.code.name == "__init__":
            continue
        for opcode in _WRITING:
            for one in function.by_opcode[opcode]:
                at = 3 if opcode == op.SET_ATTR else 2
                if str(function.unit.ir.constants[one[at]]) == name:
                    yield function, one[-1]


class Pools(SetFlags):
    """Flow in which a queue hands out what it has held longest: with other elements before it, what was put in is not what comes next. Of
    a queue that was filled where it was made it is known that rounds come to it: like the slots of a ring."""

    def _called(self, function: Function, one: Instruction, tracked: frozenset[Tracked], target: Place) -> Iterator[Tracked]:
        is_first = one[0] == op.INVOKE and takes_first(function, one)
        is_first = is_first and not any(map(self._is_filled, self.facts.values(function, one[3]).values))
        yield from super()._called(
            function, one, frozenset(held for held in tracked if held.kind != BUFFER) if is_first else tracked, target
        )

    def _is_filled(self, value: Object) -> bool:
        """Whether the function that makes a container puts something into it."""
        if not isinstance(value, Container) or value.frame.function.is_cpp:
            return False
        function, made = value.frame.function, value.instruction
        given = argument_registers(function, made) if made[0] == op.CALL else ()
        if (made[0] == op.BUILD and len(made) > 4) or any(kind is None for kind, _ in given):
            return True
        puts = (use for use in function.by_opcode[op.INVOKE] if function.text(use[4]) in function.known("puts", "queue-put"))
        filled = (*(use[2] for use in function.by_opcode[op.APPEND]), *(use[3] for use in puts))
        return any(value in self.facts.values(function, each).values for each in filled)

    def after(self, function: Function, one: Instruction, tracked: frozenset[Tracked], before: int) -> frozenset[Tracked]:
        tracked = super().after(function, one, tracked, before)
        if one[0] != op.INVOKE or function.text(one[4]) not in function.known("reorders"):
            return tracked
        kept = self.places.names(function, one[3])
        return frozenset(held for held in tracked if held.kind != BUFFER or not any(rest_behind(place, held.place) for place in kept))


def unless_new(function: Function, condition: int, holds: bool, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
    """What is tracked at one way of a branch: where it says that the counter of a ring has not gone round yet (``turn < len(slots)``), no
    earlier round had the slot that is its turn (``slots[turn % len(slots)]``)."""
    one = function.definitions[condition] if condition >= 0 else None
    name = function.text(one[3]) if one is not None and one[0] == op.COMPARE else ""
    if one is None or name not in _BELOW:
        return tracked
    is_first_below, must_hold = _BELOW[name]
    if must_hold != holds:
        return tracked
    below, above = (alike(function, each) for each in (one[4:6] if is_first_below else (one[5], one[4])))
    return frozenset(held for held in tracked if not any(_is_turn(key, below, above) for key in held.place.path))


def _is_turn(key: Key, counter: Term, slots: Term) -> bool:
    """Whether an index is that of a ring with a counter."""
    index = key.key if isinstance(key, Element) and isinstance(key.key, tuple) else ()
    index = index[1] if index[:1] == (EARLIER,) and isinstance(index[1], tuple) else index
    return index[:4] == (op.BINARY, "%", counter, slots)
