"""Loops and functions that look like training and are none: searches, loops of one round, gradients of leaves that are only looked at."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop

_SCALING = frozenset({"*", "*=", "//", "//=", "<<", "<<=", ">>", ">>="})
_COMPUTING = frozenset({op.BINARY, op.UNARY, op.CALL, op.INVOKE})
_COMBINING = frozenset({op.BINARY, op.INPLACE, op.CALL, op.INVOKE})
_FOLLOWED = _COMPUTING | {op.ATTR, op.ITEM, op.UNPACK, op.PHI, op.COPY}


def is_search(function: Function, loop: Loop) -> bool:
    """Whether a loop doubles or halves what its condition compares: it comes round a few times, until it has found something."""
    compared = {register for one in function.code.blocks[loop.header] if one[0] == op.COMPARE for register in one[4:6]}
    variables = [one for one in function.code.blocks[loop.header] if one[0] == op.PHI and one[2] in compared]
    for one in variables:
        back = _slice(function, list(one[3:]), loop.body)
        scaled = (function.definitions[register] for register in back)
        for step in scaled:
            if step is None or step[0] not in (op.BINARY, op.INPLACE) or function.text(step[3]) not in _SCALING:
                continue
            if _slice(function, list(step[4:6]), loop.body) & {variable[2] for variable in variables}:
                return True
    return False


def _slice(function: Function, registers: list[int], blocks: frozenset[int]) -> set[int]:
    """The registers of a loop from which others are computed, calls aside."""
    found: set[int] = set()
    while registers:
        register = registers.pop()
        one = function.definitions[register] if register >= 0 else None
        if one is None or register in found or function.blocks[one] not in blocks:
            continue
        found.add(register)
        registers += op.reads(one) if one[0] in (op.PHI, op.BINARY, op.INPLACE, op.UNARY) else []
    return found


def is_trial(function: Function, blocks: frozenset[int] | None) -> bool:
    """Whether blocks make leaves, of no data, whose gradients they read, and step nothing: a function is tried out."""
    calls = [one for one in function.by_opcode[op.INVOKE] if blocks is None or function.blocks[one] in blocks]
    if any(function.text(one[4]) in function.known("of-optimizer") for one in calls):
        return False
    made = {one[2] for one in calls if _makes_leaf(function, one)}
    made |= {one[3] for one in calls if function.text(one[4]) == "requires_grad_" and len(one) < 8}
    new = {register for register in made if _is_new(function, register)}
    grads = {one[2]: one[3] for one in function.by_opcode[op.ATTR] if function.text(one[4]) == "grad" and one[3] in made}
    is_new = any(leaf in new for leaf in grads.values())
    return is_new or (blocks is None and bool(grads) and _are_looked_at(function, made, grads))


def _are_looked_at(function: Function, leaves: set[int], grads: Iterable[int]) -> bool:
    """Whether gradients of leaves are computed with, and neither change the leaves nor are passed on as they are."""
    parts = leaves | {one[2] for one in function.by_opcode[op.ATTR] if one[3] in leaves and function.text(one[4]) == "data"}
    if _are_changed(function, leaves, parts):
        return False
    waiting, seen, computed = list(grads), set[int](), set[int]()
    while waiting:
        register = waiting.pop()
        if register in seen:
            continue
        seen.add(register)
        for use in function.uses[register]:
            if _is_taken(function, use, parts) or (use[0] in (op.RETURN, op.BUILD) and register not in computed):
                return False
            if use[0] in _FOLLOWED and op.DEFINES[use[0]]:
                waiting.append(use[2])
                computed.update([use[2]] if use[0] in _COMPUTING or register in computed else [])
    return True


def _is_taken(function: Function, use: Instruction, parts: set[int]) -> bool:
    """Whether something is computed of a gradient and its leaf, or differentiated."""
    if use[0] in _COMBINING and not parts.isdisjoint(op.reads(use)):
        return True
    return use[0] == op.INVOKE and function.text(use[4]) == "backward"


def _are_changed(function: Function, leaves: set[int], parts: set[int]) -> bool:
    """Whether leaves are changed in place, by themselves or as parts, or are given other data."""
    if any(_changes(function.text(one[4])) and one[3] in parts for one in function.by_opcode[op.INVOKE]):
        return True
    return any(one[2] in leaves and function.text(one[3]) == "data" for one in function.by_opcode[op.SET_ATTR])


def _changes(name: str) -> bool:
    """Whether a method changes a tensor in place: ``add_``."""
    return name.endswith("_") and not name.endswith("__") and name != "requires_grad_"


def _makes_leaf(function: Function, one: Instruction) -> bool:
    if function.text(one[4]) == "requires_grad_":
        return True
    shape = function.unit.ir.constants[one[5]] if one[5] != op.NONE else ()
    return "requires_grad" in shape


def _is_new(function: Function, register: int) -> bool:
    """Whether a tensor comes from a function that makes one of no data."""
    one = function.definitions[register]
    while one is not None and one[0] == op.INVOKE and function.text(one[4]) == "requires_grad_":
        one = function.definitions[one[3]]
    return (
        one is not None
        and one[0] == op.INVOKE
        and function.dotted(one[3]) == "torch"
        and function.text(one[4]) in function.known("of-nothing")
    )
