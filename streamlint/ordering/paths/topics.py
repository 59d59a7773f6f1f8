"""Comparisons of one value with several constants: what one says of another. ``x == 1`` says that ``x == 2`` does not hold."""

from __future__ import annotations

from streamlint.ir import opcodes as op
from streamlint.waits.questions import EQUAL, Key

_TRUTHS = frozenset({"True", "False"})


def topic(key: Key) -> Key:
    """What a condition asks about: a value that is compared with a constant, or all of the condition."""
    return (op.COMPARE, "topic", key[2]) if _constant(key) else key


def implied(known: Key, holds: bool, asked: Key) -> bool | None:
    """The truth of a condition, where another one that holds, or does not, tells it."""
    if known == asked:
        return holds
    first, second = _constant(known), _constant(asked)
    if not first or not second or known[2] != asked[2]:
        return None
    if first == second:
        return holds == (EQUAL[str(known[1])] == EQUAL[str(asked[1])])
    is_equal = holds == EQUAL[str(known[1])]
    return not EQUAL[str(asked[1])] if is_equal and _is_number(first) == _is_number(second) else None


def _is_number(constant: str) -> bool:
    return constant.lstrip("-").isdecimal()


def _constant(key: Key) -> str:
    """The constant with which a condition compares a value for equality."""
    if len(key) < 4 or key[0] != op.COMPARE or key[1] not in EQUAL:
        return ""
    constant = key[3]
    is_one = isinstance(constant, tuple) and len(constant) == 3 and constant[0] == op.CONST and str(constant[1]) not in _TRUTHS
    return str(constant[1]) if is_one and isinstance(constant, tuple) else ""
