"""What a call decides: the truth of parameters, the texts that they are and whether they are None, by what it gives, by what the caller was
told, or by leaving it to the default; attributes of the receiver that were set before, as long as its own methods call one another."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import arguments_of
from streamlint.facts.files.autograd import given_for, offset_of
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

NOT_KNOWN: Final = object()
"""Stands for what a call does not decide."""


class IsNone(NamedTuple):
    """Whether a parameter is None."""

    parameter: int


class Holds(NamedTuple):
    """Whether a parameter may be a function."""

    parameter: int
    function: Function


Flag = int | str | IsNone | Holds
Flags = Mapping[Flag, bool | str]
"""Whether parameters, by number, and attributes of the receiver, by name, are true, and whether parameters are None; the text that a
parameter is; or a function that it is not, as the caller took another one by its name."""


class Wanted(NamedTuple):
    """The parameters of which the truth is asked for, those of which the text is, and those that may be None."""

    truths: frozenset[int]
    texts: frozenset[int] = frozenset()
    optional: frozenset[int] = frozenset()


def decided(
    caller: Function, known: Flags, call: Instruction, callee: Function, wanted: Wanted, is_there: Callable[[Function, int], bool]
) -> dict[Flag, bool | str]:
    """What is true in a call, and what is false. ``known`` are the flags of the caller; ``is_there`` says whether a register of it is
    shown to hold something."""
    if call[0] not in (op.CALL, op.INVOKE):
        return {}
    found: dict[Flag, bool | str] = {}
    if call[0] == op.INVOKE and callee.has_receiver and is_own(caller, call[3]):
        found.update({name: truth for name, truth in known.items() if isinstance(name, str)})
    if offset_of(caller, call, callee) is None:
        return found
    spreads = any(kind in (1, 2) for _, kind in arguments_of(caller, call))
    for index in {*wanted.truths, *wanted.texts, *wanted.optional}:
        register = given_for(caller, call, callee, index)
        if register is None and spreads:
            continue
        value = _constant(caller, known, register) if register is not None else _of_default(callee, index)
        if (given := _given(caller, known, register, value, index, wanted)) is not None:
            found[index] = given
        if index in wanted.optional and (is_none := _is_none(caller, known, register, value, is_there)) is not None:
            found[IsNone(index)] = is_none
    return found


def _given(caller: Function, known: Flags, register: int | None, value: object, index: int, wanted: Wanted) -> bool | str | None:
    """The text or the truth of what a call gives for a parameter, as it is wanted; None where that is open."""
    text = text_of(caller, known, register) if register is not None and index in wanted.texts else value
    if index in wanted.texts and isinstance(text, str):
        return text
    return bool(value) if value is not NOT_KNOWN and index in wanted.truths else None


def _is_none(caller: Function, known: Flags, register: int | None, value: object, is_there: Callable[[Function, int], bool]) -> bool | None:
    """Whether a call gives None for a parameter, or leaves it to a default that is None; None where that is open."""
    one = caller.definitions[register] if register is not None and register >= 0 else None
    if one is not None and one[0] == op.PARAM and IsNone(one[3]) in known:
        return bool(known[IsNone(one[3])])
    if value is not NOT_KNOWN and (one is None or one[0] == op.CONST):
        return value is None
    is_optional = one is not None and one[0] == op.PARAM and caller.default_register(one[3]) is not None
    return False if one is not None and not is_optional and is_there(caller, one[2]) else None


def is_own(function: Function, register: int) -> bool:
    """Whether a register holds the receiver of a method: ``self``, or ``super()``."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.CALL and function.dotted(one[3]) == "super":
        return True
    return function.owner is not None and function.has_receiver and function.is_parameter(register)


def own_flag(function: Function, one: Instruction) -> str | None:
    """The name of the receiver's attribute that an instruction reads."""
    return function.text(one[4]) if one[0] == op.ATTR and is_own(function, one[3]) else None


def text_of(function: Function, known: Flags, register: int) -> str | None:
    """The text that a register holds, by what a call has told: a constant, a parameter, or what is put together of these."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.BINARY and function.text(one[3]) == "+":
        parts = [text_of(function, known, part) for part in one[4:6]]
        return "".join(part for part in parts if part is not None) if None not in parts else None
    if one is not None and one[0] == op.FORMAT and (texts := function.unit.ir.constants[one[3]]):
        held = [text_of(function, known, part) for part in op.reads(one)]
        return "".join(f"{text}{part}" for text, part in zip(texts, [*held, ""], strict=True)) if None not in held else None
    value = _constant(function, known, register)
    return value if isinstance(value, str) else None


def comparison(function: Function, one: Instruction) -> tuple[int, frozenset[str]] | None:
    """The parameter that is compared with texts, and these: ``kind == "train"``, ``kind in ("train", "check")``."""
    if one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!=", "in", "not in"):
        return None
    left, right = function.definitions[one[4]], function.definitions[one[5]]
    if left is None or right is None or left[0] != op.PARAM:
        return None
    is_many = function.text(one[3]).endswith("in")
    if is_many != (right[0] == op.BUILD):
        return None
    held = [function.constant(register) for register in (right[4:] if is_many else one[5:6])]
    return (left[3], frozenset(map(str, held))) if held and all(isinstance(each, str) for each in held) else None


def asked_none(function: Function, one: Instruction) -> int | None:
    """The parameter that is compared with None."""
    if one[0] != op.COMPARE or function.text(one[3]) not in ("is", "is not", "==", "!="):
        return None
    left, right = function.definitions[one[4]], function.definitions[one[5]]
    is_none = right is not None and right[0] == op.CONST and function.unit.ir.constants[right[3]] is None
    return left[3] if is_none and left is not None and left[0] == op.PARAM else None


def _constant(function: Function, known: Flags, register: int) -> object:
    """The constant that a register holds, or the flag of the parameter that it is."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] == op.PARAM:
        return known.get(one[3], NOT_KNOWN)
    return function.unit.ir.constants[one[3]] if one is not None and one[0] == op.CONST else NOT_KNOWN


def _of_default(callee: Function, index: int) -> object:
    register = callee.default_register(index)
    return _constant(callee.parent, {}, register) if register is not None and callee.parent is not None else NOT_KNOWN
