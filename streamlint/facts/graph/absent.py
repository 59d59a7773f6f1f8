"""Conditions that ask for what is not there on CUDA: other platforms, by the constants that rows call absent."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import is_none
from streamlint.facts.code.objects import BoundMethod, External, FunctionObject
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

_DEEPEST = 6


def truth_on_cuda(facts: Facts, function: Function, register: int, depth: int = _DEEPEST) -> bool | None:
    """The truth of a condition, if nothing but what is absent on CUDA decides it; None for any other."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0:
        return None
    if one[0] == op.UNARY and function.text(one[3]) == "not":
        inner = truth_on_cuda(facts, function, one[4], depth - 1)
        return None if inner is None else not inner
    if one[0] == op.COMPARE:
        return _of_comparison(facts, function, one)
    if one[0] == op.PHI:
        return _all_say(truth_on_cuda(facts, function, part, depth - 1) for part in one[3:])
    if _is_absent(facts, function, register):
        return False
    if one[0] == op.NAME and not function.is_cpp:
        made = function.unit.globals.get(function.text(one[3]), ())
        return _all_say(truth_on_cuda(facts, holder, value, depth - 1) for holder, value in made)
    return _of_call(facts, function, one, depth) if one[0] == op.CALL else None


def _of_comparison(facts: Facts, function: Function, one: Instruction) -> bool | None:
    """The truth of ``absent is None``."""
    operator = function.text(one[3])
    is_asked = operator in ("is", "is not", "==", "!=") and is_none(function, one[5]) and _is_absent(facts, function, one[4])
    return operator in ("is", "==") if is_asked else None


def _of_call(facts: Facts, function: Function, one: Instruction, depth: int) -> bool | None:
    """What a function of the program says, if all of its ends say the same; what stands for many functions says nothing."""
    node = facts.solver.demand(facts.callee(facts.base(function), one))
    facts.solver.solve()
    callees: list[Function] = []
    for value in node.values:
        callee = value.method.function if isinstance(value, BoundMethod) else value.function if isinstance(value, FunctionObject) else None
        if callee is None:
            return None
        callees.append(callee)
    ends = ((callee, end[2]) for callee in callees for end in callee.by_opcode[op.RETURN])
    return _all_say(truth_on_cuda(facts, callee, register, depth - 1) for callee, register in ends)


def _all_say(truths: Iterable[bool | None]) -> bool | None:
    """The truth that all say; None where one does not know, or says another one: the others are not asked then."""
    found: bool | None = None
    for truth in truths:
        if truth is None or (found is not None and found != truth):
            return None
        found = truth
    return found


def _is_absent(facts: Facts, function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.NAME, op.ATTR) or function.is_cpp:
        return False
    words = facts.models.constants
    last = function.text(one[3] if one[0] == op.NAME else one[4])
    if not any(word == "absent" and name.rpartition(".")[2] == last for name, word in words.items()):
        return False
    values = facts.values(function, register).values
    return any(isinstance(value, External) and words.get(value.name) == "absent" for value in values)
