"""The instructions that a capture runs: its own, and those of the functions that it calls, with names for what these are given."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.walk_names import WalkNames
from streamlint.ordering.places.places import Place
from streamlint.transfer.transfer import Transfer

_MOST_INSIDE = 30
"""Functions that a capture calls which are looked at."""
Given = dict[int, Place]
"""By the number of a parameter: the place of its argument, as the function of the capture names it."""
Run = tuple[Function, Instruction, Given | None]
"""An instruction that a capture runs; None stands for the names of its own function."""


class CapturedCalls:
    """Follows the calls of captures of Python."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.names = transfer.one_of(WalkNames, transfer)

    def run(self, function: Function, region: list[Instruction]) -> Iterator[Run]:
        """The instructions of a region of a function, and of what they call."""
        waiting: list[Run] = [(function, one, None) for one in region if not function.is_cpp]
        seen = {function}
        for caller, one, outer in waiting:
            yield caller, one, outer
            if one[0] not in (op.CALL, op.INVOKE) or len(seen) > _MOST_INSIDE:
                continue
            for edge in self.transfer.edges(caller, one):
                callee = edge.callee
                if edge.is_followed and callee not in seen and not callee.is_cpp:
                    seen.add(callee)
                    given = dict(self._given(caller, one, callee, outer))
                    waiting += [(callee, inner, given) for inner in callee.code.instructions()]

    def _given(self, caller: Function, one: Instruction, callee: Function, outer: Given | None) -> Iterator[tuple[int, Place]]:
        """By the number of a parameter: the place of what a call gives for it, as far as the function of the capture has a name for it."""
        for index in range(len(callee.code.parameters)):
            for place in self.names.sources(caller, one, callee, index):
                if (mine := named(place, outer)) is not None:
                    yield index, mine
                    break


def named(place: Place, given: Given | None) -> Place | None:
    """A place by the names of the function of a capture; ``given`` are its names for the parameters, None where it is its own place."""
    if given is None or place.root[0] in ("cell", "global"):
        return place
    if place.root[0] != "parameter":
        return None
    base = given.get(int(str(place.root[1])))
    return base.behind(*place.path) if base is not None else None
