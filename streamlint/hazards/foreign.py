"""Two libraries that work on the same memory, each on a stream of its own, with nothing that orders the two."""

from __future__ import annotations

import collections
from collections.abc import Container, Iterable, Iterator
from typing import NamedTuple

from streamlint.checks.sl027_foreign_library_stream import NAMES
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import behind
from streamlint.facts.code.objects import Site
from streamlint.facts.files.program import Unit
from streamlint.hazards.foreign_memory import ForeignMemory, Held, home_of
from streamlint.hazards.foreign_order import ForeignOrder
from streamlint.hazards.stream_files import libraries_of
from streamlint.hazards.streams import Streams
from streamlint.ir import opcodes as op
from streamlint.ordering.memory.storage import in_conflict
from streamlint.ordering.streams.choices import IN_VIEW
from streamlint.ordering.streams.concurrent_work import Event
from streamlint.transfer.launches import OPENED
from streamlint.transfer.waiting import Exchanged

LIBRARIES = {**NAMES, OPENED: "the library"}
DEEPEST = 8
"""Calls between a function and the work that is looked for below it."""
_MOST_ABOVE = 500
"""Functions from which calls lead to work of a library."""


class Pair(NamedTuple):
    """The work of the library that came to the memory, and that of the other one; ``is_behind``: it comes behind the other."""

    foreign: Event
    other: Event
    is_behind: bool
    function: Function


