"""Closures that call what they were made for, as decorators make them: which function a call of one runs."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.objects import FunctionObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.transfer.transfer import Transfer


def is_captured(function: Function, call: Instruction) -> bool:
    """Whether a call calls what a variable of a function around holds."""
    made = function.definitions[call[3]] if call[0] == op.CALL and call[3] >= 0 else None
    return made is not None and made[0] == op.LOAD and function.unit.ir.constants[made[3]][1] != function.code.number


def may_be_made_for(transfer: Transfer, place: Site, closure: Function, target: Function) -> bool:
    """Whether the closure that a call calls may be the one that was made for a function: nothing shows that it was made for another."""
    caller, call = place
    if call[0] != op.CALL:
        return True
    made = [
        value.frame.arguments
        for value in transfer.values(caller, call[3])
        if isinstance(value, FunctionObject) and value.function is closure and value.frame is not None
    ]
    told = [[value for node in given.all for value in node.values] for given in made if given is not None]
    if not told or len(told) < len(made):
        return True
    return any(isinstance(value, FunctionObject) and value.function is target for values in told for value in values)
