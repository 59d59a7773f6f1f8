"""Indices of tensors: masks, whose result has a size that only the device knows, and numbers of the host, which are uploaded first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Constant, Container, External, Memory, Unknown
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.constants import constants_of
from streamlint.waits.entered import Held
from streamlint.waits.operands import argument_registers
from streamlint.waits.wait import LIST

_DEEPEST = 8
"""Calls and places that keep an index, on the way to where it is made."""
_ELSEWHERE = frozenset({op.PARAM, op.ATTR, op.ITEM, op.NAME, op.LOAD})
"""What was made elsewhere."""


def parts_of(function: Function, register: int) -> list[int]:
    """The registers of the indices of each dimension: ``x[rows, columns]``."""
    one = function.definitions[register]
    if one is not None and one[0] == op.BUILD and function.kind_built(one) == "tuple":
        return list(one[4:])
    return [register]


def is_of_array(function: Function, register: int) -> bool:
    """Whether what a register holds was taken out of a tensor or an array: by the index of more than one dimension."""
    made = behind(function, [register], lambda one: one[3:4] if one[0] == op.ITEM else ())
    return any(one[0] == op.ITEM and len(parts_of(function, one[4])) > 1 for one in made)


def is_mask(facts: Facts, function: Function, register: int, left: int = _DEEPEST) -> bool:
    """Whether a register holds a tensor of truth values: of a comparison, made with such a type, or what operators make of those; of what
    was made elsewhere, all that callers give or that was put there, and of a call, what all functions give back that it enters, ``left``
    steps away at most."""

    def onward(one: Instruction) -> Iterable[int]:
        joins = one[0] in (op.BINARY, op.UNARY) and function.text(one[3]) in ("&", "|", "^", "~")
        if one[0] == op.PHI or joins:
            return op.reads(one)
        return one[3:4] if function.invokes(one, "same-elements") else ()

    made = list(behind(function, [register], onward))
    if any(one[0] == op.COMPARE or _has_boolean_type(facts, function, one) for one in made):
        return True
    return left > 0 and any(
        _is_mask_returned(facts, function, one, left - 1) or _all_made(facts, function, one, partial(is_mask, facts, left=left - 1))
        for one in made
    )


def _all_made(facts: Facts, function: Function, one: Instruction, is_so: Callable[[Function, int], bool]) -> bool:
    """Whether an instruction takes what was made elsewhere, and something holds for all that makes it."""
    roots = constants_of(facts).given.roots(Held(function, one[2])) if one[0] in _ELSEWHERE and not function.is_cpp else None
    return bool(roots) and all(root[:2] != (function, one[2]) and is_so(root.function, root.register) for root in roots or ())


def _is_mask_returned(facts: Facts, function: Function, one: Instruction, left: int) -> bool:
    """Whether a call, or a part of what it gives, is a mask at all ends of the functions that it enters."""
    made = function.definitions[one[3]] if one[0] == op.UNPACK and one[6] == op.NONE and one[3] >= 0 else one
    if made is None or made[0] not in (op.CALL, op.INVOKE) or function.is_cpp:
        return False
    ends = [(callee, end[2]) for callee in facts.callee_functions(function, made) for end in callee.by_opcode[op.RETURN]]
    if made is not one:
        ends = [(callee, part) for callee, end in ends for part in _part(callee, end, one[4])]
    return bool(ends) and all(each >= 0 and is_mask(facts, callee, each, left) for callee, each in ends)


def _part(function: Function, register: int, place: int) -> list[int]:
    """The register of a part of a tuple that is written out; NONE for any other value."""
    parts = parts_of(function, register) if register >= 0 else []
    return [parts[place] if len(parts) > 1 and 0 <= place < len(parts) else op.NONE]


def is_masked(facts: Facts, function: Function, index: int) -> bool:
    """Whether an index, or that of a dimension, is a mask."""
    return any(is_mask(facts, function, part) for part in parts_of(function, index))


def is_gathered(facts: Facts, function: Function, one: Instruction) -> bool:
    """Whether an element is picked by a tensor, or of a tensor by a list: what is picked goes into new memory. What a loop or an index has
    taken out of a tensor may be a number, by which an element is a view."""
    if function.is_cpp or one[4] < 0:
        return False
    picks = list(parts_of(function, one[4]))
    by_tensor = any(_is_tensor_index(facts, function, part) for part in picks)
    made = (function.definitions[part] for part in picks if part >= 0)
    if not by_tensor and not any(each is not None and each[0] == op.BUILD and function.kind_built(each) == "list" for each in made):
        return False
    values = list(facts.values(function, one[3]).values)
    held = any(isinstance(value, Memory) for value in values)
    return held or all(isinstance(value, Unknown) for value in values)  # no other container takes a list or a tensor


def _is_tensor_index(facts: Facts, function: Function, register: int) -> bool:
    made = function.definitions[register] if register >= 0 else None
    if made is None or made[0] in (op.SLICE, op.NEXT, op.CONST, op.BUILD):
        return False
    is_element = made[0] == op.ITEM and not any(_is_slice(function, part) for part in parts_of(function, made[4]))
    if is_element and not _is_of_container(facts, function, made[3]):
        return False
    if function.invokes(made, "same-elements"):
        return True
    return any(isinstance(value, Memory) for value in facts.values(function, register).values)


def _is_of_container(facts: Facts, function: Function, register: int) -> bool:
    """Whether a register holds a container of the language, no tensor: an element of it is what was put there."""
    values = list(facts.values(function, register).values)
    return bool(values) and all(isinstance(value, Container) for value in values)


def _is_slice(function: Function, register: int) -> bool:
    made = function.definitions[register] if register >= 0 else None
    return made is not None and made[0] == op.SLICE


def is_of_numbers(facts: Facts, function: Function, register: int, left: int = _DEEPEST) -> bool:
    """Whether a register holds a tensor of indices: a factory counts them or makes whole numbers (``randint``), or an operation finds
    places (``argmax``, ``nonzero``), here or ``left`` steps away at most."""
    made = list(behind(function, [register], lambda one: one[3:4] if function.invokes(one, "same-elements") else ()))
    calls = [one for one in made if one[0] in (op.CALL, op.INVOKE)]
    if any(row.get("counts") for one in calls for row in facts.rows(function, one)) or any(
        isinstance(value, External) and value.name.rpartition(".")[2] in function.known("whole-numbers")
        for one in calls
        for value in facts.callees(function, one)
    ):
        return True
    is_so = partial(is_of_numbers, facts, left=left - 1)
    return left > 0 and any(_all_made(facts, function, one, is_so) for one in made)


def _has_boolean_type(facts: Facts, function: Function, one: Instruction) -> bool:
    """``torch.ones_like(x, dtype=torch.bool)``, ``x.bool()``, ``torch.isnan(x)``."""
    if one[0] not in (op.CALL, op.INVOKE):
        return False
    names = [value.name for value in facts.callees(function, one) if isinstance(value, External)]
    if any(name.startswith("torch.") and name.rpartition(".")[2] in function.known("boolean") for name in names):
        return True
    typed = [register for kind, register in argument_registers(function, one) if kind == "dtype"]
    if one[0] == op.INVOKE and function.text(one[4]) == "to":
        typed += [register for _, register in argument_registers(function, one)]
    return any(function.dotted(register) in facts.models.marked("truth-type") or _is_bool(facts, function, register) for register in typed)


def _is_bool(facts: Facts, function: Function, register: int) -> bool:
    return any(
        isinstance(value, External) and (value.name == "bool" or value.name in facts.models.marked("truth-type"))
        for value in facts.values(function, register).values
    )


def is_uploaded(facts: Facts, function: Function, register: int) -> bool:
    """Whether an index is a list of numbers, or a tensor of the host with a dimension. A tensor of one number is read where it is."""
    values = facts.values(function, register).values
    if not values:
        return False
    if all(isinstance(value, Container) and value.kind == "list" for value in values):
        return not _holds_others(facts, function, register)
    if not all(isinstance(value, Memory) and value.space == "host" for value in values):
        return False
    return all(isinstance(value, Memory) and value.type == LIST for value in values) or is_new_index(facts, function, register)


def _holds_others(facts: Facts, function: Function, register: int) -> bool:
    """Whether a list is seen to hold what is no number: slices, tensors, names."""
    one = function.definitions[register]
    if one is None or one[0] != op.BUILD:
        return False
    held = [value for part in one[4:] for value in facts.values(function, part).values]
    parts = [function.definitions[part] for part in one[4:]]
    if any(part is not None and part[0] == op.SLICE for part in parts):
        return True
    return any(isinstance(value, Memory) or (isinstance(value, Constant) and not isinstance(value.value, int)) for value in held)


def is_new_index(facts: Facts, function: Function, register: int) -> bool:
    """Whether a register holds a tensor with a dimension that a factory has just made."""
    one = function.definitions[register]
    if one is None or one[0] not in (op.CALL, op.INVOKE):
        return False
    names = [value.name for value in facts.callees(function, one) if isinstance(value, External)]
    row = facts.models.call(names[0]) if names else None
    if row is None or row.effect != "factory" or row.library != "torch":
        return False
    if row.get("data") is None:
        return names[0].rpartition(".")[2] in function.known("one-dimension")
    given = argument_registers(function, one)
    made = function.definitions[given[0][1]] if given else None
    return made is not None and made[0] == op.BUILD
