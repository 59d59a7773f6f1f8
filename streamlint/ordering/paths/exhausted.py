"""Loops that have run to their end: what each round has left under its own index is then found under all of them."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import uncast
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import Loop
from streamlint.ordering.places.flow import Tracked
from streamlint.ordering.places.places import ANY, Element, Place


class Exhausted:
    """The loops that paths leave once they have gone over all that there is."""

    def __init__(self) -> None:
        self._left: dict[tuple[Function, int], list[Loop]] = {}

    def behind(self, function: Function, left: int, entered: int, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """What is tracked where a path goes from one block to another."""
        loops = self._left.get((function, left))
        if loops is None:
            loops = self._left[function, left] = [each for each in function.control.loops if _ends_at(each, left)]
        for loop in loops:
            if entered not in loop.body and any(map(_is_indexed, tracked)):
                tracked = frozenset(_under_all(function, loop, held) for held in tracked)
        return tracked


def _ends_at(loop: Loop, block: int) -> bool:
    """Whether a loop that is left from a block has no more rounds to go: it is left at its head, or can be left nowhere else."""
    return block in loop.body and (block == loop.header or all(left == loop.header for left, _ in loop.exits))


def _is_indexed(held: Tracked) -> bool:
    return any(isinstance(key, Element) and isinstance(key.key, tuple) for key in held.place.path)


def _under_all(function: Function, loop: Loop, held: Tracked) -> Tracked:
    path = tuple(ANY if isinstance(key, Element) and _goes_over_all(function, loop, key.key) else key for key in held.place.path)
    return held if path == held.place.path else held._replace(place=Place(held.place.root, path))


def _goes_over_all(function: Function, loop: Loop, key: object) -> bool:
    """Whether an index is what a loop takes in each round, and begins with the first: of numbers that begin elsewhere some are left out."""
    register = key[0] if isinstance(key, tuple) and len(key) == 1 else None
    one = function.definitions[register] if isinstance(register, int) and 0 <= register < len(function.definitions) else None
    if one is None or function.homes[one][0] not in loop.body:
        return False
    while one is not None and one[0] == op.UNPACK and one[6] == op.NONE:
        one = function.definitions[one[3]]
    if one is not None and one[0] == op.PHI:
        return function.homes[one][0] == loop.header and _counts_from_zero(function, loop, one)
    return one is not None and one[0] == op.NEXT and not _leaves_some_out(function, one)


def _counts_from_zero(function: Function, loop: Loop, phi: Instruction) -> bool:
    before = function.phi_order[loop.header]
    begins = [value for value, block in zip(phi[3:], before, strict=False) if block not in loop.body]
    raised = [function.definitions[uncast(function, value)] for value in phi[3:] if value not in begins]
    return all(function.constant(uncast(function, value)) == 0 for value in begins) and all(
        one is not None and one[0] in (op.BINARY, op.INPLACE) and 1 in map(function.constant, one[4:6]) for one in raised
    )


def _leaves_some_out(function: Function, taken: Instruction) -> bool:
    """Whether a loop goes over numbers that do not begin at zero, or have steps."""
    iterator = function.definitions[taken[3]]
    source = function.definitions[iterator[3]] if iterator is not None and iterator[0] == op.ITER else None
    if source is None or source[0] != op.CALL or function.dotted(source[3]) != "range":
        return False
    return len(source) > 7 or (len(source) == 7 and function.constant(source[5]) != 0)
