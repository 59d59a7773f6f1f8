"""Parts of memory: how far behind the beginning of a copied range an access begins, as a sum of products of what is not known.

Bytes and elements are not distinguished: ``sizeof`` counts as one. The whole meets each part; of two parts that cannot be compared nothing
is said.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import COPIES
from streamlint.facts.code.objects import Memory
from streamlint.facts.graph.facts import Facts
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.waits.operands import operand_of
from streamlint.waits.questions import Key, alike

Monomial = tuple[object, ...]
Sum = tuple[tuple[Monomial, int], ...]
"""Products of unknown values, with what they are multiplied by; () is zero."""
_ONE: Sum = (((), 1),)
_DEEPEST = 8
_INDEX = {op.ITEM: 4, op.SET_ITEM: 3}
"""Where the index stands of what takes or sets a part."""
_SIGNS = {"+": 1, "-": -1}


def plus(first: Sum, second: Sum, factor: int = 1) -> Sum:
    """The sum of two, the second multiplied by a number."""
    found = dict(first)
    for monomial, count in second:
        found[monomial] = found.get(monomial, 0) + factor * count
    return tuple(sorted(((each, count) for each, count in found.items() if count), key=repr))


def _times(first: Sum, second: Sum) -> Sum:
    found: Sum = ()
    for one, count in first:
        for other, factor in second:
            found = plus(found, ((tuple(sorted((*one, *other), key=repr)), count * factor),))
    return found


def sum_of(function: Function, register: int, depth: int = _DEEPEST) -> Sum:
    """The value of a register as a sum."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and depth:
        if one[0] == op.CONST:
            value = function.unit.ir.constants[one[3]]
            return (((), value),) if isinstance(value, int) and value else ()
        if (before := _before(function, one)) is not None:
            return sum_of(function, before, depth - 1)
        if one[0] == op.BINARY and function.text(one[3]) in ("+", "-", "*"):
            first, second = (sum_of(function, each, depth - 1) for each in one[4:6])
            sign = _SIGNS.get(function.text(one[3]))
            return plus(first, second, sign) if sign is not None else _times(first, second)
        if one[0] == op.CALL and function.dotted(one[3]) == "sizeof":
            return _ONE
    return (((alike(function, register),), 1),) if register >= 0 else ()


def _before(function: Function, one: Instruction) -> int | None:
    """The register whose value an instruction gives on."""
    return _unchanged(function, one) if one[0] == op.PHI else one[COPIES[one[0]]] if one[0] in COPIES else None


def _unchanged(function: Function, phi: Instruction) -> int | None:
    """The register from before a loop that no round changes: calls that may take it by reference aside."""
    found, waiting, seen = set[int](), list(phi[3:]), {phi[2]}
    while waiting and len(found) < 2:
        register = waiting.pop()
        one = function.definitions[register]
        if register in seen:
            continue
        seen.add(register)
        if one is not None and one[0] in (op.PHI, op.REBIND):
            waiting += one[3:] if one[0] == op.PHI else one[5:6]
        else:
            found.add(register)
    return found.pop() if len(found) == 1 else None


def fits(extent: Sum | None, distance: Sum) -> bool:
    """Whether so much ends before a distance, whatever the unknown values are: none is negative."""
    return bool(extent) and all(count >= 0 for _, count in plus(distance, extent or (), -1))


def as_entered(frame: Frame, held: Sum) -> Sum:
    """A sum of a function as the first one on a path has it: parameters are what the calls give; loops are taken to begin at 0."""
    while frame.caller is not None and frame.call is not None:
        found: Sum = ()
        for monomial, count in held:
            product: Sum = (((), count),) if count < 0 or not _is_of_loop(frame.function, monomial) else ()
            for atom in monomial:
                product = _times(product, _as_given(frame, frame.caller, frame.call, atom))
            found = plus(found, product)
        held, frame = found, frame.caller
    return held


def _as_given(frame: Frame, caller: Frame, call: Instruction, atom: object) -> Sum:
    """An unknown value of a function as its caller has it, if it is a parameter; else one that no other function has."""
    one = frame.function.definitions[register] if (register := _register_of(frame.function, atom)) is not None else None
    is_given = one is not None and one[0] == op.PARAM and call[0] in (op.CALL, op.INVOKE)
    given = operand_of(caller.function, call, frame.function, one[3]) if one is not None and is_given else None
    return sum_of(caller.function, given) if given is not None and given >= 0 else ((((frame.function, atom),), 1),)


def _first(function: Function, index: int) -> int:
    """An index; of several the first."""
    one = function.definitions[index] if index >= 0 else None
    return one[4] if one is not None and one[0] == op.BUILD and len(one) > 4 else index


def begins(function: Function, one: Instruction) -> Sum:
    """How far behind its operand a view, or an access to an element, begins."""
    if one[0] in (op.BINARY, op.INPLACE) and function.is_cpp:
        return () if function.text(one[3]) not in ("+", "+=") else sum_of(function, one[5])
    if one[0] not in (op.ITEM, op.ADDRESS_ITEM, op.SET_ITEM):
        return ()
    index = _first(function, one[_INDEX.get(one[0], 4)])
    definition = function.definitions[index] if index >= 0 else None
    if definition is not None and definition[0] == op.SLICE:
        return sum_of(function, definition[3]) if definition[3] >= 0 else ()
    return sum_of(function, index)


