"""Which parameters a call decides the truth of: by a constant, by what the caller was told, or by leaving it to the default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamlint.facts.aliases import arguments_of
from streamlint.facts.autograd import offset_of
from streamlint.facts.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op


def decided(caller: Function, known: Mapping[int, bool], call: Instruction, callee: Function, wanted: Iterable[int]) -> dict[int, bool]:
    """By the number of a parameter: whether it is true in a call. ``known`` are those of the caller."""
    if call[0] not in (op.CALL, op.INVOKE):
        return {}
    offset = offset_of(caller, call, callee)
    if offset is None:
        return {}
    given = list(arguments_of(caller, call))
    spreads = any(kind in (1, 2) for _, kind in given)
    found: dict[int, bool] = {}
    for index in wanted:
        parameter = callee.code.parameters[index]
        register = next(
            (held for place, (held, kind) in enumerate(given) if kind == parameter.name or (kind is None and place + offset == index)), None
        )
        if register is None and spreads:
            continue
        truth = _truth(caller, known, register) if register is not None else _of_default(callee, index)
        if truth is not None:
            found[index] = truth
    return found


def _truth(function: Function, known: Mapping[int, bool], register: int) -> bool | None:
    one = function.definitions[register]
    if one is not None and one[0] == op.PARAM:
        return known.get(one[3])
    return bool(function.unit.ir.constants[one[3]]) if one is not None and one[0] == op.CONST else None


def _of_default(function: Function, index: int) -> bool | None:
    register = function.default_register(index)
    return _truth(function.parent, {}, register) if register is not None and function.parent is not None else None
