"""Streams that callers hand to a function: which these may be, by which calls they come, and what else touches what works on them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ordering.memory.storage import Storages
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import PARAMETER
from streamlint.ordering.streams.concurrent_work import ConcurrentWork, Event

Streams = frozenset[LibraryObject]
Calls = tuple[Site, ...]


class PassedStreams:
    """What a program does with the streams that its functions hand on."""

    def __init__(self, concurrent: ConcurrentWork) -> None:
        self.concurrent = concurrent
        self.transfer = concurrent.transfer
        self.places = concurrent.choices.places
        self.storages = Storages(self.transfer, self.places, concurrent.launches)
        self._known: dict[tuple[Function, Place], Streams] = {}
        self._relied: dict[tuple[Function, object, Streams], bool] = {}

    def of(self, function: Function, choice: Choice) -> Streams:
        """The streams that a choice means: those that were made, or all that a caller may hand for a parameter or a member of one."""
        if choice.kind != PARAMETER or choice.place is None:
            return choice.made
        known = self._known.get((function, choice.place))
        if known is None:
            known = self._known[function, choice.place] = self._passed_in(function, choice.place)
        return known

    def _passed_in(self, function: Function, place: Place) -> Streams:
        found: set[LibraryObject] = set()
        for register, one in enumerate(function.definitions):
            if one is not None and self.places.of(function, register) == place:
                held = self.transfer.values(function, register)
                found.update(value for value in held if isinstance(value, LibraryObject) and value.kind == "stream" and value.site)
        return frozenset(found)

    def ways(self, function: Function, streams: Streams) -> Iterator[tuple[Function, Calls]]:
        """A function, and those that call it up to who makes some streams, each with the calls that lead from there."""
        makers = {one.site.function for one in streams if one.site is not None}
        seen, waiting = {function}, deque([(function, Calls())])
        while waiting:
            home, calls = waiting.popleft()
            yield home, calls
            for caller, call in self.transfer.callers(home) if home not in makers else ():
                if caller not in seen:
                    seen.add(caller)
                    waiting.append((caller, (Site(caller, call), *calls)))

    def is_relied_upon(self, function: Function, event: Event, streams: Streams) -> bool:
        """Whether other streams meet the data of a stream's work, here or in a caller: the barrier is an order that they may need."""
        assert event.choice is not None
        key = (function, event.choice.key, streams)
        if key not in self._relied:
            own = [each for each in self._work(function) if each.choice is not None and each.choice.key == event.choice.key]
            self._relied[key] = self._meets_others(function, own, streams)
        return self._relied[key]

    def _meets_others(self, function: Function, own: list[Event], streams: Streams) -> bool:
        """Whether work of other streams touches the data of a stream's own work, in the function or between it and who makes the stream."""
        for home, calls in self.ways(function, streams):
            mine, others = list(own), list[Event]()
            for each in self._work(home):
                if each in own or (calls and each.instruction == calls[0].instruction):
                    continue
                is_mine = bool(calls) and each.choice is not None and not streams.isdisjoint(self.of(home, each.choice))
                (mine if is_mine else others).append(each)
            touched = {place for each in mine for place in self._touched(each, calls if each in own else ())}
            if any(not touched.isdisjoint(self._touched(each, ())) for each in others):
                return True
        return False

    def _work(self, function: Function) -> list[Event]:
        return [each for each in self.concurrent.events(function) if each.work is not None and each.choice is not None]

    def _touched(self, event: Event, calls: Calls) -> set[Place]:
        """The memory that work reads and writes, by the names of the function from which calls lead to it."""
        reads, writes = self.storages.touched(event._replace(via=(*calls, *event.via)))
        return reads | writes