def length(function: Function, one: Instruction) -> Sum | None:
    """How long a part of memory is that an instruction takes or sets; None for all of it."""
    if one[0] not in _INDEX:
        return None
    taken = _first(function, one[_INDEX[one[0]]])
    index = function.definitions[taken] if taken >= 0 else None
    if index is None or index[0] != op.SLICE:
        return _ONE
    if index[4] < 0:
        return None if index[3] < 0 else ()
    return plus(sum_of(function, index[4]), sum_of(function, index[3]) if index[3] >= 0 else (), -1)


def lies_in(function: Function, distance: Sum, size: Sum | None, extent: Sum | None = (), is_whole: bool = False) -> bool:
    """Whether an access at a distance from the beginning of a range meets it; loops are taken to begin at 0.

    ``size`` and ``extent``: how long the range and the access are, None for all of the memory. Two that are equally long, and one of which
    is moved by a number, meet. What begins before the end for sure lies in a range (``h[n - 1]``), and of one of unknown length that begins
    where the buffer does (``is_whole``) so do elements with a number.
    """
    if size is None:
        return True
    distance = tuple(each for each in distance if each[1] < 0 or not _is_of_loop(function, each[0]))
    if not distance:
        return True
    if len(distance) > 1 or (function.is_cpp and distance[0][0] == ()):
        return _begins_within(distance, size, is_whole)
    ((factors, count),) = distance
    reached = size if count > 0 else extent
    if reached is None:
        return True
    if len(reached) != 1:
        return False
    if reached[0][0] == factors:
        return abs(count) < reached[0][1]
    return factors == () and size == extent and reached[0][1] > 0


class Part(NamedTuple):
    """A part of memory: what it is a part of, how far behind the beginning of that it begins, and how long it is; None for all of it."""

    whole: Key
    begin: Sum
    size: Sum | None


def parts_in(facts: Facts, function: Function, registers: Iterable[int]) -> Iterator[Part]:
    """What some registers, which share memory, hold parts of: the elements, slices and moved pointers that they are."""
    made = (function.definitions[register] for register in registers if register >= 0)
    found = (_part_at(facts, function, one) for one in made if one is not None)
    return (part for part in found if part is not None)


def _part_at(facts: Facts, function: Function, one: Instruction) -> Part | None:
    """The part of its operand that an instruction takes; None where it takes none, or an element of a container."""
    if function.is_cpp and one[0] == op.BINARY and function.text(one[3]) == "+":
        return Part(alike(function, one[4]), begins(function, one), None)
    if one[0] not in (op.ITEM, op.ADDRESS_ITEM) or not _counts(function, one[4]):
        return None
    values = facts.values(function, one[3]).values
    if not function.is_cpp and not all(isinstance(value, Memory) for value in values):
        return None
    return Part(alike(function, one[3]), begins(function, one), length(function, one) if one[0] == op.ITEM else None)


def _counts(function: Function, index: int) -> bool:
    """Whether an index, or the first of several, is a number or goes from one number to another, one by one."""
    index = _first(function, index)
    one = function.definitions[index] if index >= 0 else None
    if one is None or one[0] == op.SLICE:
        return one is not None and one[5] < 0 and all(each < 0 or _counts(function, each) for each in one[3:5])
    if one[0] == op.CONST:
        value = function.unit.ir.constants[one[3]]
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return one[0] != op.UNARY


def are_beside(function: Function, first: Part, second: Part) -> bool:
    """Whether two parts of the same memory share nothing, whatever the unknown values are: none is negative, and none changes from round to
    round."""
    ahead = plus(second.begin, first.begin, -1)
    terms = (each for held in (first.begin, second.begin, first.size or (), second.size or ()) for each in held)
    if first.whole != second.whole or not all(_is_fixed(function, monomial) for monomial, _ in terms):
        return False
    return fits(first.size, ahead) or fits(second.size, plus((), ahead, -1))


def _is_fixed(function: Function, monomial: Monomial) -> bool:
    """Whether a product has nothing in it that a loop computes."""
    for atom in monomial:
        register = _register_of(function, atom)
        one = function.definitions[register] if register is not None else None
        if one is None or one[0] == op.UNARY or function.is_repeated(one):
            return False
    return True


def _begins_within(distance: Sum, size: Sum, is_whole: bool) -> bool:
    """The same of a sum, or in C++ of a number of elements, where the size may be one of bytes."""
    if len(distance) > 1:
        return _grows(distance) and fits(plus(distance, _ONE), size)
    return is_whole and distance[0][1] > 0 and _grows(size)


def _grows(held: Sum) -> bool:
    """Whether a sum grows with a value that is not known."""
    return any(factors != () and count > 0 for factors, count in held)


def _is_of_loop(function: Function, monomial: Monomial) -> bool:
    """Whether a product has the variable of a loop in it."""
    for atom in monomial:
        register = _register_of(function, atom)
        if register is not None:
            definition = function.definitions[register]
            if definition is not None and definition[0] in (op.PHI, op.NEXT, op.UNPACK):
                return True
    return False


def _register_of(function: Function, atom: object) -> int | None:
    """The register that an unknown value is, if it is one alone."""
    register = atom[0] if isinstance(atom, tuple) and len(atom) == 1 else None
    return register if isinstance(register, int) and 0 <= register < len(function.definitions) else None
