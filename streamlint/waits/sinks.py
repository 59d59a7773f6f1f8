"""What functions and methods of libraries make of a value that they are given, by their names: words of APIs, none that a user chose."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, uncast
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op

TEXT = frozenset({"str", "repr", "format", "print"})
ASKS_KIND = frozenset({"len", "isinstance", "issubclass", "type", "hasattr", "callable", "id"})
"""Builtins whose answer does not hang on the number."""
EXTREMES = frozenset({"max", "min"})
SAME = frozenset({"float", "int", "round", "abs"})
_DECIDES = frozenset({"range", "bool", "any", "all"})
_ROUNDS_OFF = frozenset({"int", "round"})
_COPIES = frozenset({"list", "tuple", "sorted", "reversed", "set", "frozenset", "iter"})


def called_name(function: Function, one: Instruction) -> str:
    """The last part of the name of what is called."""
    return function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3]).rpartition(".")[2].rpartition("::")[2]


def is_said(function: Function, name: str) -> bool:
    """Whether a call prints or logs what it is given."""
    return name == "print" or name in function.known("logs")


def is_kept(function: Function, name: str) -> bool:
    """Whether a call keeps or shows a number, where a module's forward may give it."""
    return is_said(function, name) or name in function.known("puts", "extends", "puts-if-absent")


def decides(function: Function, name: str) -> bool:
    """Whether a call asks something of a number."""
    return name in _DECIDES or name in function.known("odd-if-true", "odd-if-false")


def rounds_off(function: Function, name: str) -> bool:
    """Whether a call gives a whole number of a fraction."""
    return name in _ROUNDS_OFF or name in function.known("rounds-off")


def copies(function: Function, name: str) -> bool:
    """Whether a call gives a container of the same values."""
    return name in _COPIES or name in function.known("copies-container")


def makes_dictionary(function: Function, name: str) -> bool:
    """Whether a call makes a dictionary of its keywords."""
    return name == "dict" or name in function.known("keyed")


def is_float_type(function: Function, register: int) -> bool:
    """``torch.float``."""
    return function.dotted(register).rpartition(".")[2] in function.known("float-type")


def may_be_absent(function: Function, register: int) -> bool:
    """Whether a register holds what is taken by a key that need not be there: ``batch.pop("name", None)``. A test of it asks for that."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.INVOKE or function.text(one[4]) not in ("get", "pop"):
        return False
    given = one[6:]
    if len(given) == 1:
        return function.text(one[4]) == "get" and isinstance(function.constant(given[0]), str)
    default = function.definitions[given[1]] if len(given) == 2 else None
    return default is not None and default[0] == op.CONST and function.unit.ir.constants[default[3]] is None


def is_text_compared(function: Function, register: int) -> bool:
    """``name != "total"``: what is compared with a text is none of the numbers of a tensor."""
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.COMPARE and any(isinstance(function.constant(part), str) for part in one[4:6])


def is_group_entry(function: Function, register: int) -> bool:
    """Whether a register holds an option of an optimizer's groups: ``group["lr"]`` in a loop over its ``param_groups``."""
    register = uncast(function, register)
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] not in (op.ITEM, op.INVOKE):
        return False
    key = one[4] if one[0] == op.ITEM else one[6] if len(one) > 6 and function.text(one[4]) == "get" else -1
    return key >= 0 and function.constant(key) in function.known("group-entry") and _is_of_groups(function, one[3])


def _is_of_groups(function: Function, register: int) -> bool:
    def within(one: Instruction) -> Iterable[int]:
        if one[0] in (op.ITEM, op.NEXT, op.ITER, op.UNPACK, op.COPY):
            return one[3:4]
        return one[3:] if one[0] == op.PHI else one[5:] if one[0] == op.CALL else ()

    for one in behind(function, [register], within):
        if one[0] == op.ATTR and function.text(one[4]) == "param_groups":
            return True
        if one[0] == op.CALL and function.dotted(one[3]) == "getattr" and len(one) > 6 and function.constant(one[6]) == "param_groups":
            return True
    return False
