"""What a call decides the truth of: parameters, by a constant, by what the caller was told, or by leaving it to the default; attributes of
the receiver that were set before, as long as its own methods call one another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from streamlint.facts.autograd import offset_of
from streamlint.facts.functions import Function
from streamlint.facts.instructions import arguments_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

Flags = Mapping[int | str, bool]
"""Whether parameters, by number, and attributes of the receiver, by name, are true."""


def decided(caller: Function, known: Flags, call: Instruction, callee: Function, wanted: Iterable[int]) -> dict[int | str, bool]:
    """What is true in a call, and what is false. ``known`` are the flags of the caller, ``wanted`` the parameters that are asked for."""
    if call[0] not in (op.CALL, op.INVOKE):
        return {}
    found: dict[int | str, bool] = {}
    if call[0] == op.INVOKE and callee.has_receiver and is_own(caller, call[3]):
        found.update({name: truth for name, truth in known.items() if isinstance(name, str)})
    offset = offset_of(caller, call, callee)
    if offset is None:
        return found
    given = list(arguments_of(caller, call))
    spreads = any(kind in (1, 2) for _, kind in given)
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


def is_own(function: Function, register: int) -> bool:
    """Whether a register holds the receiver of a method: ``self``, or ``super()``."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.CALL and function.dotted(one[3]) == "super":
        return True
    return function.owner is not None and function.has_receiver and function.is_parameter(register)


def own_flag(function: Function, one: Instruction) -> str | None:
    """The name of the receiver's attribute that an instruction reads."""
    return function.text(one[4]) if one[0] == op.ATTR and is_own(function, one[3]) else None


def _truth(function: Function, known: Flags, register: int) -> bool | None:
    one = function.definitions[register]
    if one is not None and one[0] == op.PARAM:
        return known.get(one[3])
    return bool(function.unit.ir.constants[one[3]]) if one is not None and one[0] == op.CONST else None


def _of_default(function: Function, index: int) -> bool | None:
    register = function.default_register(index)
    return _truth(function.parent, {}, register) if register is not None and function.parent is not None else None
