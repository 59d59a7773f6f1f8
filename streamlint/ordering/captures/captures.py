"""SL013: what happens between the begin and the end of a stream capture, and which of it the capture does not take.

The pending operation is the capture. What is followed with it are the streams that are in it, the events recorded in it, the work of
forks that the captured stream is not behind yet, and what unknown modules have given: that is on the device where the capture is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.cuda_model.capture import Mode, Status
from streamlint.facts.code.functions import Function
from streamlint.facts.code.objects import Constant, LibraryObject, Memory, Site
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models.vocabulary import Selector
from streamlint.ordering.captures.capture_streams import CaptureStreams, work_behind
from streamlint.ordering.captures.capture_walk import ENDED, OPEN, ORIGIN, Capture, Refused
from streamlint.ordering.captures.pinning_loaders import PinningLoaders
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.places.flow import BUFFER, EVENT, LATE, STREAM, Tracked
from streamlint.ordering.places.places import Place, register_place
from streamlint.ordering.walk.walk import ORDERED
from streamlint.transfer import device
from streamlint.transfer.actions import CURRENT, Stream
from streamlint.transfer.device import DeviceOperation
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.processes import Processes
from streamlint.transfer.transfer import Transfer

_UNSAFE = {
    device.ALLOC: "allocate",
    device.FREE: "free",
    device.TRIM: "free",
    device.REGISTER: "register",
    device.UNREGISTER: "free",
    device.PIN: "pin",
}
_READ, _WRITTEN = "read by the graph", "written by the graph"
_LAUNCHES = frozenset({device.KERNEL, device.WORK, device.COMPUTE, "graph"})


class Captures(CaptureStreams):
    """Finds the captures of a program, and what they do not take."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.loaders = PinningLoaders(transfer)
        self.processes = Processes(transfer)
        self._body: Function | None = None

    def find(self) -> Iterator[Refused]:
        """What the captures of the program do not take."""
        for call in self.transfer.sites({"capture"}):
            part = call.row.get("part")
            for capture in self._captures(call) if part in ("scope", "begin") else ():
                yield from self._within(capture)
                yield from self._pinned_meanwhile(capture)
        for call in self.transfer.sites({"same"}, where=lambda row: row.get("captures") is not None):
            capture = Capture(Site(call.function, call.instruction), call, Mode.GLOBAL, op.NONE, False)
            for body in self._bodies(call):
                yield from self._within(capture, body)

    def _bodies(self, call: ModelledCall) -> Iterator[Function]:
        """The functions of the program that a call has captured: one, or those in a tuple that is written out."""
        for register in call.all("captures"):
            built = call.function.definitions[register] if register >= 0 else None
            for each in built[4:] if built is not None and built[0] == op.BUILD else (register,):
                yield from dict.fromkeys(self.processes.callables(call.function, each))

    def _pinned_meanwhile(self, capture: Capture) -> Iterator[Refused]:
        """A thread of a loader pins memory while everybody's unsafe calls are forbidden."""
        site, row = capture.begin, capture.call.row
        if capture.mode is Mode.GLOBAL and row.library == "torch":
            for loader in self.loaders.around(site.function, site.instruction):
                operation = DeviceOperation(device.PIN, capture.call.name, row.library, memory="pinned")
                yield Refused(capture, operation, site, (), "pinning-thread", Status.INVALIDATED, 0, loader)
                return

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

    def _within(self, capture: Capture, body: Function | None = None) -> Iterator[Refused]:
        """What a capture does not take; of one that is handed the code to run, ``body``."""
        self._capture, self._body = capture, body
        self._found, self._forked = {}, {}
        self._joined, self._left = set(), set()
        function, begin = capture.begin.function, capture.begin.instruction
        if body is not None:
            function, begin = body, next(body.code.instructions())
        tracked = {OPEN, Tracked(STREAM, ORIGIN)}
        if body is not None:  # its arguments are tensors of the device
            given = (one[2] for one in body.by_opcode[op.PARAM] if one[3] >= int(body.has_receiver))
            tracked |= {Tracked(BUFFER, place) for register in given for place in self.places.names(body, register)}
        register = self._stream_of(capture.call)
        if register >= 0:
            tracked |= {Tracked("origin", place) for place in self._places(function, register)}
        self.run(self.start(function, begin, frozenset(tracked), frozenset()))
        yield from self._found.values()
        refused = {each.site for each in self._found.values()}
        left = [self._forked[site] for site in self._forked if site in self._left - self._joined - refused]
        yield from {each.stream: each for each in reversed(left)}.values()

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        """The capture ends with the function that it runs."""
        return self._body is None and super().may_go_up(state, caller, call)

    def arrive(self, state: State, one: Instruction) -> Answer:
        function = state.frame.function
        if one[0] == op.EXIT and self._is_end(state, one):
            return self._end(state)
        if one[0] == op.EXIT:  # its end puts back what was current before
            return frozenset(held for held in state.tracked if held.kind != "current")
        if one[0] not in self.hooked:
            return None
        tracked = state.tracked
        if one[0] in (op.CALL, op.INVOKE):
            for call in self.transfer.modelled(function, one):
                if call.row.effect == "capture" and (answer := self._captured(state, call)) is not None:
                    return answer
                if call.row.effect == "set_stream" and (chosen := self._stream_of(call)) >= 0:
                    tracked = _current_at(tracked, self._places(function, chosen))
        for operation in self.device.of(function, one):
            if ENDED in tracked:
                tracked = self._behind(state, one, operation, tracked)
            else:
                tracked = self._of_device(state._replace(tracked=tracked), one, operation)
        return self._called(state._replace(tracked=tracked), one)

    def _called(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What a call in the capture means of which only its operands tell, and what its result is."""
        function, tracked = state.frame.function, state.tracked
        if ENDED in tracked:
            return tracked
        if one[0] in (op.CALL, op.INVOKE) and (self._is_foreign(state, one) or self.runs_module(function, one)):
            name = function.text(one[4]) if one[0] == op.INVOKE else function.dotted(one[3])
            tracked = self._worked(state, one, DeviceOperation(device.COMPUTE, name, "", Stream(CURRENT)))
        return self._lost(state, one, tracked | frozenset(self._results(state, one)))

    def _captured(self, state: State, call: ModelledCall) -> Answer:
        part = call.row.get("part")
        if part == "end" and self._capture.ends == op.NONE and ENDED not in state.tracked:
            return self._end(state)
        if part == "begin":
            return ORDERED  # a capture in a capture: its own streams are not distinguished
        if part == "asked" and ENDED not in state.tracked:
            return state.tracked | {Tracked(LATE, register_place(call.result))}
        if part == "relax":
            return state.tracked | {Tracked("relaxed", OPEN.place)}
        return None

    def _is_end(self, state: State, one: Instruction) -> bool:
        frame = state.frame
        if frame.caller is not None or ENDED in state.tracked:
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
        return frozenset({ENDED, *dead}) if dead else ORDERED

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

    def _of_device(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
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

    def _is_work(self, state: State, one: Instruction, operation: DeviceOperation, where: str, places: tuple[Place, ...]) -> bool:
        """Whether an operation is work of a device: a read or computation of what may be there, a copy that is one."""
        if operation.kind in (device.READ, device.COMPUTE) and not self._is_on_device(state, operation):
            is_outside = operation.kind == device.COMPUTE and ORIGIN not in places
            return is_outside and self.is_for_tensors(state.frame.function, one, operation)
        return operation.kind != device.COPY or where == "null" or self._is_copy(state, operation)

    def _worked(self, state: State, one: Instruction, operation: DeviceOperation) -> frozenset[Tracked]:
        """Work on a stream: in the capture, beside it, or on the null stream."""
        where, places = self._where(state, one, operation.stream)
        if not self._is_work(state, one, operation, where, places):
            return state.tracked
        if where == "in":
            refused = self._refused_work(state, operation)
            if refused:
                self._refuse(state, one, operation, refused, Status.UNSUPPORTED)
            elif operation.kind != device.READ and ORIGIN not in places:
                return self._forks(state, one, operation, places) | self._touched(state, one)
            return state.tracked | self._touched(state, one)
        if where == "null" and self._capture.is_blocking:
            self._refuse(state, one, operation, "null-stream", Status.IMPLICIT)
        elif where in ("out", "null") and operation.kind in _LAUNCHES and self._runs_outside(state, one, operation, where):
            self._refuse(state, one, operation, "outside", Status.ISOLATION)
            return state.tracked | {Tracked("outside", place) for place in places}
        return state.tracked

    def _runs_outside(self, state: State, one: Instruction, operation: DeviceOperation, where: str) -> bool:
        """Whether nobody means to run work once while it is being captured: of tensors, or of memory on which captured work depends."""
        library = operation.library or self._capture.call.row.library
        if library == self._capture.call.row.library and library in self._capture.call.facts.models.marked("tensors"):
            return True
        if where == "null" or operation.kind != device.KERNEL:
            return False
        mine = {(held.kind, held.place) for held in self._touched(state, one)}
        captured = {(held.kind, held.place) for held in state.tracked if held.kind in (_READ, _WRITTEN)}
        return any((_WRITTEN, place) in captured or (kind == _WRITTEN and (_READ, place) in captured) for kind, place in mine)

    def _touched(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """The memory that a kernel of C++ reads and writes."""
        function = state.frame.function
        if one[0] != op.LAUNCH:
            return frozenset()
        works = self.transfer.works(function, one)
        uses = [(_READ, each) for work in works for each in work.reads] + [(_WRITTEN, each) for work in works for each in work.writes]
        return frozenset(Tracked(kind, place) for kind, each in uses if each >= 0 for place in self.places.names(function, each))

    def _forks(self, state: State, one: Instruction, operation: DeviceOperation, places: tuple[Place, ...]) -> frozenset[Tracked]:
        """Work of a fork: the captured stream has to be behind it when the capture ends."""
        site = Site(state.frame.function, one)
        if site not in self._forked:
            self._forked[site] = self._refusal(state, one, operation, "unjoined", Status.UNJOINED)
        return state.tracked | {work_behind(site, place) for place in places}

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
            return (
                source is None
                or call is None
                or call.row.library in call.facts.models.marked("driver")
                or self._holds_device(state, source)
            )
        if call is None or call.row.library in call.facts.models.marked("driver"):
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


def mode_of(word: object) -> Mode:
    """A capture's mode as APIs spell it; relaxed where it is not known."""
    text = str(word).lower().replace("_", "")
    if isinstance(word, int):
        return {0: Mode.GLOBAL, 1: Mode.THREAD_LOCAL}.get(word, Mode.RELAXED)
    return next((mode for mode in Mode if text.endswith(mode.value.lower())), Mode.RELAXED)


def _current_at(tracked: frozenset[Tracked], places: Iterable[Place]) -> frozenset[Tracked]:
    """What is tracked where another stream is made current."""
    return frozenset(held for held in tracked if held.kind != "current").union(Tracked("current", place) for place in places)
