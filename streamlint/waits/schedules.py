"""What a caller hands to a loop that decodes or denoises, and the loop to its model: it is where the model is.

An element of it that is joined with a tensor in an argument of the model is a tensor of one number. It may be one of the CPU, which joins
tensors of any device: a finding says "if on CUDA".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.language_members import LANGUAGE_MEMBERS
from streamlint.facts.code.objects import Memory
from streamlint.facts.repetition.decoding import is_module
from streamlint.facts.repetition.hot import HotRegions, Region
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def values_passed(hot: HotRegions, region: Region) -> Iterator[int]:
    """The registers of parameters of which elements go to the model of a loop, joined with a tensor."""
    function, loop = region.function, region.loop
    home = hot.body(function).home
    for call in function.by_opcode[op.CALL] if loop is not None else ():
        if loop is None or home[call] not in loop.body or not is_module(hot.graph, function, call):
            continue
        for joined in behind(function, op.reads(call)[1:], _computed_from):
            if joined[0] != op.BINARY:
                continue
            for register in joined[4:6]:
                held = _element_of(function, register)
                other = joined[5] if register == joined[4] else joined[4]
                if held is not None and held[0] == op.PARAM and _is_tensor(hot, function, other):
                    yield held[2]


def _computed_from(one: Instruction) -> Iterable[int]:
    if one[0] == op.BINARY:
        return one[4:6]
    return op.reads(one) if one[0] in (op.UNARY, op.COPY) else ()


def _element_of(function: Function, register: int) -> Instruction | None:
    """What a value is an element of, or computed from one and numbers."""
    one = function.definitions[register]
    while one is not None and one[0] in (op.BINARY, op.UNARY):
        one = function.definitions[one[4]]
    if one is None or one[0] != op.ITEM or not _is_place(function, one[4]):
        return None
    return function.definitions[one[3]]


def _is_place(function: Function, register: int) -> bool:
    """Whether an index is that of one element: the counter of a loop, or one beside it; a key of a dict is none."""
    one = function.definitions[register]
    while one is not None and one[0] == op.BINARY:
        one = function.definitions[one[4]]
    return one is not None and one[0] in (op.NEXT, op.UNPACK, op.PHI)


def _is_tensor(hot: HotRegions, function: Function, register: int) -> bool:
    """Whether a register holds a tensor, by its values or by the method of tensors that made it."""
    one = function.definitions[register]
    if any(isinstance(value, Memory) for value in hot.facts.values(function, register).values):
        return True
    if one is None or one[0] != op.INVOKE:
        return False
    name = function.text(one[4])
    return name not in LANGUAGE_MEMBERS and f"torch.Tensor.{name}" in hot.facts.models.calls
