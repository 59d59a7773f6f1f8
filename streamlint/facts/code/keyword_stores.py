"""Attributes that are set by the names of keywords: ``for name, value in keywords.items(): setattr(self, name, value)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

if TYPE_CHECKING:
    from streamlint.facts.code.functions import ClassInfo, Function

OF_ATTRIBUTES = "__dict__"
"""What Python calls the dictionary of an object's attributes."""


def sets_keywords(method: Function) -> bool:
    """Whether a method sets what it is given by keyword as attributes of its receiver."""
    index = next((number for number, one in enumerate(method.code.parameters) if one.kind == "double"), -1)
    if index < 0 or not method.has_receiver:
        return False
    return any(_sets_one(method, one, index) for one in method.by_opcode[op.CALL]) or any(
        _updates(method, one, index) for one in method.by_opcode[op.INVOKE]
    )


def set_by_keyword(owner: ClassInfo, method: Function) -> Iterator[tuple[Instruction, str, int]]:
    """The attributes that a method sets by calling one on its receiver: the call, the attribute's name, the value's register."""
    for one in method.by_opcode[op.INVOKE]:
        kinds = method.unit.ir.constants[one[5]] if one[5] != op.NONE and method.is_parameter(one[3]) else ()
        named = [(kind, register) for kind, register in zip(kinds, one[6:], strict=False) if isinstance(kind, str)]
        if named and _is_setter(owner, method.text(one[4])):
            yield from ((one, kind, register) for kind, register in named)


def _is_setter(owner: ClassInfo, name: str) -> bool:
    """Whether a method of a name sets its keywords: that of the class, or one of another class where it has none."""
    program = owner.unit.program
    if name in owner.methods:
        return any(map(sets_keywords, owner.methods[name]))
    near = (unit for unit in program.mentioning(name) if unit in program.storing)
    return any(sets_keywords(method) for unit in near for method in unit.methods.get(name, ()))


def _sets_one(method: Function, call: Instruction, index: int) -> bool:
    """``setattr(self, name, value)`` with a value of the keywords."""
    if len(call) != 8 or method.dotted(call[3]) != "setattr" or not method.is_parameter(call[5]):
        return False
    made = method.definitions[call[7]] if call[7] >= 0 else None
    if made is not None and made[0] == op.ITEM:
        return method.is_parameter(made[3], index)
    for opcode in (op.UNPACK, op.NEXT, op.ITER):
        if made is None or made[0] != opcode:
            return False
        made = method.definitions[made[3]]
    return made is not None and method.invokes(made, "gives-entries") and method.is_parameter(made[3], index)


def _updates(method: Function, call: Instruction, index: int) -> bool:
    """``self.__dict__.update(keywords)``, or ``vars(self).update(keywords)``."""
    if not method.invokes(call, "puts-entries") or not any(method.is_parameter(one, index) for one in call[6:]):
        return False
    owner = attributes_of(method, call[3])
    return owner != op.NONE and method.is_parameter(owner)


def attributes_of(function: Function, register: int) -> int:
    """The object whose attributes a register holds as a dictionary (``o.__dict__``, ``vars(o)``); NONE where it holds no such thing."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or function.is_cpp:
        return op.NONE
    if one[0] == op.ATTR:
        return one[3] if function.text(one[4]) == OF_ATTRIBUTES else op.NONE
    return one[5] if one[0] == op.CALL and len(one) == 6 and function.dotted(one[3]) == "vars" else op.NONE
