"""Flags: what a path has put at a place, true or not None, decides the branches that ask for it."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import is_none
from streamlint.facts.code.objects import Constant, Object, Unknown
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.flow import FILLED, SET, Flow, Tracked
from streamlint.ordering.places.places import ANY, Places
from streamlint.support.memo import memoized

SETTING = frozenset({op.SET_ATTR, op.SET_ITEM, op.SET_NAME})
"""Instructions that may set a flag: of an object, of a slot, of a file; in C++ also a member by its name."""


class SetFlags(Flow):
    """Flow in which flags that a path sets are tracked."""

    def __init__(self, places: Places) -> None:
        super().__init__(places)

    def after(self, function: Function, one: Instruction, tracked: frozenset[Tracked], before: int) -> frozenset[Tracked]:
        tracked = super().after(function, one, tracked, before)
        return tracked | set(self._flags(function, one)) if one[0] in SETTING else tracked

    def sets(self, function: Function, one: Instruction) -> bool:
        """Whether an assignment sets a flag."""
        return any(True for _ in self._flags(function, one))

    def _flags(self, function: Function, one: Instruction) -> Iterator[Tracked]:
        """What an assignment to an attribute or element of a name says of it."""
        for target, register in self.places.assigned(function, one):
            if ANY in target.path:
                continue
            definition = function.definitions[register] if register >= 0 else None
            if definition is not None and definition[0] == op.CONST:
                if function.unit.ir.constants[definition[3]] is True:
                    yield Tracked(SET, target)
            elif not function.is_cpp and _kept_in(function, one) in self._asked(function.unit):
                values = self.facts.values(function, register).values
                if values and not any(map(_may_be_none, values)):
                    yield Tracked(FILLED, target)

    @memoized
    def _asked(self, unit: Unit) -> frozenset[str]:
        """The attributes that a file compares with None, themselves or their elements."""
        compared = ((function, one) for function in unit.functions for one in function.by_opcode[op.COMPARE])
        read = ((function, function.definitions[one[4]]) for function, one in compared if is_none(function, one[5]))
        return frozenset(_attribute(function, one) for function, one in read) - {""}


def _kept_in(function: Function, one: Instruction) -> str:
    """The attribute that an instruction sets, or sets an element of; "" where that has another name."""
    if one[0] == op.SET_ITEM:
        return _attribute(function, function.definitions[one[2]])
    return function.text(one[3]) if one[0] == op.SET_ATTR else ""


def _attribute(function: Function, one: Instruction | None) -> str:
    """The attribute that an instruction reads, or reads an element of."""
    if one is not None and one[0] == op.ITEM:
        one = function.definitions[one[3]]
    return function.text(one[4]) if one is not None and one[0] == op.ATTR else ""


def compared_with_none(function: Function, register: int) -> tuple[int, bool] | None:
    """The register that a comparison with None asks for, and whether it is true where that is None; None of what is no such comparison."""
    one = function.definitions[register] if register >= 0 else None
    name = function.text(one[3]) if one is not None and one[0] == op.COMPARE else ""
    return (one[4], name == "is") if one is not None and name in ("is", "is not") and is_none(function, one[5]) else None


def _may_be_none(value: Object) -> bool:
    return isinstance(value, Unknown) or (isinstance(value, Constant) and value.value is None)
