"""What work touches of the memory that it is given: elements by number, members, what arguments tell a kernel, so many bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import FunctionObject
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.parts import Sum, sum_of
from streamlint.support.memo import memoized
from streamlint.transfer.modelled import operands_of
from streamlint.transfer.numba_kernels import added, configured, kernel_in
from streamlint.transfer.transfer import Transfer
from streamlint.waits.questions import Key, alike

ELEMENTS, ADDS, PLACED, BYTES = "elements", "adds", "placed", "bytes"
"""Elements or members that have these names; all, by atomic operations of one kind; where arguments tell; so many from the beginning."""
_FIRST = 6
"""Where the configuration of a launch begins among the operands of its instruction."""
_SHAPED = {op.BINARY: slice(4, 6), op.CAST: slice(4, 5), op.COPY: slice(3, 4)}


class Region(NamedTuple):
    """A part of memory. ``terms`` are names, or expressions of a function with their variables; ``begins_later``: not at zero;
    ``extent``: how much it is, from the beginning."""

    kind: str
    terms: frozenset[object]
    names: frozenset[Key] = frozenset()
    function: Function | None = None
    begins_later: bool = False
    extent: Sum | None = None


class Regions:
    """The regions of work."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer

    @memoized
    def of(self, function: Function, one: Instruction) -> dict[int, Region]:
        """By register: what an instruction touches of it, where less than all."""
        return dict(self._find(function, one))

    def _find(self, function: Function, one: Instruction) -> Iterator[tuple[int, Region]]:
        if one[0] == op.LAUNCH:
            yield from self._of_kernel(function, one[3], one[_FIRST + one[5] :])
        elif one[0] == op.SET_ITEM and not function.is_cpp:
            yield one[2], Region(PLACED, frozenset({alike(function, one[3])}), frozenset(_names(function, one[3])), function)
        elif one[0] in (op.CALL, op.INVOKE) and function.is_cpp:
            yield from self._of_copy(function, one)
        elif (found := configured(function, one)) is not None:
            yield from self._of_decorated(function, one, found[0])

    def _of_copy(self, function: Function, one: Instruction) -> Iterator[tuple[int, Region]]:
        """C++: the bytes that a copy or a fill touches."""
        for call in self.transfer.modelled(function, one):
            size = call.one("bytes") if call.row.effect in ("copy", "memset") else None
            if size is not None and size >= 0:
                names, extent = frozenset(_names(function, size)), sum_of(function, size)
                region = Region(BYTES, frozenset({alike(function, size)}), names, function, extent=extent)
                yield from ((register, region) for register in call.operands)

    def _of_decorated(self, function: Function, one: Instruction, called: int) -> Iterator[tuple[int, Region]]:
        """What a kernel in Python only adds to."""
        kernel = kernel_in(self.transfer.facts, self.transfer.libraries, function, called)
        kinds = added(kernel) if kernel is not None else {}
        for parameter, given in zip(kernel.code.parameters if kernel is not None else (), operands_of(function, one, False), strict=False):
            if parameter.name in kinds:
                yield given, Region(ADDS, frozenset({kinds[parameter.name]}))

    def _of_kernel(self, function: Function, kernel: int, given: tuple[int, ...]) -> Iterator[tuple[int, Region]]:
        code = next((v.function.code for v in self.transfer.values(function, kernel) if isinstance(v, FunctionObject)), None)
        if code is None:
            return
        numbers = {parameter.name: given[index] for index, parameter in enumerate(code.parameters) if index < len(given)}
        pointers = {p.name for p in code.parameters if p.type is not None and (p.type[2] or p.type[4] is not None)}
        for name, (kind, *terms) in code.parts.items():
            if name not in numbers:
                continue
            if kind != PLACED:
                yield numbers[name], Region(kind, frozenset(terms))
            elif movers := [numbers[each] for each in terms if each in numbers and each not in pointers]:
                yield numbers[name], _moved(function, movers)


def are_apart(first: Region | None, second: Region | None) -> bool:
    """Whether two regions of one memory share nothing, or only what atomic operations of one kind add to."""
    if first is None or second is None:
        return False
    if first.kind == second.kind == ADDS:
        return first.terms == second.terms
    if first.kind == second.kind == ELEMENTS:
        return first.terms.isdisjoint(second.terms)
    if first.function is None or first.function is not second.function:
        return False
    if first.kind == second.kind == PLACED:
        return not (first.terms <= second.terms or second.terms <= first.terms)
    if {first.kind, second.kind} == {PLACED, BYTES}:
        placed, size = (first, second) if first.kind == PLACED else (second, first)
        # So many bytes may end before a kernel that begins farther on: not with all that its arguments speak of, and more.
        return placed.begins_later and not placed.names < size.names
    return False


def _names(function: Function, register: int) -> Iterator[Key]:
    """The variables of an expression."""
    one = function.definitions[register] if register >= 0 else None
    if one is not None and one[0] in _SHAPED:
        for part in one[_SHAPED[one[0]]]:
            yield from _names(function, part)
    elif one is not None and one[0] not in (op.CONST, op.CALL):
        yield alike(function, register)


def _moved(function: Function, movers: list[int]) -> Region:
    """What a kernel touches that arguments move."""
    names = frozenset(one for each in movers for one in _names(function, each))
    constants = [function.constant(each) for each in movers]
    later = any(isinstance(each, int) and each > 0 for each in constants)
    return Region(PLACED, frozenset(alike(function, each) for each in movers), names, function, later)
