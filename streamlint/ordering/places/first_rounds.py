"""What a variable of a loop may hold where its first round never comes: not what it held before the loop."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from streamlint.facts.code.counters import count_of
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Constant, Object
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.transfer.transfer import Transfer

_DEEPEST = 8
_COMPARING: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "is": operator.is_, "is not": operator.is_not,
}  # fmt: skip
_COUNTING: Mapping[str, Callable[[Any, Any], Any]] = {"+": operator.add, "-": operator.sub, "%": operator.mod, "&": operator.and_}
Known = tuple[Any] | None
"""A constant, alone in a tuple; None where it is not known."""


class FirstRounds:
    """Evaluates conditions as they are in the first round of a loop."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    def values(self, function: Function, register: int, block: int) -> list[Object]:
        """What a register may hold where it is used in a block."""
        one = function.definitions[register] if register >= 0 else None
        held = self.operands(function, one, block) if one is not None and one[0] == op.PHI else (register,)
        return list(dict.fromkeys(value for each in held for value in self.transfer.values(function, each)))

    def operands(self, function: Function, phi: Instruction, block: int) -> tuple[int, ...]:
        """What a join may hold in a block: at the head of a loop not what came before the loop, if the block is for later rounds."""
        home = function.homes[phi][0]
        loop = function.loop_heads.get(home)
        before = function.phi_order[home]
        if loop is None or block not in loop.body or len(before) != len(phi) - 3:
            return phi[3:]
        kept = [each for each, source in zip(phi[3:], before, strict=True) if source in loop.body]
        entries = [number for number, source in enumerate(before) if source not in loop.body]
        if not kept or len(entries) != 1:
            return phi[3:]
        first = {one[2]: one[3 + entries[0]] for one in function.code.blocks[home] if one[0] == op.PHI}
        is_later = any(self._is_other(function, first, *way) for way in _deciding(function, block, loop.body - {home}))
        return tuple(kept) if is_later else phi[3:]

    def _is_other(self, function: Function, first: Mapping[int, int], end: Instruction, edge: int) -> bool:
        """Whether a branch of the first round is known not to lead over an edge."""
        known = self._value(function, first, end[2], _DEEPEST)
        return known is not None and bool(known[0]) != (edge == end[3])

    def _is_null(self, function: Function, register: int) -> bool:
        """Whether all that a register may hold is null."""
        held = list(self.transfer.values(function, register))
        return bool(held) and all(isinstance(value, Constant) and value.value in (None, 0) for value in held)

    def _value(self, function: Function, first: Mapping[int, int], register: int, depth: int) -> Known:
        register = uncast(function, register)
        register = uncast(function, first.get(register, register))
        one = function.definitions[register] if register >= 0 and depth else None
        if one is None:
            return None
        if one[0] == op.CONST:
            return (function.unit.ir.constants[one[3]],)
        if one[0] == op.UNARY and function.text(one[3]) in ("not", "!"):
            known = self._value(function, first, one[4], depth - 1)
            return (not known[0],) if known is not None else None
        if one[0] in (op.COMPARE, op.BINARY):
            return self._computed(function, first, one, depth)
        if one[0] == op.CONSTRUCT and len(one) == 5:  # C++: ``T* last{}``
            return (None,) if self._is_null(function, register) else None
        count = count_of(function, one) if one[0] in (op.NEXT, op.UNPACK) else None
        return (count.start,) if count is not None and isinstance(count.start, int) else None

    def _computed(self, function: Function, first: Mapping[int, int], one: Instruction, depth: int) -> Known:
        name = function.text(one[3])
        compute = (_COMPARING if one[0] == op.COMPARE else _COUNTING).get(name)
        left, right = (self._value(function, first, each, depth - 1) for each in one[4:6])
        if compute is None or left is None or right is None:
            return None
        is_null = function.is_cpp and (left[0] is None or right[0] is None)
        given = [0 if each is None and is_null else each for each in (left[0], right[0])]
        try:
            return (compute(*given),)
        except (TypeError, ZeroDivisionError):
            return None


def _deciding(function: Function, block: int, body: frozenset[int]) -> Iterator[tuple[Instruction, int]]:
    """The branches of the body of a loop that decide whether a block runs, each with the edge that leads there."""
    graph = function.control
    while block != NOBODY and block in body:
        for branch, edge in graph.controlled_by[block]:
            end = function.code.blocks[branch][-1]
            if branch in body and end[0] == op.BRANCH:
                yield end, edge
        block = graph.dominators[block] if graph.dominators[block] != block else NOBODY
