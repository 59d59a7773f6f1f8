"""Calls in compiled code whose order is lost: waits that the compiler leaves out, and calls that it cannot compile.

All work of compiled code runs on its caller's stream: what it forks and joins itself needs no wait. A wait for a stream that it never makes
current is for work of others, or lets others wait for its own; such a wait is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

from streamlint.facts.functions import Function
from streamlint.facts.objects import Site
from streamlint.ir import opcodes as op
from streamlint.models import Row
from streamlint.models.vocabulary import Selector
from streamlint.ordering.choice import behind_copies
from streamlint.ordering.compiled import Compiled, Region
from streamlint.ordering.places import Place
from streamlint.ordering.same_stream_waits import SameStreamWaits
from streamlint.transfer.actions import Recorded, Stream, Synchronized
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.waiting import Waited
from streamlint.waits.operands import operand_of

_CALLS = frozenset({"wait", "synchronize", "record", "record_use"})
_SWITCHES = frozenset({"scope", "set_stream"})
FAILS, WAIT, SYNCHRONIZE = "fails", "wait", "synchronize"
Named = tuple[Function | None, Place]
"""A stream or event, as the outermost function of the compiled code that names it has it."""


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
        self.compiled = Compiled(transfer)

    def lost(self) -> Iterator[LostCall]:
        """The calls whose order is lost."""
        regions = self.compiled.regions
        for call in self.transfer.sites(_CALLS, where=_is_lost) if regions else ():
            region = regions.get(call.function)
            if region is None or self.compiled.is_spared(call.function, call.instruction):
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
            event = self._lifted(function, self.places.of(function, behind_copies(function, wait.of)))
            return event is not None and event not in self._recorded.get(region.at, ())
        entered = self._entered.get(region.at, ())
        for stream in (wait.stream, call.stream_in(wait.of)):
            named = self._named(function, call, stream)
            if named is not None and None not in entered and named not in entered:
                return True
        return False

    def _named(self, function: Function, call: ModelledCall, stream: Stream) -> Named | None:
        """A stream that is not the current one of the caller; None where it is, or where it cannot be told."""
        meant = self.streams.meant(function, call.instruction, stream)
        return self._lifted(function, meant.place) if meant is not None and meant.place is not None else None

    @cached_property
    def _entered(self) -> dict[Site, set[Named | None]]:
        """The streams that compiled code makes current, by what compiles it; None is one that cannot be told."""
        found: dict[Site, set[Named | None]] = {}
        for call in self.transfer.sites(_SWITCHES):
            region = self.compiled.regions.get(call.function)
            register = call.one("stream")
            if region is not None and register is not None:
                stream = call.stream_in(register)
                meant = self.streams.meant(call.function, call.instruction, stream)
                if meant is None or meant.place is not None:  # else the caller's stream is made current again
                    lifted = self._lifted(call.function, meant.place) if meant is not None and meant.place is not None else None
                    found.setdefault(region.at, set()).add(lifted)
        return found

    @cached_property
    def _recorded(self) -> dict[Site, set[Named | None]]:
        """The events that compiled code records."""
        found: dict[Site, set[Named | None]] = {}
        for call in self.transfer.sites(frozenset({"record"})):
            region = self.compiled.regions.get(call.function)
            for action in self.transfer.of(call.function, call.instruction) if region is not None else ():
                if region is not None and isinstance(action, Recorded):
                    for place in self.places.names(call.function, action.event):
                        found.setdefault(region.at, set()).add(self._lifted(call.function, place))
        return found

    def _lifted(self, function: Function, place: Place) -> Named | None:
        """A place as the outermost function of the compiled code has it that hands it on."""
        calls = list(self.compiled.regions[function].calls) if function in self.compiled.regions else []
        while place.root[0] == "parameter" and calls:
            caller, call = calls.pop()
            index = place.root[1]
            assert isinstance(index, int)
            is_receiver = call[0] == op.INVOKE and index == 0 and function.has_receiver
            given = call[3] if is_receiver else operand_of(caller, call, function, index)
            if given is None or given < 0:
                return None
            function, place = caller, self.places.of(caller, behind_copies(caller, given)).behind(*place.path)
        return (None if place.root[0] in ("cell", "global") else function, place)
