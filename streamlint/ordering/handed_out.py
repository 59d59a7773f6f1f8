"""Functions that a program hands to a library, which calls them again and again: hooks. Two calls follow one another on the device."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.functions import Function
from streamlint.facts.objects import LibraryObject, Site
from streamlint.ir import opcodes as op
from streamlint.ordering.lanes import Lane
from streamlint.ordering.stream_map import StreamMap
from streamlint.transfer.actions import NAMED, Recorded, Stream, Synchronized
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.transfer.waiting import Waited

_MOST = 60
"""Functions that are looked at below a hook."""
_ORDERING = frozenset({"wait", "synchronize", "record"})


class HandedOut:
    """Which functions are hooks whose stream only they know."""

    def __init__(self, transfer: Transfer, streams: StreamMap) -> None:
        self.transfer = transfer
        self.streams = streams
        self._handed: dict[Function, bool] = {}
        self._below: dict[Function, frozenset[Function] | None] = {}

    def runs_again(self, function: Function, lane: Lane) -> bool:
        """Whether a function is called once more, and nothing but itself can have waited for the work of a stream meanwhile."""
        if lane.kind != NAMED or not self.is_handed(function) or not self.streams.is_own(lane):
            return False
        waiting = {other for site in lane.made for other in self._waiting.get(site, ())}
        below = self._reached(function) if waiting else frozenset()
        return below is not None and waiting <= below

    def is_handed(self, function: Function) -> bool:
        """Whether no known code calls a function that its function makes and gives to a call."""
        found = self._handed.get(function)
        if found is None:
            maker, made = function.parent, function.definition
            uses = maker.uses[made[2]] if maker is not None and made is not None and not function.is_cpp else ()
            is_given = any(use[0] in (op.CALL, op.INVOKE) and use[3] != made[2] for use in uses) if made is not None else False
            places = self.transfer.facts.call_places(function) if is_given else []
            edges = [edge for place in places for edge in self.transfer.edges(*place) if edge.callee is function]
            found = self._handed[function] = is_given and all(edge.is_handed and not edge.is_elsewhere for edge in edges)
        return found

    def _reached(self, function: Function) -> frozenset[Function] | None:
        """A function, and those that it calls; None where these are too many."""
        if function not in self._below:
            below = [function]
            for each in below:
                calls = (one for opcode in CALLING for one in each.by_opcode[opcode])
                edges = (edge for one in calls for edge in self.transfer.edges(each, one) if edge.is_followed and not edge.is_handed)
                below += [callee for callee in dict.fromkeys(edge.callee for edge in edges) if callee not in below]
                if len(below) > _MOST:
                    break
            self._below[function] = frozenset(below) if len(below) <= _MOST else None
        return self._below[function]

    @cached_property
    def _waiting(self) -> dict[Site, set[Function]]:
        """By where streams were made: the functions that wait for one, or record an event behind its work."""
        found: dict[Site, set[Function]] = {}
        for call in self.transfer.sites(_ORDERING):
            function = call.function
            for action in self.transfer.of(function, call.instruction) if not function.is_cpp else ():
                registers = [action.of] if isinstance(action, Waited) and not action.is_event else []
                of = action.of if isinstance(action, Synchronized) else action.stream if isinstance(action, Recorded) else None
                registers += [of.register] if isinstance(of, Stream) else []
                for register in (each for each in registers if each >= 0):
                    for value in self.transfer.values(function, register):
                        if isinstance(value, LibraryObject) and value.kind == "stream" and value.site is not None:
                            found.setdefault(value.site, set()).add(function)
        return found
