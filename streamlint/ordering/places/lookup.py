"""Which instructions of a function can name a place, by where the place begins: of a long function few are asked."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.places.places import Places, Root


class Lookup:
    """The instructions of one function, by the roots of the places that they read or define."""

    def __init__(self, function: Function, places: Places) -> None:
        self._code = list(function.code.instructions())
        self._by_root: dict[Root, list[int]] = defaultdict(list)
        for number, one in enumerate(self._code):
            for root in dict.fromkeys(roots_of(function, places, one)):
                self._by_root[root].append(number)

    def naming(self, roots: Iterable[Root], more: Callable[[], Iterable[Root]] = tuple) -> Iterator[Instruction]:
        """The instructions that can name one of some roots, in order. ``more`` gives those that came up on the way; they count from
        there on."""
        waiting: list[int] = []
        at = -1
        found: Iterable[Root] = roots
        while True:
            for root in found:
                for number in self._by_root.get(root, ()):
                    if number > at:
                        heapq.heappush(waiting, number)
            while waiting and waiting[0] == at:
                heapq.heappop(waiting)
            if not waiting:
                return
            at = heapq.heappop(waiting)
            yield self._code[at]
            found = more()


def roots_of(function: Function, places: Places, one: Instruction) -> Iterator[Root]:
    """Where the places begin that an instruction reads or defines."""
    for register in (*op.reads(one), one[2]) if op.DEFINES[one[0]] else op.reads(one):
        for name in places.names(function, register):
            yield name.root
