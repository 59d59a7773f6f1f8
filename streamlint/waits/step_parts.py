"""Functions that do part of a training step, of which nobody in view runs the rounds: a library's user calls them once in each.

Two kinds: those that look at the gradients of what they go through, which there are once for each backward pass, and the methods of a class
that goes backward in one of them and steps an optimizer in another. Where a caller in view has rounds, or is the program itself, that
decides; else the step is the outermost function that leads there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator

from streamlint.facts.code.functions import ClassInfo, Function
from streamlint.facts.repetition.hot import TRAINING, HotRegions
from streamlint.facts.repetition.reaching import above
from streamlint.ir.graph import NOBODY

_WHOLE = {"backward", "optimizer"}


class StepParts:
    """Finds the outermost functions whose calls are part of a step each."""

    def __init__(self, hot: HotRegions, looks_at_gradients: Callable[[Function], bool], apart: Collection[str]) -> None:
        """``apart``: what loops do that are no rounds: they go through something in one round."""
        self.hot = hot
        self.looks_at_gradients = looks_at_gradients
        self.apart = apart

    def outermost(self, functions: Iterable[Function]) -> dict[Function, bool]:
        """The functions to begin with, for those that are in no round yet; with whether all that they lead to looks at gradients."""
        found: dict[Function, bool] = {}
        for function, is_over_gradients in self._parts(list(functions)):
            leading = above(self.hot.graph, [function])
            if any(one.code.kind == "module" or self._is_in_rounds(one) for one in leading):
                continue
            edges = ((one, edge) for one in leading for edge in self.hot.graph.calls(one).edges)
            called = {edge.callee for one, edge in edges if edge.is_followed and edge.callee is not one}
            for one in sorted(leading - called, key=lambda one: (one.unit.number, one.code.number)):
                if len(one.code.parameters) > (1 if one.has_receiver else 0):
                    found[one] = is_over_gradients and found.get(one, True)
        return found

    def _is_in_rounds(self, function: Function) -> bool:
        return any(region.chain()[0].does not in self.apart for region in self.hot.regions.get(function, ()))

    def _parts(self, functions: list[Function]) -> Iterator[tuple[Function, bool]]:
        does: dict[ClassInfo, dict[Function, str]] = defaultdict(dict)
        for function in functions:
            if self.looks_at_gradients(function):
                yield function, True
            step = self.hot.progress(function).get(NOBODY)
            if function.owner is not None and step is not None and step.does in TRAINING:
                does[function.owner][function] = step.does
        for each in does.values():
            if set(each.values()) >= _WHOLE:
                yield from ((function, False) for function in each)
