"""Calls of what ``functools.partial`` has prepared: the receiver and the arguments that were given there, and those of the call itself."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.facts import Facts
from streamlint.facts.functions import Function
from streamlint.facts.objects import PartialObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import Given, argument_registers

_DEEPEST = 4


class Called(NamedTuple):
    """What a call calls: the register of the function or of the bound method, and all arguments."""

    callee: int
    given: list[Given]


def called(facts: Facts, function: Function, one: Instruction) -> Called:
    """What a call calls, as far as its own function shows what was prepared."""
    found = Called(one[3], argument_registers(function, one))
    for _ in range(_DEEPEST if one[0] == op.CALL else 0):
        made = _made(function, found.callee)
        if made is None or not any(isinstance(value, PartialObject) for value in facts.values(function, found.callee).values):
            return found
        first = argument_registers(function, made)
        named = {kind for kind, _ in found.given}
        before = [each for each in first[1:] if each[0] is None]
        behind = [each for each in first[1:] if each[0] is not None and each[0] not in named]
        found = Called(first[0][1], [*before, *found.given, *behind])
    return found


def prepared_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what a call may call if a partial object was made of it; "" where it is no call of a call's result."""
    made = _made(function, one[3]) if one[0] == op.CALL else None
    while made is not None:
        callee = argument_registers(function, made)[0][1]
        made = _made(function, callee)
        if made is None:
            held = function.definitions[callee] if callee >= 0 else None
            return function.text(held[4]) if held is not None and held[0] == op.ATTR else function.dotted(callee).rpartition(".")[2]
    return ""


def receiver_of(function: Function, callee: int) -> int | None:
    """The object of a bound method that a register holds."""
    made = function.definitions[callee] if callee >= 0 else None
    return made[3] if made is not None and made[0] == op.ATTR else None


def _made(function: Function, register: int) -> Instruction | None:
    """The call with arguments by position that a register holds the result of."""
    made = function.definitions[register] if register >= 0 else None
    while made is not None and made[0] == op.COPY:
        made = function.definitions[made[3]]
    if made is None or made[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return None
    given = argument_registers(function, made)
    return made if given and given[0][0] is None else None
