"""Loops whose rounds compute with arrays that are always on the GPU, as CuPy's, and fetch numbers of them.

No module gives a result back into such a round, so nothing but the arrays shows what it does: it launches work by itself or through what it
calls, and a number of an array that it may have computed is read in it, or in a function that it calls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Memory
from streamlint.facts.repetition.loops import Body
from streamlint.facts.repetition.reaching import above
from streamlint.ir.graph import NOBODY, Loop
from streamlint.waits.found import WaitFinder
from streamlint.waits.launching import Launching
from streamlint.waits.origins import TENSOR
from streamlint.waits.wait import CAST, READ, Wait


class Computing:
    """Finds such loops."""

    def __init__(self, launching: Launching, finder: WaitFinder) -> None:
        self.launching = launching
        self.finder = finder

    def functions(self, functions: Collection[Function]) -> frozenset[Function]:
        """The functions from which calls lead to the read of a number of such an array. Only files beside its library are looked at."""
        units = {one.unit for one in functions}
        beside = {unit for unit in units if self.launching.is_beside(unit)}
        own = (one for one in functions if one.unit in beside)
        return above(self.finder.graph, (one for one in own if any(reads_number(self.finder, wait) for wait in self.finder.waits(one))))

    def loops(self, body: Body, reading: frozenset[Function]) -> Iterator[Loop]:
        """The loops of a function whose rounds read a number, and launch work."""
        function = body.function
        calls = [wait.instruction for wait in self.finder.waits(function) if reads_number(self.finder, wait)]
        calls += [edge.instruction for edge in self.finder.graph.calls(function).edges if edge.is_followed and edge.callee in reading]
        for index in dict.fromkeys(body.loop_of(one) for one in calls):
            loop = body.graph.loops[index] if index != NOBODY else None
            if loop is not None and self.launching.launches(body, loop):
                yield loop


def reads_number(finder: WaitFinder, wait: Wait) -> bool:
    """Whether a wait is for one number of an array that can be nowhere but on the GPU."""
    if not (wait.what == CAST or (wait.what == READ and wait.name.endswith("item"))):
        return False
    arrays = [one for one in finder.facts.values(wait.function, wait.value).values if isinstance(one, Memory)]
    return bool(arrays) and all(one.space == "device" and one.type != TENSOR and one.evidence == "literal" for one in arrays)
