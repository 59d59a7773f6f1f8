"""SL013: what happens between the begin and the end of a stream capture, and which of it the capture does not take.

The pending operation is the capture. What is followed with it are the streams that are in it, the events recorded in it, the work of
forks that the captured stream is not behind yet, and what modules out of view have given: that is on the device where the capture is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.cuda_model.capture import Mode, Status
from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, External, LibraryObject, Memory, Site, Unknown
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.flow import BUFFER, EVENT, STREAM, Tracked
from streamlint.ordering.places import Place, register_place
from streamlint.ordering.walk import MOST_GUESSES, ORDERED, Frame, State, Walk
from streamlint.transfer import device
from streamlint.transfer.actions import CURRENT, NULL, Action, Stream, Viewed
from streamlint.transfer.device import DeviceOperation, DeviceOperations
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import CALLING, Transfer

_OPEN = Tracked("capture", Place(("global", "capture")))
"""The capture goes on."""
_ENDED = Tracked("ended", Place(("global", "capture")))
_ORIGIN = Place(("global", "origin"))
"""The captured stream, however it is called."""
_CREATED = frozenset({"created", "blocking", "non-blocking"})
_UNSAFE = {
    device.ALLOC: "allocate",
    device.FREE: "free",
    device.TRIM: "free",
    device.REGISTER: "register",
    device.UNREGISTER: "free",
    device.PIN: "pin",
}
_LAUNCHES = frozenset({device.KERNEL, device.WORK, device.COMPUTE, "graph"})
_RELEVANT = frozenset(
    "copy transfer move read launch memset compute synchronize query record wait alloc free trim register unregister pin factory callback "
    "capture stream set_stream scope".split()
)


class Capture(NamedTuple):
    """Where a capture begins, and how. ``ends`` is the register of the scope that ends it; NONE where a call does."""

    begin: Site
    call: ModelledCall
    mode: Mode
    ends: int
    is_blocking: bool


class Refused(NamedTuple):
    """An operation that a capture does not take, the calls in the region that lead to it, and why: ``kind`` as of `operations.Refusal`."""

    capture: Capture
    operation: DeviceOperation
    site: Site
    calls: tuple[Site, ...]
    kind: str
    status: Status
    doubts: int
    stream: Site | None = None


class Captures(Walk):
    """Finds the captures of a program, and what they do not take."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.device = DeviceOperations(transfer)
        self._capture: Capture
        self._found: dict[tuple[Site, tuple[Site, ...], str], Refused] = {}
        self._forked: dict[Site, Refused] = {}  # work of forks
        self._joined: set[Site] = set()
        self._left: set[Site] = set()
        self._matters: dict[Function, bool] = {}

    # --- captures

    def find(self) -> Iterator[Refused]:
        """What the captures of the program do not take."""
        for call in self.transfer.sites({"capture"}):
            part = call.row.get("part")
            for capture in self._captures(call) if part in ("scope", "begin") else ():
                yield from self._within(capture)

    def _captures(self, call: ModelledCall) -> Iterator[Capture]:
        function, one = call.function, call.instruction
        starts = [one]
        if call.row.get("part") == "scope":
            starts = [use for use in function.uses[one[2]] if use[0] == op.ENTER]
        blocking = call.row.library != "torch" and self._is_blocking(function, self._stream_of(call))
        for start in starts:
            ends = one[2] if call.row.get("part") == "scope" else op.NONE
            yield Capture(Site(function, start), call, self._mode(call), ends, blocking)

    def _stream_of(self, call: ModelledCall) -> int:
        held = call.row.get("stream")
        given = call.given(held) if isinstance(held, Selector) else None
        return op.NONE if given is None else given

    def _mode(self, call: ModelledCall) -> Mode:
        """The mode of a capture. One that is not known forbids as little as a relaxed one."""
        held = call.row.get("mode")
        register = call.given(held) if isinstance(held, Selector) else None
        if register is None:
            return mode_of(held.default) if isinstance(held, Selector) else Mode.GLOBAL
        words = [value.value if isinstance(value, Constant) else getattr(value, "name", None) for value in call.values(register)]
        words = words or [call.function.dotted(register)]
        modes = {mode_of(word) for word in words}
        return modes.pop() if len(modes) == 1 else Mode.RELAXED

    def _is_blocking(self, function: Function, register: int) -> bool:
        """Whether a stream is shown to take part in the null stream's barrier."""
        for value in self.transfer.values(function, register) if register >= 0 else ():
            if isinstance(value, LibraryObject) and value.site is not None:
                for made in self.transfer.modelled(value.site.function, value.site.instruction):
                    if made.row.effect == "stream":
                        return self._makes_blocking(made)
        return False

    def _makes_blocking(self, made: ModelledCall) -> bool:
        flags = made.row.get("flags")
        register = made.given(flags) if isinstance(flags, Selector) else None
        if register is not None:
            return made.word(register) == "blocking"
        return made.switch("blocking")[1] is True

    # --- one capture

    def _within(self, capture: Capture) -> Iterator[Refused]:
        self._capture = capture
        self._found, self._forked = {}, {}
        self._joined, self._left = set(), set()
        function, begin = capture.begin.function, capture.begin.instruction
        tracked = {_OPEN, Tracked(STREAM, _ORIGIN)}
        register = self._stream_of(capture.call)
        if register >= 0:
            tracked |= {Tracked("origin", place) for place in self._places(function, register)}
        self.run(self.start(function, begin, frozenset(tracked), frozenset()), lambda state, one, action: None)
        yield from self._found.values()
        told: set[Site | None] = set()
        for site, refused in self._forked.items():
            if site in self._left - self._joined and site not in {each.site for each in self._found.values()}:
                if refused.stream not in told:
                    told.add(refused.stream)
                    yield refused

    def arrive(self, state: State, one: Instruction) -> str | frozenset[Tracked] | None:
        function = state.frame.function
        if one[0] == op.EXIT:
            kept = frozenset(held for held in state.tracked if held.kind != "current")  # its end puts back what was current before
            return self._end(state) if self._is_end(state, one) else kept
        if one[0] not in CALLING and one[0] not in _OPERATING:
            return None
        tracked = state.tracked
        if one[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(function, one):
                if call.row.effect == "capture" and (answer := self._captured(state, call)) is not None:
                    return answer
                if call.row.effect == "set_stream" and (chosen := self._stream_of(call)) >= 0:
                    tracked = frozenset(held for held in tracked if held.kind != "current")
                    tracked |= {Tracked("current", place) for place in self._places(function, chosen)}
        for operation in self.device.of(function, one):
            if _ENDED in tracked:
                tracked = self._behind(state, one, operation, tracked)
            else:
                tracked = self._judge(state._replace(tracked=tracked), one, operation)
        if _ENDED not in tracked:
            state = state._replace(tracked=tracked)
            if one[0] in (op.CALL, op.INVOKE) and self._is_foreign(state, one):
                name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3])
                tracked = self._worked(state, one, DeviceOperation(device.COMPUTE, name, "", Stream(CURRENT)))
            tracked |= frozenset(self._results(state, one))
            tracked = self._lost(state, one, tracked)
        return tracked

    def _captured(self, state: State, call: ModelledCall) -> str | frozenset[Tracked] | None:
        part = call.row.get("part")
        if part == "end" and self._capture.ends == op.NONE and _ENDED not in state.tracked:
            return self._end(state)
        if part == "begin":
            return ORDERED  # a capture in a capture: its own streams are not told apart
        if part == "relax":
            return state.tracked | {Tracked("relaxed", _OPEN.place)}
        return None

    def _is_end(self, state: State, one: Instruction) -> bool:
        frame = state.frame
        if frame.caller is not None or _ENDED in state.tracked:
            return False
        if not state.path:
            return frame.function is self._capture.begin.function and one[3] == self._capture.ends
        entered = state.path[-1]
        return one[3] == (entered[3] if entered[0] == op.ENTER else entered[2])

    def _end(self, state: State) -> str | frozenset[Tracked]:
        """The capture ends: events that were recorded in it are of no use any more, work of forks must have been joined."""
        for held in state.tracked:
            if held.kind == "work":
                self._left.add(held.place.root[2])  # type: ignore[arg-type]
        dead = {held._replace(kind="dead") for held in state.tracked if held.kind == EVENT}
        return frozenset({_ENDED, *dead}) if dead else ORDERED

    def _behind(self, state: State, one: Instruction, operation: DeviceOperation, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """Behind the end of the capture."""
        if operation.of < 0 or operation.kind not in (device.SYNCHRONIZE, device.QUERY, device.WAIT, device.RECORD):
            return tracked
        places = self._places(state.frame.function, operation.of)
        dead = {held for held in tracked if held.kind == "dead" and held.place in places}
        if dead and operation.kind == device.RECORD:
            return tracked - dead
        if dead:
            self._refuse(state, one, operation, "dead-event", Status.INVALID_VALUE)
        return tracked

    # --- operations

    def _judge(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        kind = operation.kind
        if kind in (device.SYNCHRONIZE, device.QUERY):
            self._host_waits(state, one, operation)
        elif kind in _UNSAFE:
            self._unsafe(state, one, operation)
        elif kind == device.RECORD:
            return self._recorded(state, one, operation)
        elif kind == device.WAIT:
            return self._waited(state, one, operation)
        elif kind == device.CALLBACK:
            if operation.name.endswith(("AddCallback", "add_callback")) and self._where(state, one, operation.stream)[0] == "in":
                self._refuse(state, one, operation, "callback", Status.UNSUPPORTED)
        elif kind in (device.READ, device.COPY, device.UPLOAD) or kind in _LAUNCHES:
            return self._worked(state, one, operation)
        return state.tracked

    def _host_waits(self, state: State, one: Instruction, operation: DeviceOperation) -> None:
        function, of = state.frame.function, operation.of
        is_query = operation.kind == device.QUERY
        kind = "query" if is_query else "synchronize"
        if operation.is_event:
            if not self.device.kinds(function, of):
                return
            if any(held.kind == EVENT and held.place in self._places(function, of) for held in state.tracked):
                self._refuse(state, one, operation, kind, Status.CAPTURED_EVENT)
            else:
                self._refuse_unsafe(state, one, operation, kind)
            return
        stream = operation.stream
        if stream is None and of >= 0:
            stream = Stream("named", of, operation.library)
        if stream is None:
            self._refuse(state, one, operation, kind, Status.UNSUPPORTED)
            return
        where = self._where(state, one, stream)[0]
        if where == "in":
            self._refuse(state, one, operation, kind, Status.UNSUPPORTED)
        elif where == "unknown" and not self.device.kinds(function, of):
            return
        elif where == "null" and self._capture.is_blocking:
            self._refuse(state, one, operation, "null-stream", Status.IMPLICIT)
        else:
            self._refuse_unsafe(state, one, operation, kind)

    def _unsafe(self, state: State, one: Instruction, operation: DeviceOperation) -> None:
        kind = operation.kind
        if kind == device.PIN:
            values = list(self.transfer.values(state.frame.function, operation.of)) if operation.of >= 0 else []
            if values and all(isinstance(value, Memory) and value.pinning == "pinned" for value in values):
                return
        elif operation.cached or (kind == device.FREE and operation.name.startswith("py")):
            return
        self._refuse_unsafe(state, one, operation, _UNSAFE[kind])

    def _worked(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        """Work on a stream: in the capture, beside it, or on the null stream."""
        function = state.frame.function
        where, places = self._where(state, one, operation.stream)
        if operation.kind in (device.READ, device.COMPUTE) and not self._is_on_device(state, operation):
            is_work = operation.kind == device.COMPUTE and _ORIGIN not in places and self._is_for_tensors(function, one, operation)
            if not is_work:
                return state.tracked
        if operation.kind == device.COPY and where != "null" and not self._is_copy(state, operation):
            return state.tracked
        if where == "in":
            refused = self._refused_work(state, operation)
            if refused:
                self._refuse(state, one, operation, refused, Status.UNSUPPORTED)
            elif operation.kind != device.READ and _ORIGIN not in places:
                return self._forks(state, one, operation, places)
        elif where == "null" and self._capture.is_blocking:
            self._refuse(state, one, operation, "null-stream", Status.IMPLICIT)
        elif where in ("out", "null") and operation.kind in _LAUNCHES and _runs_beside(self._capture, operation):
            self._refuse(state, one, operation, "outside", Status.ISOLATION)
            return state.tracked | {Tracked("outside", place) for place in places}
        return state.tracked

    def _is_for_tensors(self, function: Function, one: Instruction, operation: DeviceOperation) -> bool:
        """Whether an operation on values of which nothing is known is one of tensors: a function of the library, or a matrix product."""
        if operation.call is None:
            return one[0] == op.BINARY and function.text(one[3]) == "@"
        if operation.call.row.library not in ("torch", "cupy") or (one[0] == op.INVOKE and self._is_value(function, one[3])):
            return False
        return True

    def _is_value(self, function: Function, register: int) -> bool:
        return not any(isinstance(value, External) for value in self.transfer.values(function, register))

    def _forks(self, state: State, one: Instruction, operation: DeviceOperation, places: tuple[Place, ...]) -> frozenset[Tracked]:
        """Work of a fork: the captured stream has to be behind it when the capture ends."""
        site = Site(state.frame.function, one)
        if site not in self._forked:
            self._forked[site] = self._refusal(state, one, operation, "unjoined", Status.UNJOINED)
        return state.tracked | {_work(site, place) for place in places}

    def _refused_work(self, state: State, operation: DeviceOperation) -> str:
        """Why work on a captured stream is refused: the host waits for it, or PyTorch wants pinned memory."""
        if operation.kind in (device.READ, device.UPLOAD):
            return "copy"
        if operation.kind == "graph":
            return "graph-launch"
        if operation.kind == device.COPY:
            if operation.asynchronous is False:
                return "copy"
            return "unpinned" if operation.library == "torch" and self._is_pageable(state, operation) else ""
        return "synchronize" if operation.waits and operation.kind == device.WORK else ""

    def _is_copy(self, state: State, operation: DeviceOperation) -> bool:
        """Whether a copy goes between the host and a device for sure."""
        if operation.direction not in ("d2h", "h2d"):
            return False
        function = state.frame.function
        call = operation.call
        source = call.one("src") if call is not None and call.row.effect == "copy" else operation.needs[1] if operation.needs else None
        if call is not None and call.row.effect != "copy" and source is None:
            source = call.one("of", call.receiver)
        if operation.direction == "d2h":
            return source is None or call is None or call.row.library.startswith("cuda") or self._holds_device(state, source)
        if call is None or call.row.library.startswith("cuda"):
            return True
        held = self.transfer.values(function, source) if source is not None else ()
        return any(isinstance(value, Memory) and value.space == "host" for value in held)

    def _is_pageable(self, state: State, operation: DeviceOperation) -> bool:
        call = operation.call
        if call is None:
            return False
        key = "dst" if operation.direction == "d2h" else "src"
        host = call.one(key) if call.row.effect == "copy" else call.one("of", call.receiver)
        held = (
            [value for value in self.transfer.values(state.frame.function, host or 0) if isinstance(value, Memory)]
            if host is not None
            else []
        )
        return operation.direction == "h2d" and bool(held) and all(value.pinning == "pageable" for value in held)

    def _is_on_device(self, state: State, operation: DeviceOperation) -> bool:
        if operation.needs is None:
            return True
        return any(self._holds_device(state, register) for register in operation.needs if register >= 0)

    def _holds_device(self, state: State, register: int) -> bool:
        function = state.frame.function
        if self.device.on_device(function, register):
            return True
        places = self.places.names(function, register)
        return any(held.kind == BUFFER and held.place in places for held in state.tracked)

    def _results(self, state: State, one: Instruction) -> Iterator[Tracked]:
        """What a value from out of view gives that is called in the capture is on the device, and so is what is computed of it."""
        function = state.frame.function
        if not op.DEFINES[one[0]]:
            return
        held = [buffer for buffer in state.tracked if buffer.kind == BUFFER]
        if one[0] in (op.CALL, op.INVOKE) and self._is_foreign(state, one):
            yield Tracked(BUFFER, register_place(one[2]))
        elif held and any(operation.kind == device.COMPUTE for operation in self.device.of(function, one)):
            if any(self._holds_device(state, register) for register in op.reads(one)):
                yield Tracked(BUFFER, register_place(one[2]))
        elif held:
            for action in self.transfer.of(function, one):
                if isinstance(action, Viewed) and self._holds_device(state, action.register):
                    yield Tracked(BUFFER, register_place(one[2]))

    def _is_foreign(self, state: State, one: Instruction) -> bool:
        """Whether a value of which nothing is known is called with arguments, as modules are; or a method of what one has given."""
        function = state.frame.function
        if self.transfer.libraries(function, one) or self.transfer.edges(function, one):
            return False
        if any(True for _ in self.transfer.modelled(function, one)):
            return False
        called = self.facts.callees(function, one)
        if function.is_cpp:  # what else nothing is known of may be anything
            return any(self._holds_device(state, each) for register in op.reads(one) for each in _parts(function, register))
        is_given = len(one) > (6 if one[0] == op.INVOKE else 5) or self._holds_device(state, one[3])
        return is_given and all(isinstance(value, Unknown) and value.reason != "external" for value in called)

    # --- streams and events

    def _recorded(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        where, streams = self._where(state, one, operation.stream)
        events = self._places(state.frame.function, operation.of)
        kept = frozenset(held for held in state.tracked if not (held.place in events or _lane(held) in events))
        if where != "in" or self._is_external(state.frame.function, operation.of):
            return kept
        behind = {_work(held.place.root[2], event) for held in kept if _lane(held) in streams for event in events}
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
        function, tracked = state.frame.function, state.tracked
        where, waiting = self._where(state, one, operation.stream)
        of = operation.of
        if "event" in self.device.kinds(function, of) or "vent" in operation.name:
            sources = self._places(function, of)
            source = "in" if any(held.kind == EVENT and held.place in sources for held in tracked) else "out"
            if source == "out" and where == "in" and self._was_recorded(state, sources):
                self._refuse(state, one, operation, "outside-wait", Status.ISOLATION)
                return tracked
        else:
            source, sources = self._where(state, one, Stream("named", of, operation.library))
            source, sources = self._where(state, one, self._current(function, of)) if source == "current" else (source, sources)
        if source != "in":
            is_any = source == "unknown" and not any(place.root[1] == "site" for place in sources)
            return self._join_all(tracked) if is_any and where == "in" else tracked
        moved = {held for held in tracked if held.kind == "work" and _lane(held) in sources}
        if where == "in" and _ORIGIN in waiting:
            done = {held.place.root[2] for held in moved}
            self._joined |= done  # type: ignore[arg-type]
            return frozenset(held for held in tracked if held.kind != "work" or held.place.root[2] not in done)
        if where == "unknown":
            return tracked
        behind = {_work(held.place.root[2], lane) for held in moved for lane in waiting}
        return tracked | {Tracked(STREAM, lane) for lane in waiting} | behind

    def _join_all(self, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        work = {held for held in tracked if held.kind == "work"}
        self._joined |= {held.place.root[2] for held in work}  # type: ignore[misc]
        return tracked - work

    def _lost(self, state: State, one: Instruction, tracked: frozenset[Tracked]) -> frozenset[Tracked]:
        """Code out of view that is given a stream of the capture may have joined it."""
        function = state.frame.function
        if not any(held.kind == "work" for held in tracked) or one[0] not in (op.CALL, op.INVOKE):
            return tracked
        if self.transfer.edges(function, one) or any(True for _ in self.transfer.modelled(function, one)):
            return tracked
        given = one[6:] if one[0] == op.INVOKE else one[5:]
        lanes = {place for register in given if register >= 0 for place in self._places(function, register)}
        gone = {held for held in tracked if held.kind == "work" and _lane(held) in lanes}
        self._joined |= {held.place.root[2] for held in gone}  # type: ignore[misc]
        sites = {held.place.root[2] for held in gone}
        return frozenset(held for held in tracked if held.kind != "work" or held.place.root[2] not in sites)

    def _current(self, function: Function, register: int) -> Stream:
        return Stream(CURRENT, register)

    def _where(self, state: State, one: Instruction, stream: Stream | None) -> tuple[str, tuple[Place, ...]]:
        """Where a stream is as the capture sees it: ``in``, ``out``, ``null``, or ``unknown``; and the places that name it."""
        if stream is None:
            return "unknown", ()
        function = state.frame.function
        if stream.kind == NULL:
            return "null", ()
        if stream.kind != CURRENT:
            return self._named(state, function, stream.register)
        made = function.definitions[stream.register] if stream.register >= 0 else None
        return self._ambient(state, made if made is not None and made[0] in (op.CALL, op.INVOKE) else one)

    def _ambient(self, state: State, one: Instruction) -> tuple[str, tuple[Place, ...]]:
        """The current stream of an instruction: what scopes and calls in the region have chosen; else the captured one."""
        capture = self._capture
        frame: Frame | None = state.frame
        while frame is not None:
            chosen = self.currents.at(frame.function, one)
            if frame.function is capture.begin.function and chosen == self.currents.at(frame.function, capture.begin.instruction):
                break
            if chosen is not None:
                return self._named(state, frame.function, chosen.register) if chosen.kind == "named" else ("null", ())
            if frame.call is None:
                break
            one, frame = frame.call, frame.caller
        set_in = tuple(held.place for held in state.tracked if held.kind == "current")
        if set_in and not any(held.kind == STREAM and held.place in set_in for held in state.tracked):
            return ("out" if all(place.root[:2] == ("global", "site") for place in set_in) else "unknown"), set_in
        return "in", set_in or (_ORIGIN,)

    def _named(self, state: State, function: Function, register: int) -> tuple[str, tuple[Place, ...]]:
        places = self._places(function, register)
        if any(held.kind == "origin" and held.place in places for held in state.tracked):
            return "in", (_ORIGIN, *places)
        if any(held.kind == STREAM and held.place in places for held in state.tracked):
            return "in", places
        values = list(self.transfer.values(function, register)) if register >= 0 else []
        if values and all(isinstance(value, LibraryObject) and value.detail == CURRENT for value in values):
            return "in", (_ORIGIN,)
        if values and all(isinstance(value, LibraryObject) and value.detail in ("null", "default") for value in values):
            return "null", places
        made = [value.site for value in values if isinstance(value, LibraryObject) and value.detail in _CREATED]
        is_all = len(made) == len(values) and bool(made)
        return ("out" if is_all and not any(site is None or self._is_guarded(site) for site in made) else "unknown"), places

    def _is_guarded(self, site: Site) -> bool:
        """Whether a stream is only made under a condition: it may be there already, and in the capture."""
        block = self.home(site.function, site.instruction)[0]
        graph = self.control(site.function)
        heads = {loop.header for loop in graph.loops}
        return any(by not in heads for by, _ in graph.controlled_by[block])

    def _places(self, function: Function, register: int) -> tuple[Place, ...]:
        """What names a stream or an event: where it was made, or else the places that hold it."""
        values = self.transfer.values(function, register) if register >= 0 else ()
        sites = [value.site for value in values if isinstance(value, LibraryObject) and value.detail not in (CURRENT,)]
        made = tuple(Place(("global", "site", site)) for site in sites if site is not None)
        return made or (self.places.names(function, register) if register >= 0 else ())

    def _was_recorded(self, state: State, events: tuple[Place, ...]) -> bool:
        """Whether an event was recorded before the capture began, in the function that begins it."""
        function, begin = self._capture.begin.function, self._capture.begin.instruction
        here = self.home(function, begin)
        for opcode in (op.CALL, op.INVOKE):
            for one in function.by_opcode[opcode]:
                block, index = self.home(function, one)
                is_before = index < here[1] if block == here[0] else self.control(function).dominates(block, here[0])
                for operation in self.device.of(function, one) if is_before else ():
                    if operation.kind == device.RECORD and set(self._places(function, operation.of)) & set(events):
                        return True
        return False

    # --- refusals

    def _refuse_unsafe(self, state: State, one: Instruction, operation: DeviceOperation, kind: str) -> None:
        if self._capture.mode is not Mode.RELAXED and not any(held.kind == "relaxed" for held in state.tracked):
            self._refuse(state, one, operation, kind, Status.UNSUPPORTED)

    def _refuse(self, state: State, one: Instruction, operation: DeviceOperation, kind: str, status: Status) -> None:
        refused = self._refusal(state, one, operation, kind, status)
        key = refused.site, refused.calls, kind
        if state.doubts <= MOST_GUESSES and (key not in self._found or self._found[key].doubts > refused.doubts):
            self._found[key] = refused

    def _refusal(self, state: State, one: Instruction, operation: DeviceOperation, kind: str, status: Status) -> Refused:
        calls: list[Site] = []
        frame = state.frame
        while frame.caller is not None and frame.call is not None:
            if not calls and frame.function.code.kind == "lambda":
                pass
            calls.insert(0, Site(frame.caller.function, frame.call))
            frame = frame.caller
        handed = 0
        inner = [state.frame]
        while inner[0].caller is not None:
            inner.insert(0, inner[0].caller)
        for each in inner[1:]:
            if each.function.code.kind != "lambda":
                break
            handed += 1
        made = self._made(state, operation)
        return Refused(self._capture, operation, Site(state.frame.function, one), tuple(calls[handed:]), kind, status, state.doubts, made)

    def _made(self, state: State, operation: DeviceOperation) -> Site | None:
        if operation.stream is None or operation.stream.register < 0:
            return None
        values = self.transfer.values(state.frame.function, operation.stream.register)
        return next((value.site for value in values if isinstance(value, LibraryObject) and value.site is not None), None)

    # --- how the walk goes

    def _entered(self, state: State, one: Instruction, index: int) -> Iterator[State]:
        if one[0] == op.ENTER and state.path and state.frame.caller is None and one[3] == state.path[-1][2]:
            return  # its generator has just given the value
        yield from super()._entered(state, one, index)

    def _orders_inside(self, function: Function) -> bool:
        """Whether a function may hold what a capture has to do with, by itself or through what it calls."""
        found = self._matters.get(function)
        if found is None:
            self._matters[function] = False
            found = self._matters[function] = any(
                one[0] in _OPERATING or bool(self.device.of(function, one)) for one in function.code.instructions() if one[0] in _LOOKED_AT
            ) or any(
                edge.is_followed and self._orders_inside(edge.callee)
                for opcode in CALLING
                for one in function.by_opcode[opcode]
                for edge in self.transfer.edges(function, one)
            )
        return found

    def _may_order(self, state: State, block: int, join: int) -> bool:
        return False

    def done_where(self, state: State, condition: int) -> bool | None:
        """A question whether a capture goes on: it does."""
        function = state.frame.function
        one = function.definitions[condition] if condition >= 0 else None
        if one is None or _ENDED in state.tracked:
            return None
        if one[0] in (op.CALL, op.INVOKE):
            rows = [call.row for call in self.transfer.modelled(function, one)]
            return False if any(row.effect == "capture" and row.get("part") == "asked" for row in rows) else None
        if one[0] != op.COMPARE or function.text(one[3]) not in ("==", "!="):
            return None
        words = [word for side in one[4:6] if (word := self._word(function, side)) in ("captured", "not-captured")]
        if not words:
            return None
        holds = (words[0] == "captured") == (function.text(one[3]) == "==")
        return not holds

    def _word(self, function: Function, register: int) -> str:
        models = self.facts.cpp_models if function.is_cpp else self.facts.models
        for value in self.transfer.values(function, register):
            if isinstance(value, External) and (word := models.constants.get(value.name)) is not None:
                return word
        return models.constants.get(function.dotted(register), "")

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        return False


_OPERATING = frozenset({op.BRANCH, op.BINARY, op.INPLACE, op.UNARY, op.COMPARE, op.FORMAT, op.SET_ITEM, op.LAUNCH, op.ITEM})
_LOOKED_AT = _OPERATING | CALLING


def _parts(function: Function, register: int) -> tuple[int, ...]:
    """A register, and the elements of the list that it holds."""
    one = function.definitions[register]
    return (register, *one[4:]) if one is not None and one[0] == op.BUILD else (register,)


def _work(site: object, lane: Place) -> Tracked:
    """Work of a fork that a stream or an event is behind."""
    return Tracked("work", Place(("global", "work", site, lane)))


def _lane(held: Tracked) -> object:
    return held.place.root[3] if held.kind == "work" else None


def _runs_beside(capture: Capture, operation: DeviceOperation) -> bool:
    """Whether nobody means to run work once while it is being captured: the stream was not forked from the capture."""
    library = operation.library or capture.call.row.library
    return library == capture.call.row.library and library in ("torch", "cupy")


def mode_of(word: object) -> Mode:
    """A capture's mode as APIs spell it; relaxed where it is not known."""
    text = str(word).lower().replace("_", "")
    if isinstance(word, int):
        return {0: Mode.GLOBAL, 1: Mode.THREAD_LOCAL}.get(word, Mode.RELAXED)
    return next((mode for mode in Mode if text.endswith(mode.value.lower())), Mode.RELAXED)
