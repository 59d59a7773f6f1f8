"""Which streams have work in flight where an operation is queued, and which get work behind it: within one function and what it calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from streamlint.facts.code.counters import counts_rounds
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name, unnegated
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ir.graph import NOBODY
from streamlint.ordering.places.leading import leads_to
from streamlint.ordering.places.places import OWN, Place
from streamlint.ordering.streams.choice import Choice, default_is_null
from streamlint.ordering.streams.choices import AMBIENT, HELD, MADE, NULL, PARAMETER, Choices, kind_of
from streamlint.support.memo import memoized
from streamlint.transfer.actions import Stream, Synchronized
from streamlint.transfer.carried import Carriers
from streamlint.transfer.launch_rows import OMITTED, Queued
from streamlint.transfer.launches import Launches
from streamlint.transfer.transfer import CALLING, Transfer
from streamlint.waits.entered import Context
from streamlint.waits.operands import given_to

DEEPEST = 3
"""Calls that are entered behind one another."""
_MOST_INSIDE = 200
"""Functions below one call that are looked at."""
WAITING = frozenset({"synchronize", "free", "query", "wait"})
"""Effects of calls in which the host or a stream may wait."""


class Event(NamedTuple):
    """Work on a stream, or a wait of the host (``work`` is None; ``choice`` is None too where it waits for the device), at an
    instruction of a function; ``at`` is where it really stands."""

    instruction: Instruction
    at: Site
    work: Queued | None
    choice: Choice | None
    via: tuple[Site, ...] = ()  # the calls from the instruction to there

    @property
    def context(self) -> Context:
        """The functions that lead to where it stands, each with the call that enters it."""
        return context_of(self.at.function, self.via)


class ConcurrentWork:
    """What else is in flight."""

    def __init__(self, transfer: Transfer, launches: Launches, choices: Choices, deepest: int = DEEPEST) -> None:
        self.deepest = deepest
        self.transfer = transfer
        self.launches = launches
        self.choices = choices
        self.carriers = transfer.one_of(Carriers, transfer)
        self._own: dict[Function, list[Event]] = {}

    @memoized
    def events(self, function: Function) -> list[Event]:
        """The work and the waits of a function, with those of the functions that it calls, at most ``deepest`` calls deep."""
        return list(self._all(function))

    def _all(self, function: Function) -> Iterator[Event]:
        own = self.own(function)
        yield from (event for event in own if event.choice is None or not event.choice.calls)
        for one in function.code.instructions():
            if one[0] not in CALLING:
                continue
            yield from self.inside(function, one, self.deepest)

    def inside(self, function: Function, one: Instruction, deepest: int) -> Iterator[Event]:
        """The work and the waits of the functions that a call enters, at most so many calls deep."""
        seen = {function}
        for edge in self.transfer.edges(function, one):
            if edge.is_direct:
                yield from self._inside(edge.callee, (Site(function, one),), seen, deepest)

    def _inside(self, callee: Function, via: tuple[Site, ...], seen: set[Function], deepest: int) -> Iterator[Event]:
        if callee in seen or len(via) > deepest or len(seen) > _MOST_INSIDE:
            return
        seen.add(callee)
        under = {
            (event.instruction, _library(event))
            for event in self.own(callee)
            if event.choice is not None and not via_others(event.choice, via)
        }
        for event in self.own(callee):
            library = _library(event)
            if (event.instruction, library) in under and event.choice is not None and event.choice.how == OMITTED:
                continue  # it works on the stream that the caller has made current for its library
            for choice in dict.fromkeys(self._chooser_of(callee, via, event.choice, "" if callee.is_cpp else library)):
                yield event._replace(instruction=via[0].instruction, via=via, choice=choice)
        for one in callee.code.instructions():
            for edge in self.transfer.edges(callee, one) if one[0] in CALLING else ():
                if edge.is_direct:
                    yield from self._inside(edge.callee, (*via, Site(callee, one)), seen, deepest)

    def _current(self, via: tuple[Site, ...], choice: Choice, library: str) -> Iterator[Choice]:
        """The stream that a caller has made the current one of a library; the choice as it is where none has."""
        for site in reversed(via):
            stream = self.choices.currents.of_library(site.function, site.instruction, library)
            if stream is not None and stream.register >= 0:
                yield from self.choices.of_register(site.function, stream.register, site)
                return
        yield choice

    def _chooser_of(self, callee: Function, via: tuple[Site, ...], choice: Choice | None, library: str) -> Iterator[Choice | None]:
        """Who chose the stream that Cython hands to a function of C++, or that is current for a library of Python."""
        helped = self._given_back(callee, via, choice) if choice is not None and choice.kind == HELD and library else None
        if helped is not None:
            yield helped
            return
        if choice is not None and library and _is_left_open(choice):
            yield from self._current(via, choice, "torch" if choice.kind == AMBIENT else library)
            return
        caller, call = via[-1].function, via[-1].instruction
        if choice is None or choice.calls or choice.kind != PARAMETER or choice.place is None or caller.is_cpp or not callee.is_cpp:
            yield from self._outward(callee, via, len(via) - 1, choice) if choice is not None else (None,)
            return
        given = given_to(caller, call, callee, int(str(choice.place.root[1])))
        for each in self.choices.of_register(caller, given, via[-1], (), False) if given is not None and given >= 0 else ():
            yield from self._outward(caller, via, len(via) - 2, each) if each.kind == PARAMETER else (each,)

    def _given_back(self, callee: Function, via: tuple[Site, ...], choice: Choice) -> Choice | None:
        """Python: the stream that a helper gives back to the calls on a way: the null stream where no other one is handed in."""
        place = choice.place
        if place is None or place.root[0] != "register" or place.path or choice.at.function is not callee:
            return None
        values = self.carriers.values(callee, int(str(place.root[1])), context_of(callee, via))
        kinds = {kind_of(value) for value in values if isinstance(value, LibraryObject)}
        if any(not isinstance(value, LibraryObject) for value in values) or kinds not in ({NULL}, {MADE}):
            return None
        made = frozenset(value for value in values if isinstance(value, LibraryObject) and kinds == {MADE})
        return choice._replace(kind=kinds.pop(), made=made)

    def _outward(self, callee: Function, via: tuple[Site, ...], place: int, choice: Choice) -> Iterator[Choice]:
        """A choice as the outermost caller has it; none that other calls have made."""
        if choice.calls:
            yield from () if via_others(choice, via) else (choice,)
            return
        held = self._in_member(via[place], choice) if place >= 0 else []
        for each in held:
            yield from self._outward(via[place].function, via, place - 1, each)
        if choice.kind == PARAMETER and choice.place is not None and place >= 0:
            yield from self._of_parameter(callee, via, place, choice.place)
        elif not held:
            yield choice._replace(calls=via[place + 1 :])

    def _of_parameter(self, callee: Function, via: tuple[Site, ...], place: int, known: Place) -> Iterator[Choice]:
        """What a call has given for a parameter, or for a member of it, as the outermost caller has it."""
        site, (root, path) = via[place], known
        if site.instruction[0] in (op.CALL, op.INVOKE) and not self.choices.fits(site.function, site.instruction, callee):
            return
        index = int(str(root[1]))
        given = given_to(site.function, site.instruction, callee, index)
        if given is None and not path and default_is_null(callee, index):
            yield Choice(NULL, "default", site, via[place:])
        elif given is not None and given >= 0:
            field = (self.choices.of_field(site.function, given, str(path[0]), site, (), False)) if path else None
            for each in field if field is not None else self.choices.of_register(site.function, given, site, (), False):
                yield from self._outward(site.function, via, place - 1, each)

    def _in_member(self, site: Site, choice: Choice) -> list[Choice]:
        """C++: what a caller has put into the member of an object that a method works on, where it has made that; nothing for others."""
        function, one, place = site.function, site.instruction, choice.place
        if choice.kind != HELD or place is None or one[0] != op.INVOKE or place.root != OWN.root or len(place.path) != 1:
            return []
        given, made = self.choices.fields.given(function, one[3], str(place.path[0])) if function.is_cpp else ([], None)
        return [
            each
            for value in given
            if value >= 0 and made is not None
            for each in self.choices.of_register(function, value, site, (), False)
        ]

    def own(self, function: Function) -> list[Event]:
        """The work and the waits of a function's own instructions, for each stream that they may mean."""
        found = self._own.get(function)
        if found is None:
            found = self._own[function] = []
            for one, work in self.launches.of(function):
                found += (Event(one, Site(function, one), work, choice) for choice in self.choices.of(function, one, work))
            names = self.transfer.names(WAITING)
            for opcode in (op.CALL, op.INVOKE):
                for one in function.by_opcode[opcode]:
                    if last_name(function, one) in names:
                        found += self._waits(function, one)
            for one in function.by_opcode[op.EXIT]:
                if any(True for _ in self.transfer.awaiting(function, one)):
                    found += self._waits(function, one)
        return found

    def _waits(self, function: Function, one: Instruction) -> Iterator[Event]:
        here = Site(function, one)
        for action in self.transfer.of(function, one):
            if isinstance(action, Synchronized):
                if isinstance(action.of, Stream) and action.of.register >= 0:
                    yield from (Event(one, here, None, choice) for choice in self.choices.of_register(function, action.of.register, here))
                elif isinstance(action.of, Stream) and action.of.kind == NULL:
                    yield Event(one, here, None, Choice(NULL, "given", here))
                else:
                    yield Event(one, here, None, None)

    # --- in which order

    def in_flight(self, function: Function, one: Instruction, counts: Callable[[Event], bool] = lambda event: True) -> list[Event]:
        """The work on other streams than the null stream that may be in flight at an instruction, of events that count."""
        found: list[Event] = []
        for event, choice in self._left(function):
            if event.instruction != one and counts(event):
                stops = self._stops(function, choice, event.instruction, one)
                if leads_to(function, event.instruction, one, stops):
                    found.append(event)
        return found

    def of_earlier_calls(self, function: Function, one: Instruction, counts: Callable[[Event], bool]) -> list[Event]:
        """The work of a function that may be in flight at an instruction of a later call: in a loop, or on another object."""
        found = [(event, choice) for event, choice in self._left(function) if counts(event)]
        return [event for event, choice in found if self._is_left(function, event.instruction, one, choice, self.deepest)]

    def _is_left(self, function: Function, work: Instruction, one: Instruction, choice: Choice, depth: int) -> bool:
        """Whether work of one call may be in flight at an instruction in the next one."""
        stops = self._stops(function, choice, work, one)
        first = next(function.code.instructions())
        is_left = any(leads_to(function, work, end, stops) for end in function.by_opcode[op.RETURN])
        if not is_left or (first != one and not leads_to(function, first, one, stops)):
            return False
        for caller, call in self.transfer.callers(function):
            if caller.is_repeated(call) and leads_to(caller, call, call, self._stops(caller, choice, call, call)):
                return True
            if self._runs_meanwhile(function, caller, call, choice) or (depth and self._is_left(caller, call, call, choice, depth - 1)):
                return True
        return False

    def _runs_meanwhile(self, function: Function, caller: Function, call: Instruction, choice: Choice) -> bool:
        """Whether a method is called on another object, which has a stream of its own, before the host waits for that of the first."""
        is_own = all(made.site is not None and made.site.function.owner is function.owner is not None for made in choice.made)
        calls = [one for each, one in self.transfer.callers(function) if each is caller and one[0] == op.INVOKE] if is_own else []
        place = self.choices.places.of(caller, call[3]) if call in calls else None
        others = [one for one in calls if place is not None and self.choices.places.of(caller, one[3]) != place]
        return any(leads_to(caller, call, one, self._stops(caller, choice, call, one)) for one in others)

    def _stops(self, function: Function, choice: Choice, work: Instruction, one: Instruction) -> frozenset[Instruction]:
        """The waits of a function behind which a stream has nothing in flight, on the way from its work to an instruction."""
        waits = [wait for wait in self._waits_of(function) if waits_for(wait, choice)]
        return self._stopping(function, choice, waits, work, one)

    def _stopping(
        self, function: Function, choice: Choice, waits: list[Event], work: Instruction, one: Instruction
    ) -> frozenset[Instruction]:
        """Those of the waits for a stream, of a function or as it sees them, behind which the stream has nothing in flight; of one of
        several, those in a loop of their own, which goes through them."""
        is_several = any(made.site is not None and self._makes_several(made.site, function) for made in choice.made)
        ends = [
            wait.instruction
            for wait in waits
            if wait.choice is None or not is_several or self._is_loop_of_its_own(function, wait.instruction, one)
        ]
        return frozenset(stop for wait in ends for stop in (wait, *self._rounds_of(function, wait, (work, one))))

    def _makes_several(self, site: Site, function: Function) -> bool:
        """Whether a place that makes a stream makes several: in a loop, or in another function than one that is asked for, which is called
        in a loop: the constructor of objects, or what makes them."""
        if site.function.is_repeated(site.instruction):
            return True
        callers = self.transfer.callers(site.function) if site.function is not function else ()
        return any(caller.is_repeated(call) for caller, call in callers)

    def _is_loop_of_its_own(self, function: Function, wait: Instruction, one: Instruction) -> bool:
        graph, homes = function.control, function.homes
        place = graph.innermost[homes[wait][0]]
        return place != NOBODY and homes[one][0] not in graph.loops[place].body

    def _rounds_of(self, function: Function, wait: Instruction, others: tuple[Instruction, ...]) -> Iterator[Instruction]:
        """The head of a loop over elements, without some instructions, that waits in each of its rounds: it is looked at as it runs."""
        graph, homes = function.control, function.homes
        place = graph.innermost[homes[wait][0]]
        loop = graph.loops[place] if place != NOBODY else None
        if loop is None or any(homes[one][0] in loop.body for one in others):
            return
        end = function.code.blocks[loop.header][-1]
        is_over_elements = end[0] == op.BRANCH and counts_rounds(function, unnegated(function, end[2])[0])
        if is_over_elements and all(graph.dominates(homes[wait][0], again) for again in loop.latches):
            yield end

    def behind(self, function: Function, one: Instruction, ends: Callable[[Event], bool] = lambda event: False) -> list[Event]:
        """The work on other streams that is queued behind an instruction before the host waits for the device, or what else ends it."""
        stops = self._ends(function, ends)
        return [event for event, _ in self._others(function) if leads_to(function, one, event.instruction, stops)]

    def is_left(self, function: Function, one: Instruction, ends: Callable[[Event], bool]) -> bool:
        """Whether a function may return behind an instruction before the host waits for the device, or what else ends it."""
        stops = self._ends(function, ends)
        return any(leads_to(function, one, end, stops) for end in function.by_opcode[op.RETURN])

    def _ends(self, function: Function, ends: Callable[[Event], bool]) -> frozenset[Instruction]:
        return frozenset(event.instruction for event in self.events(function) if _is_device_wait(event) or ends(event))

    def before(self, function: Function, one: Instruction) -> list[Event]:
        """All that may come before an instruction."""
        return [event for event in self.events(function) if event.instruction != one and leads_to(function, event.instruction, one)]

    def _waits_of(self, function: Function) -> list[Event]:
        return self._sorted(function)[0]

    def _others(self, function: Function) -> list[tuple[Event, Choice]]:
        """The work on other streams than the null stream."""
        return self._sorted(function)[1]

    @memoized
    def _left(self, function: Function) -> list[tuple[Event, Choice]]:
        """The work on other streams that may still run when the call is over that leads to it: none that the host has waited for within."""
        return [each for each in self._others(function) if not self._is_over_within(function, *each)]

    def _is_over_within(self, function: Function, event: Event, choice: Choice) -> bool:
        """Whether one of the functions that a call enters on the way to work waits for it, on all ways on to its end."""
        waits = [wait for wait in self._waits_of(function) if wait.via[:1] == event.via[:1] and waits_for(wait, choice)]
        return bool(event.via and waits) and any(self._waits_within(event, choice, waits, depth) for depth in range(1, len(event.via) + 1))

    def _waits_within(self, event: Event, choice: Choice, waits: list[Event], depth: int) -> bool:
        """The same of the function that the first calls on the way enter, so many of them."""
        work = _place_at(event, depth)
        inner = work.function
        along = ((wait, _place_at(wait, depth)) for wait in waits if wait.via[:depth] == event.via[:depth])
        near = [wait._replace(instruction=at.instruction) for wait, at in along if at.function is inner]  # a call may enter others, too
        ends = [wait for wait in near if wait.instruction != work.instruction]
        return bool(ends) and not any(
            leads_to(inner, work.instruction, end, self._stopping(inner, choice, ends, work.instruction, end))
            for end in inner.by_opcode[op.RETURN]
        )

    @memoized
    def _sorted(self, function: Function) -> tuple[list[Event], list[tuple[Event, Choice]]]:
        events = self.events(function)
        others = [(event, event.choice) for event in events if event.work is not None and event.choice is not None]
        waits = [event for event in events if event.work is None]
        return waits, [(event, choice) for event, choice in others if choice.kind != NULL]


