"""C++: what ends where a variable, a member or an element that owns an object is given another one: ``slot = std::make_unique<T>()``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Place, Places, register_place
from streamlint.support.memo import memoized
from streamlint.waits.operands import ended_parameter

_STORES = (op.SET_NAME, op.SET_ATTR, op.SET_ITEM)


class Replaced(NamedTuple):
    """An instruction that ends what some places had, the function that this runs, and the number of the parameter that has it there."""

    instruction: Instruction
    places: tuple[Place, ...]
    callee: Function
    parameter: int


class Replacing:
    """Finds what ends so."""

    def __init__(self, facts: Facts, places: Places) -> None:
        self.facts = facts
        self.places = places

    @memoized
    def of(self, function: Function) -> list[Replaced]:
        """What a function replaces."""
        return list(self._find(function)) if function.is_cpp else []

    def _find(self, function: Function) -> Iterator[Replaced]:
        for opcode in _STORES:
            for one in function.by_opcode[opcode]:
                targets = tuple(target for target, _ in self.places.assigned(function, one))
                yield from self._by_type(function, one, one[-1], targets)
        for one in function.by_opcode[op.BIND]:
            joins = (use[2] for use in function.uses[one[3]] if use[0] == op.PHI and function.blocks[use] in function.loop_heads)
            if targets := tuple(map(register_place, joins)):
                yield from self._by_type(function, one, one[3], targets)
        for one in function.by_opcode[op.INVOKE]:
            if len(one) > 6 and function.invokes(one, "drops-reference"):
                deleters = self.facts.brace_lists.deleters(function, one[3])
                yield from (Replaced(one, self.places.names(function, one[3]), each, ended_parameter(each)) for each in deleters)

    def _by_type(self, function: Function, one: Instruction, value: int, targets: tuple[Place, ...]) -> Iterator[Replaced]:
        """What an assignment runs by the type of what is assigned to: the deleter of an owner, or the destructor of what it holds."""
        deleters, held = self.facts.brace_lists.owned(function, value, one)
        for each in deleters:
            yield Replaced(one, targets, each, ended_parameter(each))
        for definition in self.facts.hierarchy.order(held) if isinstance(held, ClassInfo) and not deleters else ():
            yield from (Replaced(one, targets, each, 0) for each in definition.methods.get("__del__", ()))
