"""Attributes that instructions set."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.support.records import record

if TYPE_CHECKING:
    from streamlint.facts.code.functions import Function


_SETTING = frozenset({"__setattr__", "setattr"})


@record(eq=False, slots=True)
class Store:
    """An attribute that an instruction sets: the function, the receiver's register, the attribute's name, the value's register."""

    function: Function
    instruction: Instruction
    receiver: int
    name: str
    value: int


def inner_stores(function: Function) -> Iterator[Store]:
    """The attributes that a function sets, by assignment or by a call that names them."""
    for one in function.by_opcode[op.SET_ATTR]:
        yield Store(function, one, one[2], function.text(one[3]), one[4])
    for one in function.by_opcode[op.INIT]:
        if len(one) > 5:
            yield Store(function, one, one[2], function.text(one[3]), one[5])
    dynamic = function.known("registers-tensor", "registers-module") | _SETTING
    for one in function.by_opcode[op.INVOKE]:
        if function.text(one[4]) in dynamic and len(one) >= 8 and isinstance(name := function.constant(one[6]), str):
            yield Store(function, one, one[3], name, one[7])
    for one in function.by_opcode[op.CALL]:
        if len(one) == 8 and function.dotted(one[3]) == "setattr" and isinstance(name := function.constant(one[6]), str):
            yield Store(function, one, one[5], name, one[7])