def _is_device_wait(event: Event) -> bool:
    return event.work is None and event.choice is None


def waits_for(wait: Event, choice: Choice) -> bool:
    """Whether a wait of the host waits for a stream."""
    if wait.choice is None:
        return True
    if wait.choice.kind == choice.kind == MADE:
        return bool(wait.choice.made & choice.made)
    return wait.choice.key == choice.key or wait.choice.kind == "held"


def context_of(callee: Function, via: tuple[Site, ...]) -> Context:
    """The functions that some calls enter, up to the one that the last call does, each with the call."""
    callees = [*(site.function for site in via[1:]), callee]
    return tuple((entered, Site(*site)) for entered, site in zip(callees, via, strict=False))


def via_others(choice: Choice, via: tuple[Site, ...]) -> bool:
    """Whether other calls than those on a way have made a choice, or none has."""
    return choice.calls[:1] == () or choice.calls[0] not in via


def _place_at(event: Event, depth: int) -> Site:
    """Where an event stands in the function that the first calls on the way to it enter, so many of them."""
    return event.via[depth] if depth < len(event.via) else event.at


def _is_left_open(choice: Choice) -> bool:
    """Whether work goes to the stream that is current where its function is called."""
    return choice.kind == AMBIENT or (choice.kind == NULL and choice.how == OMITTED)


def _library(event: Event) -> str:
    """The library of what works."""
    return event.work.library if event.work is not None else ""
