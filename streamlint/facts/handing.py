"""Arguments that were handed over before a call: to a partial object that is called."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint import TYPE_CHECKING
from streamlint.facts.functions import Function
from streamlint.facts.objects import PartialObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.facts import Facts

_DEEPEST = 4


class Called(NamedTuple):
    """What a call calls: the register of the function or of the bound method, and all arguments, each with its keyword: 1 or 2 where it
    is spread (``*``, ``**``), None by position."""

    callee: int
    given: list[tuple[object, int]]


class Handing:
    """The arguments of calls, with those that were handed over before."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._known: dict[tuple[Function, Instruction], Called | None] = {}

    def of(self, function: Function, one: Instruction) -> Called | None:
        """What a call calls if some of its arguments were given before, as far as its own function shows them; None of any other call."""
        made = made_by(function, one[3]) if one[0] == op.CALL else None
        if made is None:
            return None
        key = (function, one)
        if key not in self._known:
            self._known[key] = self._prepared(function, one)
        return self._known[key]

    def _prepared(self, function: Function, one: Instruction) -> Called | None:
        found = Called(one[3], list(_given(function, one)))
        for _ in range(_DEEPEST):
            made = made_by(function, found.callee)
            if made is None or not any(isinstance(value, PartialObject) for value in self.facts.values(function, found.callee).values):
                break
            first = list(_given(function, made))
            named = {kind for kind, _ in found.given}
            before = [each for each in first[1:] if each[0] is None]
            behind = [each for each in first[1:] if each[0] is not None and each[0] not in named]
            found = Called(first[0][1], [*before, *found.given, *behind])
        return found if found.callee != one[3] else None


def receiver_of(function: Function, callee: int) -> int | None:
    """The object of a bound method that a register holds."""
    made = function.definitions[callee] if callee >= 0 else None
    return made[3] if made is not None and made[0] == op.ATTR else None


def made_by(function: Function, register: int) -> Instruction | None:
    """The call with arguments by position that a register holds the result of."""
    made = function.definitions[register] if register >= 0 else None
    while made is not None and made[0] == op.COPY:
        made = function.definitions[made[3]]
    if made is None or made[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return None
    first = next(_given(function, made), None)
    return made if first is not None and first[0] is None else None


def _given(function: Function, call: Instruction) -> Iterator[tuple[object, int]]:
    first, shape = (6, call[5]) if call[0] == op.INVOKE else (5, call[4])
    kinds = function.unit.ir.constants[shape] if shape != op.NONE else (None,) * (len(call) - first)
    yield from zip(kinds, call[first:], strict=False)
