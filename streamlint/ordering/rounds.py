"""What a loop's later rounds know of its counter: ``i > 0`` holds, ``i == 0`` does not."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.counters import is_counter
from streamlint.facts.functions import Function
from streamlint.facts.instructions import unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.waits.questions import Key, alike

_LATER = {">": True, ">=": True, "!=": True, "<": False, "<=": False, "==": False}
_MIRRORED = {">": "<", ">=": "<=", "<": ">", "<=": ">="}


def next_round(function: Function, left: int, entered: int) -> Loop | None:
    """The loop whose next round begins where a path goes from one block to another."""
    loop = function.loop_heads.get(entered)
    return loop if loop is not None and left in loop.body else None


class Rounds:
    """The conditions in loops that ask which round it is."""

    def __init__(self) -> None:
        self._later: dict[tuple[Function, int], tuple[tuple[Key, bool], ...]] = {}

    def later(self, function: Function, loop: Loop) -> tuple[tuple[Key, bool], ...]:
        """These conditions, and what they say once some rounds have gone by."""
        key = function, loop.header
        known = self._later.get(key)
        if known is None:
            known = self._later[key] = tuple(_later(function, loop))
        return known


def _later(function: Function, loop: Loop) -> Iterator[tuple[Key, bool]]:
    for block in loop.body:
        end = function.code.blocks[block][-1]
        if end[0] != op.BRANCH or block == loop.header:
            continue
        condition, _ = unnegated(function, end[2])
        one = function.definitions[condition]
        said: bool | None = None
        if is_counter(function, function.control, function.blocks, condition):
            said = True
        elif one is not None and one[0] == op.COMPARE:
            said = _compared(function, one)
        if said is not None:
            yield alike(function, condition), said


def _compared(function: Function, one: Instruction) -> bool | None:
    operator = function.text(one[3])
    for counted, other, asked in ((one[4], one[5], operator), (one[5], one[4], _MIRRORED.get(operator, operator))):
        if isinstance(function.constant(_plain(function, other)), int) and is_counter(function, function.control, function.blocks, counted):
            return _LATER.get(asked)
    return None


def _plain(function: Function, register: int) -> int:
    one = function.definitions[register] if register >= 0 else None
    return one[4] if one is not None and one[0] == op.CAST else register
