"""The streams of a capture: which are in it, how they fork and join, and which events are recorded in it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from streamlint.cuda_model.capture import Status
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import External, LibraryObject, Object, Site, Unknown, given_in_view
from streamlint.facts.values.constructions import is_constructor
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.captures.capture_walk import ORIGIN, CaptureWalk
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.paths.on_path import as_passed
from streamlint.ordering.paths.states import State
from streamlint.ordering.places.flow import EVENT, STREAM, Tracked
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.bound_handles import Bound, Scopes
from streamlint.transfer import device
from streamlint.transfer.actions import CURRENT, NAMED, NULL, UNKNOWN, Stream
from streamlint.transfer.device import DeviceOperation
from streamlint.transfer.lifting import lifted

_CREATED = frozenset({"created", "blocking", "non-blocking"})
Places = tuple[Place, ...]
_NULL = frozenset({"null", "default"})


class CaptureStreams(CaptureWalk):
    """Follows a capture and its streams."""

    def _recorded(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        where, streams = self._where(state, one, operation.stream)
        events = self._places(state.frame.function, operation.of)
        kept = frozenset(held for held in state.tracked if not (held.place in events or _lane(held) in events))
        if where != "in" or self._is_external(state.frame.function, operation.of):
            return kept
        behind = {work_behind(held.place.root[2], event) for held in kept if _lane(held) in streams for event in events}
        return kept | {Tracked(EVENT, event) for event in events} | behind

    def _is_external(self, function: Function, register: int) -> bool:
        for value in self.transfer.values(function, register):
            site = value.site if isinstance(value, LibraryObject) else None
            if site is not None and site.instruction[0] == op.INVOKE:
                shape = site.instruction[5]
                names = site.function.unit.ir.constants[shape] if shape >= 0 else ()
                if "external" in (names or ()):
                    return True
        return False

    def _waited(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        """A stream waits for an event or a stream: a fork, a join, or one that is refused."""
        tracked = state.tracked
        where, waiting = self._where(state, one, operation.stream)
        is_event = self._is_event(state.frame.function, operation)
        source, sources = self._event(state, operation) if is_event else self._awaited(state, one, operation)
        if is_event and source == "out" and where == "in" and self._was_recorded(sources):
            self._refuse(state, one, operation, "outside-wait", Status.ISOLATION)
            return tracked
        is_open = source == "unknown" or (source == "out" and is_event and state.frame.function.is_cpp)  # recorded under another name
        if is_open and where == "in" and not any(place.root[1] == "site" for place in sources):
            return self._join(tracked, {held.place.root[2] for held in tracked if held.kind == "work"})
        is_known = where != "unknown" or (is_event and self._is_forked(state.frame.function, operation.stream))
        return self._behind_source(tracked, where, waiting, sources) if source == "in" and is_known else tracked

    def _behind_source(self, tracked: frozenset[Tracked], where: str, waiting: Places, sources: Places) -> frozenset[Tracked]:
        """A stream waits for an event or a stream of the capture: the captured one joins it, another one is a part of it from here on."""
        done = {held.place.root[2] for held in tracked if held.kind == "work" and _lane(held) in sources}
        return self._join(tracked, done) if where == "in" and ORIGIN in waiting else tracked | _forked(waiting, done)

    def _is_forked(self, function: Function, stream: Stream | None) -> bool:
        """C++: whether a stream that waits for an event of the capture is another one than the captured: no name of that has led to it, and
        null is at most what its name held before."""
        if not function.is_cpp or stream is None or stream.register < 0:
            return False
        values = self.transfer.values(function, stream.register)
        details = {value.detail if isinstance(value, LibraryObject) else CURRENT for value in values if not isinstance(value, Unknown)}
        is_named = all(place.root[0] in ("parameter", "global", "register") for place in self._places(function, stream.register))
        return is_named and CURRENT not in details and (not details or bool(details - _NULL))

    def _is_event(self, function: Function, operation: DeviceOperation) -> bool:
        """Whether a wait is for an event, by the values or by the name of the call."""
        return "event" in self.device.kinds(function, operation.of) or "vent" in operation.name

    def _event(self, state: State, operation: DeviceOperation) -> tuple[str, tuple[Place, ...]]:
        """Whether an event was recorded in the capture, and its names."""
        sources = self._places(state.frame.function, operation.of)
        return ("in" if any(held.kind == EVENT and held.place in sources for held in state.tracked) else "out"), sources

    def _awaited(self, state: State, one: Instruction, operation: DeviceOperation) -> tuple[str, tuple[Place, ...]]:
        """Whether a stream that is awaited is in the capture, and its names."""
        source, sources = self._where(state, one, Stream("named", operation.of, operation.library))
        return self._where(state, one, Stream(CURRENT, operation.of)) if source == "current" else (source, sources)

    def _join(self, tracked: frozenset[Tracked], sites: set[object]) -> frozenset[Tracked]:
        """The captured stream waits for work that was begun at some places."""
        self._joined |= sites  # type: ignore[arg-type]
        return frozenset(held for held in tracked if held.kind != "work" or held.place.root[2] not in sites)

    def _lost(self, state: State, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """Unknown code that is given a stream of the capture may have joined it."""
        function = state.frame.function
        if not any(held.kind == "work" for held in tracked) or one[0] not in (op.CALL, op.INVOKE):
            return tracked
        if self.transfer.edges(function, one) or any(True for _ in self.transfer.modelled(function, one)):
            return tracked
        given = one[6:] if one[0] == op.INVOKE else one[5:]
        lanes = {place for register in given if register >= 0 for place in self._places(function, register)}
        return self._join(tracked, {held.place.root[2] for held in tracked if held.kind == "work" and _lane(held) in lanes})

    def _where(self, state: State, one: Instruction, stream: Stream | None) -> tuple[str, tuple[Place, ...]]:
        """Where a stream is as the capture sees it: ``in``, ``out``, ``null``, or ``unknown``; and the places that name it."""
        if stream is None:
            return "unknown", ()
        function = state.frame.function
        if stream.kind == NULL:
            return "null", ()
        if stream.kind != CURRENT:
            return self._named(state, state.frame, stream.register)
        definition = function.definitions[stream.register] if stream.register >= 0 else None
        return self._ambient(state, definition if definition is not None and definition[0] in (op.CALL, op.INVOKE) else one)

    def _ambient(self, state: State, one: Instruction) -> tuple[str, tuple[Place, ...]]:
        """The current stream of an instruction: what scopes and calls in the region have chosen; else the captured one."""
        capture = self._capture
        frame: Frame | None = state.frame
        while frame is not None:
            chosen = self.currents.at(frame.function, one)
            if frame.function is capture.begin.function and chosen == self.currents.at(frame.function, capture.begin.instruction):
                break
            if chosen is not None and self._is_entered(frame.function, chosen):
                break
            if chosen is not None and chosen.kind != UNKNOWN:  # what the methods of an object have set is seen on the way
                return self._named(state, frame, chosen.register) if chosen.kind == NAMED else ("null", ())
            if (bound := self._bound(frame.function, chosen)) is not None:
                return self._named(state, Frame(bound.function, None, None, 0), bound.register)
            if frame.call is None:
                break
            one, frame = frame.call, frame.caller
        return self._set_before(state)

    @cached_property
    def _scopes(self) -> Scopes:
        return Scopes(self.transfer, self.places, self.currents)

    def _bound(self, function: Function, chosen: Stream | None) -> Bound | None:
        """The stream that a context manager of the program makes current, where it is known where that was made."""
        bound = self._scopes.of(function, chosen.register) if chosen is not None and chosen.register >= 0 else None
        begins = {place.function for place in lifted(self.transfer, self._capture.begin)}
        is_own = bound is not None and bound.function in begins  # who enters it begins the capture
        sites = self._places(bound.function, bound.register) if bound is not None and not is_own else ()
        return bound if any(place.root[:2] == ("global", "site") for place in sites) else None

    def _is_entered(self, function: Function, chosen: Stream) -> bool:
        """Whether a stream is current by a context manager of the program that begins the capture on it."""
        begins = {place.function for place in lifted(self.transfer, self._capture.begin)}
        entered = (function.definitions[one[3]] for one in function.by_opcode[op.ENTER] if one[3] >= 0)
        made = [one for one in entered if one is not None and one[0] in (op.CALL, op.INVOKE) and chosen.register in op.reads(one)]
        return any(callee in begins for one in made for callee, _ in self.currents.yielded(function, one))

    def _set_before(self, state: State) -> tuple[str, tuple[Place, ...]]:
        """The current stream that the path has set; else the captured one."""
        set_in = tuple(held.place for held in state.tracked if held.kind == "current")
        if set_in and not any(held.kind == STREAM and held.place in set_in for held in state.tracked):
            return ("out" if all(place.root[:2] == ("global", "site") for place in set_in) else "unknown"), set_in
        return "in", set_in or (ORIGIN,)

    def _named(self, state: State, frame: Frame, register: int) -> tuple[str, tuple[Place, ...]]:
        holder, passed = as_passed(self.transfer, frame, register)
        values = list(self.transfer.values(holder.function, passed)) if passed >= 0 else []
        places = _made(values) or self._places(frame.function, register)
        kinds = {held.kind for held in state.tracked if held.kind in ("origin", STREAM) and held.place in places}
        if kinds:
            return "in", (ORIGIN, *places) if "origin" in kinds else places
        values = given_in_view(value for value in values if not isinstance(value, External))  # a module's own class sets that attribute
        details = {value.detail if isinstance(value, LibraryObject) else None for value in values}
        if details == {CURRENT}:
            return "in", (ORIGIN,)
        if details and details <= _NULL:
            return "null", places
        return "out" if details and details <= _CREATED and all(map(self._is_new, values)) else "unknown", places

    def _is_new(self, value: Object) -> bool:
        """Whether it is known where a stream was made, and surely anew there."""
        site = getattr(value, "site", None)
        return site is not None and not self._is_guarded(site)

    def _is_guarded(self, site: Site) -> bool:
        """Whether a stream is only made under a condition, also by a helper: it may be there already, and in the capture."""
        begin = self._capture.begin.function
        for place in lifted(self.transfer, site):
            graph = place.function.control
            heads = {loop.header for loop in graph.loops}
            if any(by not in heads for by, _ in graph.controlled_by[place.function.homes[place.instruction][0]]):
                return True
            if place.function is begin or is_constructor(place.function):
                return False
        return False

    def _places(self, function: Function, register: int) -> tuple[Place, ...]:
        """What names a stream or an event: where it was made, or else the places that hold it."""
        values = self.transfer.values(function, register) if register >= 0 else ()
        return _made(values) or (self.places.names(function, register) if register >= 0 else ())

    def _was_recorded(self, events: tuple[Place, ...]) -> bool:
        """Whether an event was recorded before the capture began, in the function that begins it."""
        function, begin = self._capture.begin.function, self._capture.begin.instruction
        here = function.homes[begin]
        for opcode in (op.CALL, op.INVOKE):
            for one in function.by_opcode[opcode]:
                block, index = function.homes[one]
                is_before = index < here[1] if block == here[0] else function.control.dominates(block, here[0])
                for operation in self.device.of(function, one) if is_before else ():
                    if operation.kind == device.RECORD and set(self._places(function, operation.of)) & set(events):
                        return True
        return False


def work_behind(site: object, lane: Place) -> Tracked:
    """Work of a fork that a stream or an event is behind."""
    return Tracked("work", Place(("global", "work", site, lane)))


def _made(values: Iterable[Object]) -> Places:
    """Where streams or events were made."""
    sites = [value.site for value in values if isinstance(value, LibraryObject) and value.detail not in (CURRENT,)]
    return tuple(Place(("global", "site", site)) for site in sites if site is not None)


def _lane(held: Tracked) -> object:
    return held.place.root[3] if held.kind == "work" else None


def _forked(waiting: Iterable[Place], sites: set[object]) -> set[Tracked]:
    """What is tracked where streams are part of the capture from here on, behind work that was begun at some places."""
    return {Tracked(STREAM, lane) for lane in waiting} | {work_behind(site, lane) for site in sites for lane in waiting}
