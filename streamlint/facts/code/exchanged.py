"""C++: two variables that a function of the library exchanges (``std::swap``): each has from there on what the other one had."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

from streamlint.ir import Code, Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.files.program import Unit

_PAIR = 2
_FIRST = 5
"""Where the arguments of a call begin."""


def exchanged(unit: Unit, code: Code) -> Code:
    """The code of a function with the stores that its exchanges make."""
    names = unit.exchanging
    if not names:
        return code
    made = {one[2]: one for one in code.instructions() if op.DEFINES[one[0]]}
    calls = {
        one[2]: one
        for one in made.values()
        if one[0] == op.CALL and len(one) == _FIRST + _PAIR and _is_name(made.get(one[3]), names) and min(one[_FIRST:]) >= 0
    }
    if not calls:
        return code
    found = copy(code)
    found.blocks = [[each for one in block for each in _with_stores(one, calls, made)] for block in code.blocks]
    return found


def _is_name(one: Instruction | None, names: frozenset[int]) -> bool:
    return one is not None and one[0] == op.NAME and one[3] in names


def _with_stores(one: Instruction, calls: dict[int, Instruction], made: dict[int, Instruction]) -> list[Instruction]:
    """An instruction, and what an exchange stores behind it; a local variable is bound to the other one's value."""
    if one[0] == op.REBIND and one[3] in calls:
        given = calls[one[3]][_FIRST:]
        return [(*one[:5], given[1 - one[4]])]
    if one[0] != op.CALL or one[2] not in calls:
        return [one]
    pairs = zip(one[_FIRST:], reversed(one[_FIRST:]), strict=True)
    return [one, *(store for place, value in pairs if (store := _stored(one[1], made.get(place), value)) is not None)]


def _stored(at: int, place: Instruction | None, value: int) -> Instruction | None:
    """The store of a value where an instruction has read another one: in a member, an element, or behind a pointer."""
    if place is None:
        return None
    if place[0] == op.NAME:
        return (op.SET_NAME, at, place[3], value)
    if place[0] == op.ATTR:
        return (op.SET_ATTR, at, place[3], place[4], value)
    if place[0] == op.ITEM:
        return (op.SET_ITEM, at, place[3], place[4], value)
    return (op.SET_DEREF, at, place[3], value) if place[0] == op.DEREF else None
