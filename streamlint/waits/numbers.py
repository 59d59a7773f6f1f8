"""Arithmetic on tensors of one element, known from what becomes of them: who waits behind it waits for a kernel of no length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.facts.functions import Function
from streamlint.facts.hot import HotRegions
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.waits.operands import argument_registers, behind
from streamlint.waits.wait import CAST, READ, Wait

_OPERATORS = frozenset({op.BINARY, op.INPLACE, op.UNARY, op.COMPARE})
_OF_ONE = frozenset({"float", "int", "bool", "complex"})
"""Functions of the language that take a tensor only if it has one element."""


def on_numbers(hot: HotRegions, function: Function, waits: Iterable[Wait]) -> frozenset[Instruction]:
    """The instructions of a function that compute, element by element, tensors of one element alone."""
    scales = {one.instruction for one in hot.rounds.of(function) if one.row.does == "scale"}

    def operands(one: Instruction) -> Iterable[int]:
        if one[0] in (op.PHI, op.COPY) or _is_element_by_element(function, one):
            return op.reads(one)
        return [given for _, given in argument_registers(function, one)] if one in scales else ()

    made = behind(function, [*_numbers(waits), *_losses(hot, function)], operands)
    return frozenset(one for one in made if one in scales or _is_element_by_element(function, one))


def _is_element_by_element(function: Function, one: Instruction) -> bool:
    """Whether an instruction gives a tensor of as many elements as its operands have."""
    if one[0] in _OPERATORS:
        return function.text(one[3]) not in ("@", "@=")
    return function.invokes(one, "elementwise")


def _numbers(waits: Iterable[Wait]) -> Iterator[int]:
    """Values that are read as one number."""
    for wait in waits:
        if (wait.what == CAST and wait.name in _OF_ONE) or (wait.what == READ and wait.name.endswith("item")):
            yield wait.value


def _losses(hot: HotRegions, function: Function) -> Iterator[int]:
    """Values that a backward pass starts from without a gradient: nothing but one number has one then."""
    for one in hot.rounds.of(function):
        call = one.instruction
        if one.row.does == "backward" and call[0] == op.INVOKE and not any(kind is None for kind, _ in argument_registers(function, call)):
            yield call[3]
