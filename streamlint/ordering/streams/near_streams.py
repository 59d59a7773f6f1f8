"""The functions from which a path may come to work on a stream that the program chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.transfer.transfer import Transfer

_UP, _DOWN = 8, 3
"""Calls up from a function that chooses a stream, and down from there to one that makes what is used on it."""
Callers = Callable[[Function], list[tuple[Function, Instruction]]]


class NearStreams:
    """The functions with calls of some effects, and others; those that lead to one of them, and those that these call."""

    def __init__(self, transfer: Transfer, callers: Callers, effects: frozenset[str], also: Iterable[Function]) -> None:
        self._callers = callers
        self._leading = dict.fromkeys((*(call.function for call in transfer.sites(effects)), *also))
        self._known: dict[tuple[Function, int], bool] = {}
        reached = list(self._leading)
        for _ in range(_UP):
            reached = list(dict.fromkeys(each for one in reached for each in self._calling(one) if each not in self._leading))
            self._leading.update(dict.fromkeys(reached))

    def __contains__(self, function: Function) -> bool:
        return self._is_near(function, _DOWN)

    def leads(self, function: Function) -> bool:
        """Whether a function has such a call, or leads to one by its own calls."""
        return function in self._leading

    def _is_near(self, function: Function, depth: int) -> bool:
        if function in self._leading or depth == 0:
            return function in self._leading
        found = self._known.get((function, depth))
        if found is None:
            found = self._known[function, depth] = any(self._is_near(each, depth - 1) for each in self._calling(function))
        return found

    def _calling(self, function: Function) -> Iterator[Function]:
        yield from (caller for caller, _ in self._callers(function))
