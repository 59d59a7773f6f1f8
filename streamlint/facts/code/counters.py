"""Registers that count rounds: a loop's variable over numbers, or what is made larger by a constant in each round."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.code.instructions import behind_copies, uncast, unnegated
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop

_DEEPEST = 4


class Count(NamedTuple):
    """What the rounds of a loop count: the number of the first one, how much more that of the next one is, and the register that holds the
    number at which they end, or something of that length. None and NONE where that is not known."""

    start: object
    step: object
    end: int = op.NONE
    is_length: bool = False


def iterable_of(function: Function, one: Instruction | None) -> int:
    """The register of what a loop goes over, of which an instruction takes an element, or asks for one; NONE of other instructions."""
    iterator = function.definitions[one[3]] if one is not None and one[0] in (op.NEXT, op.MORE) else None
    return iterator[3] if iterator is not None and iterator[0] == op.ITER else op.NONE


def gone_over(function: Function, header: int) -> int:
    """The register of what the loop goes over that begins with a block; NONE of another loop."""
    heads = (iterable_of(function, one) for one in function.code.blocks[header] if one[0] == op.MORE)
    return next((register for register in heads if register >= 0), op.NONE)


def range_of(function: Function, register: int) -> tuple[int, ...]:
    """What ``range`` is given where a register holds its result."""
    return _given_to(function, register, "range")


def count_of(function: Function, one: Instruction) -> Count | None:
    """What an instruction counts: the elements of ``range``, the first parts of those of ``enumerate``, or what each round raises."""
    if one[0] == op.PHI:
        loop = function.loop_heads.get(function.blocks[one])
        begins, step = raised(function, loop, one) if loop is not None else ([], 0)
        return Count(function.constant(uncast(function, begins[0])) if len(begins) == 1 else None, step) if step else None
    if one[0] == op.NEXT and (given := range_of(function, iterable_of(function, one))):
        start = function.constant(given[0]) if len(given) > 1 else 0
        return Count(start, function.constant(given[2]) if len(given) > 2 else 1, given[:2][-1])
    if one[0] == op.UNPACK and one[4] == 0 and (given := _enumerated(function, one)):
        start = function.constant(given[1]) if len(given) > 1 else 0
        return Count(start, 1, given[0] if start == 0 else op.NONE, True)
    return None


def raised(function: Function, loop: Loop, phi: Instruction) -> tuple[list[int], int]:
    """What a variable holds before a loop, and by how much each of its rounds raises it; 0 where not all do so by the same."""
    begins, steps = list[int](), set[int]()
    for register, block in zip(phi[3:], function.phi_order[loop.header], strict=True):
        if block not in loop.body:
            begins.append(register)
            continue
        base, step = moved(function, register)
        steps.add(step if base == phi[2] else 0)
    return begins, steps.pop() if len(steps) == 1 else 0


def moved(function: Function, register: int) -> tuple[int, int]:
    """The register to which whole numbers are added, and their sum: ``i + 1``; 0 to what is no such sum."""
    total = 0
    for _ in range(_DEEPEST):
        register = behind_copies(function, register)
        one = function.definitions[register] if register >= 0 else None
        sign = function.text(one[3]).rstrip("=") if one is not None and one[0] in (op.BINARY, op.INPLACE) else ""
        sides = (one[4:6], one[5:3:-1]) if one is not None and sign == "+" else (one[4:6],) if one is not None and sign == "-" else ()
        found = next(((left, number) for left, right in sides if isinstance(number := function.constant(right), int)), None)
        if found is None:
            break
        register, total = found[0], total + (found[1] if sign == "+" else -found[1])
    return register, total


def is_counter(function: Function, register: int, depth: int = _DEEPEST, known: Callable[[Instruction], bool] | None = None) -> bool:
    """Whether a register holds the number of a loop's round, or that and a constant; what is ``known`` to count does so too."""
    register = _behind_variable(function, register)
    one = function.definitions[register] if register >= 0 else None
    if one is None or depth == 0:
        return False
    if known is not None and known(one):
        return True
    if one[0] in (op.NEXT, op.UNPACK):
        return is_number_of_round(function, one)
    if one[0] in (op.BINARY, op.INPLACE):
        return any(is_counter(function, left, depth - 1, known) for left in _moved(function, one))
    if one[0] == op.PHI and function.blocks[one] in function.loop_heads:
        return any(_is_raised(function, value, register) for value in one[3:])
    return one[0] == op.ATTR and _is_raised_attribute(function, one)


def _moved(function: Function, one: Instruction) -> list[int]:
    """What an instruction adds a whole number to, or takes one from, whichever stands first."""
    pairs = (one[4:6], one[5:3:-1]) if function.text(one[3]) in ("+", "-", "+=", "-=") else ()
    return [left for left, right in pairs if isinstance(function.constant(right), int)]


