"""C++: what calls give a reference or a pointer to, by which the object is known from there on."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.facts.code.objects import Elements
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

PAIR = ("first", "second")
_MADE = (op.DECLARE, op.CONSTRUCT)


def static_local(facts: Facts, function: Function, one: Instruction) -> str | None:
    """The name of the static variable of a function that a call gives a reference to: one that is none would be gone by then."""
    entered = list(facts.callee_functions(function, one))
    callee = entered[0] if len(entered) == 1 else None
    kind, ends = (callee.code.returns, callee.by_opcode[op.RETURN]) if callee is not None else (None, [])
    if callee is None or not isinstance(kind, tuple) or not kind[3] or len(ends) != 1 or ends[0][2] < 0:
        return None
    definition = callee.definitions[uncast(callee, ends[0][2])]
    return f"{callee.unit.number} {callee.code.number}" if definition is not None and definition[0] in _MADE else None


def leads_inside(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether a method of a container gives an iterator or a pointer to its elements."""
    return function.invokes(one, "leads-inside") and _is_container(facts, function, one[3])


def takes_element(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether a method of a container gives an element that stays there, whichever others are put in and taken out."""
    is_one = function.invokes(one, "takes-element") and not function.invokes(one, "takes", "ends")
    return is_one and _is_container(facts, function, one[3])


def is_value(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether a member is the value of the entry of a map to which an iterator leads: it stands for the entry."""
    if one[0] != op.ATTR or function.text(one[4]) != PAIR[1]:
        return False
    led = function.definitions[uncast(function, one[3])]
    while led is not None and led[0] == op.DEREF:
        led = function.definitions[uncast(function, led[3])]
    if led is None or led[0] != op.INVOKE or not function.invokes(led, "leads-inside"):
        return False
    held = facts.values(function, led[3]).values
    return any(isinstance(value, Elements) and f"std::{value.kind}" in facts.cpp_models.marked("mapped") for value in held)


def _is_container(facts: Facts, function: Function, register: int) -> bool:
    return any(isinstance(value, Elements) for value in facts.values(function, register).values)
