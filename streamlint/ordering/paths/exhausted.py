"""Loops that have run to their end: what each round has left under its own index is then found under all of them."""

from __future__ import annotations

from streamlint.facts.code.counters import count_of
from streamlint.facts.code.functions import Function
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
    count = count_of(function, one)
    if count is not None:
        return count[:2] == (0, 1) and (one[0] != op.PHI or function.homes[one][0] == loop.header)
    while one is not None and one[0] == op.UNPACK and one[6] == op.NONE:
        one = function.definitions[one[3]]
    return one is not None and one[0] == op.NEXT
