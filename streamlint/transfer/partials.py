"""Calls of what ``functools.partial`` has prepared: the receiver and the arguments that were given there, and those of the call itself."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.handing import Called, made_by
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers


def called(function: Function, one: Instruction) -> Called:
    """What a call calls, as far as its own function shows what was prepared."""
    handing = function.unit.program.handing
    prepared = handing.prepared(function, one) if handing is not None else None
    return prepared or Called(one[3], argument_registers(function, one))


def prepared_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what a call may call if a partial object was made of it; "" where it is no call of a call's result."""
    made = made_by(function, one[3]) if one[0] == op.CALL else None
    while made is not None:
        callee = argument_registers(function, made)[0][1]
        made = made_by(function, callee)
        if made is None:
            held = function.definitions[callee] if callee >= 0 else None
            return function.text(held[4]) if held is not None and held[0] == op.ATTR else function.dotted(callee).rpartition(".")[2]
    return ""
