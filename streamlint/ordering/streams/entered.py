"""Which stream is current where a function is entered: the one that its callers have made current around the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.ir import Instruction
from streamlint.ordering.streams.streams import Currents
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Stream
from streamlint.transfer.transfer import Transfer

_DEEPEST = 4
"""Calls between the function that makes a stream current and the one that is entered."""


class Entry(NamedTuple):
    """A stream that is current at a call, and the calls from there, the outermost first."""

    stream: Stream
    calls: tuple[Site, ...]


class Entered:
    """The current streams that functions are entered with."""

    def __init__(self, transfer: Transfer, currents: Currents) -> None:
        self.transfer = transfer
        self.currents = currents

    @memoized
    def of(self, function: Function, library: str) -> tuple[Entry, ...]:
        """The streams that callers have made current for a library; none for a call where they leave it as it was."""
        return tuple(self._around(function, library, ()))

    def is_always(self, function: Function, library: str) -> bool:
        """Whether every known call is made under a stream."""
        calls = self._calls(function)
        return bool(calls) and all(self.currents.of_library(caller, call, library) is not None for caller, call in calls)

    def _around(self, function: Function, library: str, calls: tuple[Site, ...]) -> Iterator[Entry]:
        for caller, call in self._calls(function) if len(calls) < _DEEPEST else ():
            here = Site(caller, call)
            if here in calls:
                continue
            stream = self.currents.of_library(caller, call, library)
            if stream is not None:
                yield Entry(stream, (here, *calls))
            elif self._is_chosen(caller, library, _DEEPEST - len(calls) - 1):
                yield from self._around(caller, library, (here, *calls))

    @memoized
    def _is_chosen(self, function: Function, library: str, left: int) -> bool:
        """Whether some caller has made a stream current, at most so many calls away."""
        return left > 0 and any(
            self.currents.of_library(caller, call, library) is not None or self._is_chosen(caller, library, left - 1)
            for caller, call in self._calls(function)
        )

    @memoized
    def _calls(self, function: Function) -> tuple[tuple[Function, Instruction], ...]:
        return tuple(self.transfer.callers(function))
