"""What the condition of a branch asks: whether a value is a number, whether there is data, whether a module trains."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind, last_name, unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY

Key = tuple[object, ...]
EQUAL = {"==": True, "is": True, "!=": False, "is not": False}
"""Which way of a comparison says that both sides are one."""
_DEEPEST = 8
_ASKED_AGAIN = frozenset(
    {op.ATTR, op.ITEM, op.UNARY, op.BINARY, op.COMPARE, op.CALL, op.INVOKE, op.NAME, op.LOAD, op.CONST}
    | {op.ADDRESS, op.ADDRESS_NAME, op.ADDRESS_ATTR, op.ADDRESS_ITEM}
)


def asked_by(function: Function, branch: Instruction) -> Key:
    """What a branch asks, without ``not`` around it."""
    return alike(function, unnegated(function, branch[2])[0])


def conditions(function: Function, block: int) -> Iterator[tuple[int, bool]]:
    """The conditions that hold in a block, and whether they hold as true."""
    graph = function.control
    while block != NOBODY and block != graph.dominators[block]:
        above = graph.dominators[block]
        if above == NOBODY:
            return
        end = function.code.blocks[above][-1]
        if end[0] == op.BRANCH and (way := _way_to(function, above, block)) is not None:
            condition, turned = unnegated(function, end[2])
            yield condition, (way == end[3]) != turned
        block = above


def _way_to(function: Function, above: int, block: int) -> int | None:
    """The one way of a branch from which paths lead to a block that the branch dominates at once; None where both lead there."""
    graph, ways = function.control, function.code.blocks[above][-1][3:5]
    if block not in ways or ways[0] == ways[1]:
        return None  # if one way alone led there, that would dominate it
    return block if all(before == above or graph.dominates(block, before) for before in graph.predecessors[block]) else None


def says_odd(function: Function, register: int) -> bool | None:
    """Whether a condition that holds says that a value is no (finite) number; None if it does not ask that."""
    turned = False
    for _ in range(_DEEPEST):
        one = _definition(function, register)
        if one is None:
            return None
        if one[0] == op.UNARY and function.text(one[3]) in ("not", "~", "!"):
            register, turned = one[4], not turned
        elif one[0] == op.COMPARE and one[4] == one[5] and function.text(one[3]) in ("==", "!="):
            return (function.text(one[3]) == "!=") != turned
        elif one[0] in (op.CALL, op.INVOKE):
            said = _call_says_odd(function, one)
            if said is not None:
                return said != turned
            if last_name(function, one) not in function.known("same-question"):
                return None
            register = next(iter(asked_of(function, one)), op.NONE)
        else:
            return None
    return None


def _call_says_odd(function: Function, one: Instruction) -> bool | None:
    """Whether a call that gives true says so: ``isnan(x)``, ``x.ne(x)``; None if it does not ask that."""
    name, asked = last_name(function, one), asked_of(function, one)
    if name in function.known("odd-if-true", "odd-if-false"):
        return name in function.known("odd-if-true")
    is_of_one = name in function.known("unequal", "equal") and len(asked) == 2 and asked[0] == asked[1]
    return name in function.known("unequal") if is_of_one else None


def asked_of(function: Function, one: Instruction) -> list[int]:
    """The values of which a call asks something: the receiver, unless that is a module, and what it is given."""
    if one[0] == op.INVOKE:
        return [*([one[3]] if _is_value(function, one[3]) else []), *one[6:]]
    return list(one[5:])


def is_set_aside(function: Function, one: Instruction, holds: bool) -> bool:
    """Whether a condition that comes out so means no training at full speed: a module evaluates, a graph is exported, a log is loud."""
    if one[0] == op.ATTR:
        return function.text(one[4]) == "training" and not holds
    if one[0] not in (op.CALL, op.INVOKE):
        return False
    name = last_name(function, one)
    return name in (function.known("exporting", "loud") if holds else function.known("asks-gradients"))


def compares(function: Function, register: int) -> tuple[str, int, object] | None:
    """The operator, the left side and the constant on the right of a comparison."""
    one = _definition(function, register)
    if one is None or one[0] != op.COMPARE:
        return None
    right = _definition(function, one[5])
    if right is None or right[0] != op.CONST:
        return None
    return function.text(one[3]), one[4], function.unit.ir.constants[right[3]]


def says_filled(function: Function, register: int, holds: bool) -> tuple[int, bool] | None:
    """What a comparison with 0 or 1 counts, if there is some of it where the condition comes out so, and whether it asks for some."""
    asked = compares(function, register)
    if asked is None or asked[2] not in (0, 1) or isinstance(asked[2], bool):
        return None
    operator, counted, number = asked
    is_empty = operator in ("==", "<", "<=") and (operator, number) not in (("==", 1), ("<", 0), ("<=", 1))
    is_filled = operator in ("!=", ">", ">=") and (operator, number) not in (("!=", 1), (">=", 0), (">", 1))
    return (counted, is_filled) if (is_filled if holds else is_empty) else None


def counted_in(function: Function, register: int) -> int | None:
    """``x`` of ``len(x)``."""
    one = _definition(function, register)
    return one[5] if one is not None and one[0] == op.CALL and len(one) == 6 and function.dotted(one[3]) == "len" else None


def is_new(function: Function, register: int) -> bool:
    """Whether a register holds a list, set or dict that was empty when it was made."""
    one = _definition(function, register)
    return one is not None and ((one[0] == op.BUILD and len(one) == 4) or (one[0] == op.DICT and len(one) == 3))


def holds_gradients(function: Function, register: int) -> bool:
    """Whether gradients are put into a list."""
    added = [use for use in function.uses[register] if use[0] == op.INVOKE and use[3] == register and function.text(use[4]) == "append"]
    for use in added:
        for part in parts_of(function, list(use[6:])):
            if part[0] == op.ATTR and function.text(part[4]) == "grad":
                return True
    return False


def parts_of(function: Function, registers: list[int]) -> Iterator[Instruction]:
    """The instructions from which registers are computed, through variables of one value."""
    return behind(function, registers, lambda one: op.reads(one) if one[0] != op.PHI else ())


def alike(function: Function, register: int, depth: int = _DEEPEST) -> Key:
    """A key that expressions share which say the same of the same values."""
    known = function.said.get((register, depth))
    if known is None:
        known = function.said[register, depth] = _alike(function, register, depth)
    return known


def register_of(function: Function, key: Key) -> int | None:
    """A register of which a key says something: itself, or what reads the variable that functions share."""
    if len(key) == 1:
        return key[0] if isinstance(key[0], int) and 0 <= key[0] < len(function.definitions) else None
    loads = function.by_opcode[op.LOAD] if key[0] == op.LOAD else ()
    return next((one[2] for one in loads if str(function.unit.ir.constants[one[3]]) == key[1]), None)


def _alike(function: Function, register: int, depth: int) -> Key:
    one = _definition(function, register)
    if one is None or depth == 0 or one[0] not in _ASKED_AGAIN:
        return (register,)
    first, reads = 3, op.reads(one)
    operands = [function.unit.ir.constants[one[place]] for place in _constants(one) if one[place] != op.NONE]
    return (one[0], *map(str, operands), *(alike(function, read, depth - 1) for read in reads), len(one) - first)


def _constants(one: Instruction) -> Iterator[int]:
    return (place for place, letter in enumerate(op.FIXED[one[0]], 2) if letter in "kK")


def _definition(function: Function, register: int) -> Instruction | None:
    return function.definitions[register] if register >= 0 else None


def _is_value(function: Function, register: int) -> bool:
    """Whether a method's receiver is a value, no module of a library."""
    one = _definition(function, register)
    while one is not None and one[0] == op.ATTR:
        one = _definition(function, one[3])
    return one is None or one[0] != op.NAME
