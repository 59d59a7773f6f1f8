"""Python: which streams of a program wait for anything, anywhere in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.program import Unit
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.streams.lanes import Lane, Lanes
from streamlint.transfer.actions import CURRENT, NAMED, Stream, Synchronized
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited

_DEEPEST = 2
_ORDERING = frozenset({"wait", "synchronize"})
_KEEPING = frozenset({op.SET_NAME, op.SET_ATTR})


class StreamMap:
    """Asks the whole program what it does with a stream that it has made."""

    def __init__(self, transfer: Transfer, lanes: Lanes) -> None:
        self.transfer = transfer
        self.lanes = lanes

    def never_waits(self, lane: Lane) -> bool:
        """Whether the program never makes a stream wait."""
        return self.is_own(lane) and lane.made.isdisjoint(self._waiting)

    def lasts(self, lane: Lane) -> bool:
        """Whether the program keeps a stream behind a call, in a variable of a module or an attribute, and never makes it wait."""
        creations = lane.made if self.never_waits(lane) else ()
        return bool(creations) and all(self._is_kept(site.function, site.instruction[2], 0) for site in creations)

    def _is_kept(self, function: Function, register: int, depth: int) -> bool:
        """Whether a variable of a module or an attribute holds what a register does, or what all callers are given of it."""
        uses = function.uses[register]
        if any(use[0] in _KEEPING for use in uses):
            return True
        callers = self.transfer.callers(function) if depth < _DEEPEST and any(use[0] == op.RETURN for use in uses) else []
        kept = [op.DEFINES[call[0]] and self._is_kept(caller, call[2], depth + 1) for caller, call in callers]
        return bool(kept) and all(kept)

    @cached_property
    def _synchronizing(self) -> set[Unit]:
        """The files that wait for the whole device, also by a function or two of others that do so."""
        found = {function for function, _, action in self._orders if isinstance(action, Synchronized) and action.of is None}
        for _ in range(_DEEPEST):
            found |= {caller for function in found for caller, _ in self.transfer.callers(function)}
        return {function.unit for function in found}

    def is_own(self, lane: Lane) -> bool:
        """Whether the program has made a stream and keeps it, in a file that does not wait for the whole device."""
        is_made = lane.kind == NAMED and bool(lane.made) and not lane.is_given and lane.made <= self._created
        is_kept = is_made and lane.made.isdisjoint(self._let_go)
        return is_kept and self._synchronizing.isdisjoint(site.function.unit for site in lane.made)

    @cached_property
    def _created(self) -> set[Site]:
        calls = self.transfer.sites(frozenset({"stream"}))
        return {Site(call.function, call.instruction) for call in calls if not call.function.is_cpp}

    @cached_property
    def _orders(self) -> list[tuple[Function, Instruction, object]]:
        calls = {(call.function, call.instruction): None for call in self.transfer.sites(_ORDERING) if not call.function.is_cpp}
        return [(function, one, action) for function, one in calls for action in self.transfer.of(function, one)]

    @cached_property
    def _waiting(self) -> set[Site]:
        waits = ((function, one, action.stream) for function, one, action in self._orders if isinstance(action, Waited))
        return {site for place in waits for site in self._made(*place)}

    @cached_property
    def _let_go(self) -> set[Site]:
        """Where streams are made that a function hands to unknown callers."""
        makers = {site.function.unit: None for site in self._created}
        found: set[Site] = set()
        for function in (each for unit in makers for each in unit.functions):
            ends = [end[2] for end in (*function.by_opcode[op.RETURN], *function.by_opcode[op.YIELD]) if end[2] >= 0]
            if ends and not self.transfer.callers(function):
                found.update(site for register in ends for site in self._held(function, register))
        return found

    def _made(self, function: Function, one: Instruction, stream: Stream) -> Iterator[Site]:
        """Where a stream may have been made."""
        if stream.kind == NAMED and stream.register >= 0:
            yield from self._held(function, stream.register)
        elif stream.kind == CURRENT:
            yield from self.lanes.of(Frame(function, None, None, 0), one, stream).made

    def _held(self, function: Function, register: int) -> Iterator[Site]:
        for value in self.transfer.values(function, register):
            if isinstance(value, LibraryObject) and value.kind == "stream" and value.site is not None:
                yield value.site