class ForeignWork:
    """Finds such pairs."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.facts = streams.facts
        self.transfer = streams.transfer
        self.memory = ForeignMemory(streams.transfer, streams.choices.places)
        self.order = ForeignOrder(streams, DEEPEST)
        self._takeovers: dict[Function, frozenset[int]] = {}

    def find(self) -> Iterator[Pair]:
        """The pairs of the program, one for each piece of foreign work."""
        seen: set[Site] = set()
        for function in self._functions():
            for pair in self._of_function(function):
                if pair.foreign.at not in seen:
                    seen.add(pair.foreign.at)
                    yield pair

    def _functions(self) -> Iterator[Function]:
        """The functions that lead to work of a library whose streams are its own: first those of files that name two libraries."""
        program = self.facts.program
        opening = sorted(self.facts.models.marked("opens-libraries")) if any(unit.is_cpp for unit in program.units.values()) else ()
        words = {unit: libraries_of(program, unit) for unit in program.units.values() if not unit.is_cpp}
        mentioned = {word: set(program.mentioning(word)) for word in ("torch", *opening)}
        named = {unit: own | {word for word, units in mentioned.items() if unit in units} for unit, own in words.items()}
        if len(set[str]().union(*named.values())) < 2:
            return
        both = {unit: None for unit, own in named.items() if len(own) > 1}
        working = (each for unit, own in words.items() if own or unit in both for each in unit.functions)
        leading = dict.fromkeys(self._leading_to_work(working, both))
        found = dict.fromkeys(function for unit in both for function in unit.functions if function in leading)
        yield from found
        yield from (function for function in leading if function not in found)

    def _leading_to_work(self, functions: Iterable[Function], always: Container[Unit]) -> Iterator[Function]:
        """Those of some functions in which a library works whose streams are its own, and functions that call them: of some files, all."""
        waiting = [(each, 0) for each in functions if self._has_foreign_work(each)]
        seen = {function for function, _ in waiting}
        for function, depth in waiting:
            yield function
            for caller, _ in self.transfer.callers(function) if depth < DEEPEST else ():
                if caller not in seen and not caller.is_cpp and (len(seen) < _MOST_ABOVE or caller.unit in always):
                    seen.add(caller)
                    waiting.append((caller, depth + 1))

    def _has_foreign_work(self, function: Function) -> bool:
        """Whether a function itself has a library work whose streams are its own."""
        works = (event.work for event in self.streams.beside.own(function) if event.work is not None)
        return any(work.library != "torch" for work in works)

    def _working(self, function: Function) -> list[Event]:
        """The work of two libraries or more, on streams that are in view, with memory that no protocol took over; else none."""
        events = [event for event in self.streams.beside.events(function) if event.work is not None and event.work.library in LIBRARIES]
        events = [event for event in events if event.choice is not None and event.choice.kind in IN_VIEW]
        if len({event.work.library for event in events if event.work is not None}) < 2:
            return []
        return [event for event in events if self._does_work(event) and not self._is_exchanged(event)]

    def _of_function(self, function: Function) -> Iterator[Pair]:
        events = self._working(function)
        touched = [set[Held]().union(*self.memory.touched(event)) for event in events]
        touching = collections.defaultdict[Held, list[int]](list)
        for number, everything in enumerate(touched):
            for held in everything:
                touching[held].append(number)
        for second, everything in zip(events, touched, strict=True):
            near = {number for held in everything for number in touching[held]}
            for first in (events[number] for number in sorted(near, reverse=True)):
                assert first.work is not None
                assert second.work is not None
                if first.work.library == second.work.library:
                    continue
                shared = self._shared(first, second)
                if shared and self._is_unordered(first, second):
                    yield _pair(function, first, second, self._home(shared, first, second))
                    break

    def partners(self, pair: Pair) -> Iterator[Event]:
        """All work of the other library that is as little ordered with the foreign work."""
        function, foreign = pair.function, pair.foreign
        for event in self._working(function):
            if event.work is not None and foreign.work is not None and event.work.library != foreign.work.library:
                for first, second in ((event, foreign), (foreign, event)):
                    if self._shared(first, second) and self._is_unordered(first, second):
                        yield event
                        break

    def _is_unordered(self, first: Event, second: Event) -> bool:
        """Whether nothing orders two pieces of work in the function in which the ways to them part."""
        ways = zip((*first.via, first.at), (*second.via, second.at), strict=False)
        depth, (one, other) = next(((depth, way) for depth, way in enumerate(ways) if way[0] != way[1]), (0, (first.at, first.at)))
        if one == other or one.function is not other.function:
            return False
        pair = [each._replace(instruction=way.instruction, via=each.via[depth:]) for each, way in ((first, one), (second, other))]
        return self.order.is_unordered(one.function, *pair)

    def _does_work(self, event: Event) -> bool:
        """Whether something is done with memory: it is not only allocated, or taken over as it is."""
        assert event.work is not None
        call = event.work.call
        if call is not None and self.memory.is_of_other(event, call.receiver):
            return False  # a method of that name, but of an array of another library
        if call is not None and call.row.effect == "factory" and "empty" in call.name:
            return False
        return event.work.kind not in ("copy", "compute") or not self.memory.storages.is_taken_over(event.at.function, event.at.instruction)

    # --- memory

    def _shared(self, first: Event, second: Event) -> set[Held]:
        return in_conflict(self.memory.touched(first), self.memory.touched(second))

    def _is_exchanged(self, event: Event) -> bool:
        """Whether the memory was taken over by a protocol that orders the streams."""
        assert event.work is not None
        function = event.at.function
        sharing = self._sharing(function)
        for one in behind(function, [*event.work.reads, *event.work.writes], op.reads) if sharing else ():
            if one[2] in sharing and any(isinstance(action, Exchanged) for action in self.transfer.of(function, one)):
                return True
        return self.memory.is_exchanged(event)

    def _sharing(self, function: Function) -> frozenset[int]:
        """The registers that calls define which take memory over."""
        known = self._takeovers.get(function)
        if known is None:
            calls = (one for one in function.definitions if one is not None and one[0] in (op.CALL, op.INVOKE))
            known = frozenset(one[2] for one in calls if any(call.row.get("shares") for call in self.transfer.modelled(function, one)))
            self._takeovers[function] = known
        return known

    def _home(self, shared: set[Held], first: Event, second: Event) -> str:
        """The library whose memory it is."""
        assert first.work is not None
        assert second.work is not None
        other = "torch" if "torch" in (first.work.library, second.work.library) else first.work.library
        return home_of(self.transfer, shared) or other


def _pair(function: Function, first: Event, second: Event, home: str) -> Pair:
    """Two pieces of work as a pair: foreign is an opened library's work, else that of the library to which the memory does not belong."""
    libraries = [event.work.library if event.work is not None else "" for event in (first, second)]
    is_first = libraries[0] == OPENED or (libraries[1] != OPENED and home == libraries[1])
    return Pair(first, second, False, function) if is_first else Pair(second, first, True, function)
