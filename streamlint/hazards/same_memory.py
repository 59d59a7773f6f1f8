"""Whether work on the null stream meets memory that a non-blocking stream works on: then the two race, and the null stream is the cause."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Site
from streamlint.hazards.streams import Streams
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.memory.storage import Storages, in_conflict
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.choice import Choice
from streamlint.ordering.streams.choices import NULL
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.transfer.host_copies import HostCopies
from streamlint.transfer.launch_rows import Queued
from streamlint.transfer.origins import Origins
from streamlint.transfer.sizes import Sizes

_HIGHEST, _MOST_CALLS = 8, 12
"""Callers above a function that knows no stream, and the calls of one beyond which it stands for all of them."""


class SameMemory:
    """Answers for work in C++."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.transfer = streams.transfer
        self.storages = Storages(streams.transfer, streams.choices.places, streams.launches)
        origins = streams.transfer.one_of(Origins, streams.transfer)
        self._copies = streams.transfer.one_of(HostCopies, origins)
        self._sizes = streams.transfer.one_of(Sizes, origins)

    def is_raced(self, at: Site, work: Queued, choice: Choice) -> bool:
        """Whether work of a non-blocking stream that is in flight where the null stream was chosen, or comes next there, touches the same
        memory, and one of the two writes it."""
        return self._makes_others and self._is_raced(_as_chosen(at, work, choice), choice.at.function)

    def overtaking(self, at: Site, work: Queued, choice: Choice) -> Event | None:
        """The work of a non-blocking stream that comes next on memory which a synchronous upload has only staged when it returns."""
        if not self._makes_others or not self._is_staged(work):
            return None
        return self._overtaking(_as_chosen(at, work, choice), choice.at.function, set())

    def not_joined(self, at: Site, work: Queued, choice: Choice, beside: list[Event]) -> list[Event]:
        """What other streams have in flight beside work on the null stream, unless that joins them."""
        return [] if self._is_join(at, work, choice, beside) else beside

    def _is_join(self, at: Site, work: Queued, choice: Choice, beside: list[Event]) -> bool:
        """Whether work on the null stream joins several streams: it needs all copies that they have in flight, or earlier work on the null
        stream did, and all work that comes behind on others needs it. What has to wait loses nothing by it. A kernel in flight may work on
        another part of the memory."""
        own, holder, others = _as_chosen(at, work, choice), choice.at.function, self.streams.beside
        if len({event.choice.key for event in beside if event.choice is not None}) < 2 or not all(map(_fills, beside)):
            return False
        touched = self.storages.touched(own)
        nulls = [
            (each.instruction, self.storages.touched(each))
            for each in others.before(holder, own.instruction)
            if each.work is not None and each.choice is not None and each.choice.kind == NULL
        ]

        def is_needed(event: Event) -> bool:
            theirs = self.storages.touched(event)
            after = (known for one, known in nulls if leads_to(holder, event.instruction, one))
            return any(in_conflict(each, theirs) for each in (touched, *after))

        behind = others.behind(holder, own.instruction)
        return all(map(is_needed, beside)) and all(in_conflict(touched, self.storages.touched(event)) for event in behind)

    def _overtaking(self, own: Event, holder: Function, seen: set[Site]) -> Event | None:
        """The same of work by the names of a function, and of those that call it, each call once."""
        if self._is_recorded(holder):
            return None
        touched, beside = self.storages.touched(own), self.streams.beside
        behind = beside.behind(holder, own.instruction, _holds_host_for_null) if any(touched) else []
        found = next((each for each in behind if self._meets(touched, each)), None)
        if found is not None or len(own.via) >= _HIGHEST or not beside.is_left(holder, own.instruction, _holds_host_for_null):
            return found
        for event, caller in self._above(own, holder):
            if event.via[0] not in seen:
                seen.add(event.via[0])
                if (found := self._overtaking(event, caller, seen)) is not None:
                    return found
        return None

    def _is_staged(self, work: Queued) -> bool:
        """Whether the host may go on before the copy has ended: all memory that is copied is pageable, and not all of it is small. Thrust
        waits for its stream behind a copy (``across``)."""
        call = work.call
        is_upload = work.waits and work.direction == "h2d"
        copies = list(self._copies.of(call)) if call is not None and is_upload and not call.row.get("across") else []
        if not all(copy.origin.space == "host" and copy.origin.pinning == "pageable" for copy in copies):
            return False
        return not all(self._sizes.of_copy(copy).is_small for copy in copies)

    @cached_property
    def _makes_others(self) -> bool:
        """Whether C++ makes streams that the null stream does not wait for."""
        made = (call for call in self.transfer.sites({"stream"}) if call.function.is_cpp)
        return any(self.streams.asked_blocking(Site(call.function, call.instruction)) is False for call in made)

    def _is_raced(self, own: Event, holder: Function) -> bool:
        """The same of work by the names of a function, and of those that call it, each call once."""
        level, seen = [(own, holder)], set[Site]()
        for _ in range(_HIGHEST + 1):
            if any(self._meets_others(*each) for each in level):
                return True
            above = [each for one in level for each in self._above(*one) if each[0].via[0] not in seen]
            seen.update(each.via[0] for each, _ in above)
            level = above
        return False

    def _above(self, own: Event, holder: Function) -> Iterator[tuple[Event, Function]]:
        """The work as that of each call of a function that knows no stream."""
        if self.streams.in_scope.is_named(holder) or self.streams.in_scope.makes(holder):
            return
        places = list(self.streams.facts.call_places(holder))
        for caller, call in places if len(places) <= _MOST_CALLS else ():
            if caller is not holder and any(edge.callee is holder and edge.is_followed for edge in self.transfer.edges(caller, call)):
                yield own._replace(instruction=call, via=(Site(caller, call), *own.via)), caller

    def _meets_others(self, event: Event, holder: Function) -> bool:
        own, place, work = self.storages.touched(event), event.instruction, event.work
        if work is None or not any(own):
            return False
        beside = self.streams.beside
        if any(self._meets(own, event) for event in beside.in_flight(holder, place)):
            return True
        behind = [] if work.waits or self._is_recorded(holder) else beside.behind(holder, place)
        return any(self._meets(own, event) for event in behind)

    def _meets(self, own: tuple[set[Place], set[Place]], event: Event) -> bool:
        if event.work is None or event.choice is None or event.via or self.streams.work_blocking(event) is not False:
            return False  # what a call leaves behind may be waited for where it stands
        return bool(in_conflict(own, self.storages.touched(event)))

    def _is_recorded(self, holder: Function) -> bool:
        """Whether an event is recorded on the null stream, for which others may wait."""
        names = self.transfer.names(frozenset({"record"}))
        for one in holder.by_opcode[op.CALL]:
            if holder.dotted(one[3]).rpartition("::")[2] not in names:
                continue
            for call in self.transfer.modelled(holder, one):
                held = call.row.get("stream")
                register = call.given(held) if isinstance(held, Selector) else None
                chosen = self.streams.choices.of_register(holder, register, Site(holder, one)) if register is not None else ()
                if call.row.effect == "record" and (register is None or any(each.kind == NULL for each in chosen)):
                    return True
        return False


def _fills(event: Event) -> bool:
    """Whether an event copies or fills memory: all of what it names."""
    return event.work is not None and event.work.kind in ("copy", "memset")


def _as_chosen(at: Site, work: Queued, choice: Choice) -> Event:
    """Work by the names of the function that has chosen its stream."""
    return Event(choice.at.instruction, at, work, choice, choice.calls)


def _holds_host_for_null(event: Event) -> bool:
    """Whether the host waits until the null stream has nothing left to do."""
    is_null = event.choice is not None and event.choice.kind == NULL
    return is_null and (event.work is None or event.work.waits)
