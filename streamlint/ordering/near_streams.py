"""The functions from which a path may come to work on a stream that the program chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from streamlint.facts.functions import Function
from streamlint.ir import Instruction
from streamlint.transfer.transfer import CALLING, Transfer

_UP, _DOWN = 8, 3
"""Calls up from a function that chooses a stream, and down from there to one that makes what is used on it."""
Callers = Callable[[Function], list[tuple[Function, Instruction]]]


def near_streams(transfer: Transfer, callers: Callers, effects: frozenset[str], also: Iterable[Function]) -> dict[Function, None]:
    """The functions with calls of some effects, and others; those that lead to one of them, and those that these call."""

    def calling(function: Function) -> Iterator[Function]:
        yield from (caller for caller, _ in callers(function))

    def called(function: Function) -> Iterator[Function]:
        for opcode in CALLING:
            for one in function.by_opcode[opcode]:
                yield from (edge.callee for edge in transfer.edges(function, one) if edge.is_followed)

    found = dict.fromkeys((*(call.function for call in transfer.sites(effects)), *also))
    _spread(found, calling, _UP)
    _spread(found, called, _DOWN)
    return found


def _spread(found: dict[Function, None], step: Callable[[Function], Iterable[Function]], most: int) -> None:
    reached = list(found)
    for _ in range(most):
        reached = list(dict.fromkeys(each for one in reached for each in step(one) if each not in found))
        found.update(dict.fromkeys(reached))
