"""Calls in compiled code whose order is lost: waits that the compiler leaves out, and calls that it cannot compile.

All work of compiled code runs on its caller's stream: what it forks and joins itself needs no wait. A wait for a stream that it never makes
current is for work of others, or lets others wait for its own; such a wait is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.captures.compiled import Compiled, Region
from streamlint.ordering.null_stream.same_stream_waits import SameStreamWaits
from streamlint.ordering.places.places import ANY, Element, Place
from streamlint.transfer.actions import Recorded, Stream, Synchronized
from streamlint.transfer.carried import Carried, Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.entered import Context

_CALLS = frozenset({"wait", "synchronize", "record", "record_use"})
_SWITCHES = frozenset({"scope", "set_stream"})
FAILS, WAIT, SYNCHRONIZE = "fails", "wait", "synchronize"
Named = frozenset[tuple[Function | None, Place]]
"""A stream or event by the places where it may come from into the compiled code."""


class LostCall(NamedTuple):
    """A call of compiled code, by its API's name, what becomes of it, and why its function is compiled."""

    at: Site
    name: str
    why: str
    region: Region


def _is_lost(row: Row) -> bool:
    return row.get("compiled") is not None


class CompiledStreams:
    """The calls of compiled functions that order streams."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.streams = SameStreamWaits(transfer)
        self.places = self.streams.places
        self.carriers = transfer.one_of(Carriers, transfer)
        self.compiled = Compiled(transfer)

    def lost(self) -> Iterator[LostCall]:
        """The calls whose order is lost."""
        regions = self.compiled.regions
        for call in self.transfer.sites(_CALLS, where=_is_lost) if regions else ():
            region = regions.get(call.function)
            if region is None or self.compiled.is_excluded(call.function, call.instruction):
                continue
            why = self._why(call, region)
            if why:
                yield LostCall(Site(call.function, call.instruction), call.name, why, region)

    @property
    def enters(self) -> bool:
        """Whether compiled code makes streams current."""
        return bool(self.compiled.regions) and bool(self._entered)

    def _why(self, call: ModelledCall, region: Region) -> str:
        without = call.row.get("compiled_without")
        if isinstance(without, Selector) and call.given(without) is not None:
            return ""
        if call.text("compiled") == FAILS:
            return FAILS
        actions = self.transfer.of(call.function, call.instruction)
        if any(isinstance(each, Synchronized) and each.of is not None for each in actions):
            return SYNCHRONIZE
        return WAIT if any(isinstance(each, Waited) and self._is_of_others(call, each, region) for each in actions) else ""

    def _is_of_others(self, call: ModelledCall, wait: Waited, region: Region) -> bool:
        """Whether a wait is for work of others, or lets others wait for that of the compiled code."""
        if wait.of < 0:
            return False
        function = call.function
        if wait.is_event:
            return _is_none_of(self._origin(function, wait.of), self._recorded.get(region.at, set()))
        entered = self._entered.get(region.at, set())
        return any(_is_none_of(self._named(call, stream), entered) for stream in (wait.stream, call.stream_in(wait.of)))

    def _named(self, call: ModelledCall, stream: Stream) -> Named | None:
        """A stream that is not the current one of the caller; None where it is, or where it is not known."""
        meant = self.streams.meant(call.function, call.instruction, stream)
        return self._origin(call.function, meant.register) if meant is not None and meant.place is not None else None

    @cached_property
    def _entered(self) -> dict[Site, set[Named | None]]:
        """The streams that compiled code makes current, by what compiles it; None is one that is not known."""
        found: dict[Site, set[Named | None]] = {}
        for call in self.transfer.sites(_SWITCHES):
            region = self.compiled.regions.get(call.function)
            register = call.one("stream")
            if region is not None and register is not None:
                stream = call.stream_in(register)
                meant = self.streams.meant(call.function, call.instruction, stream)
                if meant is None or meant.place is not None:  # else the caller's stream is made current again
                    found.setdefault(region.at, set()).add(self._named(call, stream))
        return found

    @cached_property
    def _recorded(self) -> dict[Site, set[Named | None]]:
        """The events that compiled code records."""
        found: dict[Site, set[Named | None]] = {}
        for call in self.transfer.sites(frozenset({"record"})):
            region = self.compiled.regions.get(call.function)
            for action in self.transfer.of(call.function, call.instruction) if region is not None else ():
                if region is not None and isinstance(action, Recorded):
                    found.setdefault(region.at, set()).add(self._origin(call.function, action.event))
        return found

    def _origin(self, function: Function, register: int) -> Named | None:
        """Where a stream or event comes from, by the calls that lead to a compiled function; None where an index is open."""
        context: Context = ()
        calls = self.compiled.regions[function].calls if function in self.compiled.regions else ()
        for number, site in enumerate(calls):
            callee = calls[number + 1].function if number + 1 < len(calls) else function
            context = (*context, (callee, site))
        found = {self._place(root) for root in self.carriers.roots(function, register, context)}
        is_known = found and not any(ANY in place.path for _, place in found)
        return frozenset(found) if is_known else None

    def _place(self, root: Carried) -> tuple[Function | None, Place]:
        keys = [Element(key.name) if key.is_element else str(key.name) for key in root.keys]
        place = self.places.of(root.function, root.register).behind(*keys)
        return (None if place.root[0] in ("cell", "global") else root.function, place)


def _is_none_of(named: Named | None, others: set[Named | None]) -> bool:
    """Whether a stream or event is known, and none of some that are all known."""
    return named is not None and None not in others and not any(named & other for other in others if other is not None)