def counts_rounds(function: Function, condition: int) -> bool:
    """Whether a condition asks an iterator for one more element, or what counts the rounds whether that was the last one."""
    one = function.definitions[condition] if condition >= 0 else None
    if one is None or one[0] != op.COMPARE:
        return one is not None and one[0] == op.MORE
    sides = [side for side in one[4:6] if side >= 0 and (made := function.definitions[side]) is not None and made[0] == op.PHI]
    return any(is_counter(function, side) for side in sides)


def empties(function: Function, condition: int, loop: Loop) -> bool:
    """Whether a loop goes on while there is something in a container, out of which each round takes something."""
    taking = (use for use in function.uses.get(condition, ()) if function.invokes(use, "shrinks") and use[3] == condition)
    return any(function.blocks[use] in function.control.every_round(loop) for use in taking)


def is_number_of_round(function: Function, one: Instruction) -> bool:
    """Whether an instruction takes the number of a round: the element of ``range``, or the first part of that of ``enumerate``."""
    if one[0] == op.UNPACK:
        return one[4] == 0 and bool(_enumerated(function, one))
    return one[0] == op.NEXT and bool(range_of(function, iterable_of(function, one)))


def _enumerated(function: Function, one: Instruction) -> tuple[int, ...]:
    """What ``enumerate`` is given of whose elements an instruction takes a part."""
    return _given_to(function, iterable_of(function, function.definitions[one[3]]), "enumerate")


def _given_to(function: Function, register: int, name: str) -> tuple[int, ...]:
    one = function.definitions[register] if register >= 0 else None
    return one[5:] if one is not None and one[0] == op.CALL and function.dotted(one[3]) == name else ()


def _is_raised(function: Function, value: int, register: int, depth: int = _DEEPEST) -> bool:
    """Whether a value is a register and a constant."""
    one = function.definitions[value] if value >= 0 else None
    if one is None or depth == 0:
        return False
    if one[0] == op.PHI:
        return any(_is_raised(function, part, register, depth - 1) for part in one[3:] if part != value)
    if one[0] not in (op.BINARY, op.INPLACE) or function.text(one[3]).rstrip("=") != "+":
        return False
    sides = [before_calls(function, part) for part in one[4:6]]
    return register in sides and any(isinstance(function.constant(part), int) for part in sides)


def before_calls(function: Function, register: int) -> int:
    """C++: the register of a variable before it was passed to calls, which might be given a reference to it."""
    one = function.definitions[register] if register >= 0 else None
    while one is not None and one[0] == op.REBIND:
        register = one[5]
        one = function.definitions[register] if register >= 0 else None
    return register


def _is_raised_attribute(function: Function, one: Instruction) -> bool:
    """Whether a method of the class makes an attribute of its receiver larger by a constant, also where it is a tensor."""
    owner = function.method.owner if function.method is not None else None
    return owner is not None and function.is_parameter(one[3]) and is_raised_in(owner, function.text(one[4]))


def is_raised_in(owner: ClassInfo, name: str) -> bool:
    """Whether a method of a class makes an attribute larger by a constant."""
    for store in owner.own_stores.get(name, ()):
        value = store.function.definitions[store.value]
        if value is not None and value[0] == op.INPLACE and _is_number(store.function, value[5]):
            return True
        if value is not None and value[0] == op.BINARY and _raises(store.function, value, name):
            return True
    methods = (method for each in owner.methods.values() for method in each)
    return any(_adds_to(method, call, name) for method in methods for call in method.by_opcode[op.INVOKE])


def _raises(function: Function, sum_: Instruction, name: str) -> bool:
    """``self.steps = self.steps + 1``."""
    held = function.definitions[sum_[4]] if sum_[4] >= 0 else None
    is_own = held is not None and held[0] == op.ATTR and function.text(held[4]) == name
    return is_own and function.text(sum_[3]) == "+" and _is_number(function, sum_[5])


def _adds_to(method: Function, call: Instruction, name: str) -> bool:
    """``self.steps.add_(1)``."""
    if method.text(call[4]) != "add_" or len(call) != 7 or not _is_number(method, call[6]):
        return False
    made = method.definitions[call[3]]
    return made is not None and made[0] == op.ATTR and method.text(made[4]) == name and method.is_parameter(made[3])


def _is_number(function: Function, register: int) -> bool:
    one = function.definitions[register] if register >= 0 else None
    return one is not None and one[0] == op.CONST and isinstance(function.unit.ir.constants[one[3]], int | float)


def leaves_rounds(function: Function, header: int, after: int) -> bool:
    """Whether a step leads out of a loop over elements, at its head."""
    loop = function.loop_heads.get(header)
    end = function.code.blocks[header][-1]
    is_left = loop is not None and after not in loop.body and end[0] == op.BRANCH
    return is_left and counts_rounds(function, unnegated(function, end[2])[0])


def _behind_variable(function: Function, register: int) -> int:
    """The register that a captured variable was stored from, where it is stored once; else the register itself."""
    one = function.definitions[register] if register >= 0 else None
    if one is None or one[0] != op.LOAD:
        return register
    stored = [store[3] for store in function.by_opcode[op.STORE] if store[2] == one[3]]
    return stored[0] if len(stored) == 1 else register
