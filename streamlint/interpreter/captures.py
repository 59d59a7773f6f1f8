"""Stream capture on one path: which streams are in it, how they forked and joined, and which operations it refuses.

What is refused is CUDA's answer as ``cuda_model.capture`` and its facts have it; what PyTorch refuses by itself is said where it is asked.
What is not known falls towards silence: a stream from out of view may be in the capture, code out of view may have joined a fork.
"""

from __future__ import annotations

import itertools

from streamlint import operations as ops
from streamlint.cuda_model.capture import Capture, Mode, Status, null_stream_refused, unsafe_calls_refused
from streamlint.cuda_model.clocks import Clock, Stamp, covers
from streamlint.findings import Step
from streamlint.interpreter.values import Event, ScopeValue, Stream, Value
from streamlint.operations import Direction, Memory, Refusal
from streamlint.record import field, record

_HOST = 0  # the thread of a root


@record(eq=False, slots=True)
class CaptureScope(ScopeValue):
    """``with torch.cuda.graph(…)``, before it is entered."""

    mode: Mode | None = Mode.GLOBAL


@record(eq=False, slots=True)
class Session:
    """One capture sequence. A ``mode`` that is not known forbids as little as a relaxed one."""

    capture: Capture
    origin: Stream
    step: Step
    library: str
    depth: int = 0  # of calls in progress where it began
    streams: dict[str, Stream] = field(default_factory=dict)
    events: dict[int, Clock] = field(default_factory=dict)  # recorded in it, by identity
    work: list[tuple[ops.Work, Stamp]] = field(default_factory=list)
    outside: set[str] = field(default_factory=set)  # streams whose work beside the capture was refused already
    results: list[Value] = field(default_factory=list)  # of values from out of view that were called in it: modules, as a rule

    def join(self, stream: Stream, clock: Clock) -> None:
        """A stream waits for work of the capture: from now on it is in it."""
        self.streams[stream.key] = stream
        self.capture.blocking = self.capture.blocking or bool(stream.blocking)
        self.capture.clocks.wait(stream.key, clock)

    def assume_joined(self, key: str) -> None:
        """A stream is behind all that the capture holds, as far as is known."""
        for clock in list(self.capture.clocks.streams.values()):
            self.capture.clocks.wait(key, clock)


class Captures:
    """The captures of a path. The machine asks it about each operation; what it takes is recorded into a graph, and does not run."""

    def __init__(self) -> None:
        self.active: list[Session] = []
        self._dead: dict[int, Session] = {}  # events last recorded in a capture that has ended
        self._used: set[str] = set()  # streams with work in view
        self._numbers = itertools.count(1)

    @property
    def idle(self) -> bool:
        """Whether no capture was begun so far."""
        return not self.active and not self._dead

    @property
    def step(self) -> Step | None:
        return self.active[-1].step if self.active else None

    # --- begin and end ---------------------------------------------------------------------------------------------------------------

    def begin(self, origin: Stream, mode: Mode | None, step: Step, library: str, depth: int = 0) -> Session:
        """Capture a stream from now on."""
        if origin.kind in ("null", "ambient"):
            # The null stream cannot be captured: whoever called has put another one there.
            origin = Stream(f"captured{next(self._numbers)}", "created", None, origin.library, origin.type)
        state = Capture(origin.key, mode or Mode.RELAXED, _HOST, bool(origin.blocking))
        session = Session(state, origin, step, library, depth, {origin.key: origin})
        self.active.append(session)
        return session

    def relax(self) -> None:
        """The thread may make unsafe calls from now on (``cudaThreadExchangeStreamCaptureMode``)."""
        for session in self.active:
            session.capture.mode = Mode.RELAXED

    def end(self, stream: Stream | None = None, regular: bool = True) -> None:
        """End the capture of a stream, else the latest; forks that were not joined are refused then, unless an exception ends it."""
        session = (self.of(stream) if stream is not None else None) or (self.active[-1] if self.active else None)
        if session is None:
            return
        self.active.remove(session)
        self._dead.update(dict.fromkeys(session.events, session))
        if not regular:
            return
        behind = session.capture.clocks.of(session.origin.key)
        told: set[str] = set()
        for operation, stamp in session.work:
            if stamp.stream != session.origin.key and stamp.stream not in told and not covers(behind, stamp) and operation.refused is None:
                told.add(stamp.stream)
                fork = session.streams[stamp.stream]
                operation.refused = Refusal("unjoined", Status.UNJOINED, session.step, fork.trail, session.depth)

    def of(self, stream: Stream | None) -> Session | None:
        """The capture that a stream is in."""
        return next((s for s in self.active if stream is not None and stream.key in s.streams), None)

    # --- work ------------------------------------------------------------------------------------------------------------------------

    def takes(self, operation: ops.Work) -> bool:
        """Work goes into a graph, or is refused; False where it runs as ever."""
        stream = operation.stream
        if stream is not None:
            self._used.add(stream.key)
        if not self.active:
            return False
        session = self.of(stream)
        if session is not None and stream is not None:
            session.work.append((operation, session.capture.clocks.issue(stream.key)))
            self._judge_captured(operation, session)
            return True
        if stream is None or stream.kind not in ("null", "created", "ptds"):
            return True  # from out of view: it may be in the capture
        return self._beside(operation, stream)

    def _judge_captured(self, operation: ops.Work, session: Session) -> None:
        kind = ""
        if isinstance(operation, ops.Copy):
            kind = _copy_refused(operation)
        elif isinstance(operation, ops.Launch):
            kind = "graph-launch" if operation.kind == "graph" else "synchronize" if operation.host_waits else ""
        if kind:
            self._refuse(operation, kind, Status.UNSUPPORTED, session)

    def _beside(self, operation: ops.Work, stream: Stream) -> bool:
        if stream.kind == "null" and self._refuse_null(operation):
            return True
        session = self.active[-1]
        if not isinstance(operation, ops.Copy) and stream.library == session.library in ("torch", "cupy"):
            # Nobody means to run work once while it is being captured: the stream was not forked from the capture.
            session.outside.add(stream.key)
            self._refuse(operation, "outside", Status.ISOLATION, session, stream.trail)
        return False

    def _refuse_null(self, operation: ops.Operation) -> bool:
        """The null stream would wait for a blocking stream that is being captured."""
        held = [s for s in self.active if null_stream_refused([s.capture])]
        if held:
            self._refuse(operation, "null-stream", Status.IMPLICIT, held[-1], _made(held[-1]))
        return bool(held)

    # --- order -----------------------------------------------------------------------------------------------------------------------

    def records(self, event: Event | None, stream: Stream | None) -> bool:
        """An event is recorded: in a capture it becomes a part of it."""
        if event is None:
            return False
        self._dead.pop(id(event), None)
        for other in self.active:
            other.events.pop(id(event), None)
        session = self.of(stream)
        if session is not None and event.external:
            event.unknown = True
            return True
        if session is not None and stream is not None:
            event.unknown = False
            session.events[id(event)] = dict(session.capture.clocks.record(stream.key))
            return True
        if self.active and (stream is None or stream.kind not in ("null", "created", "ptds")):
            event.unknown = True
            return True
        return False

    def waits(self, operation: ops.Wait) -> bool:
        """A stream waits: a fork, a join, or one that is refused."""
        stream, on = operation.stream, operation.on
        dead = self._dead.get(id(on))
        if dead is not None and self.of(stream) is None:
            self._refuse(operation, "dead-event", Status.INVALID_VALUE, dead)
            return True
        if not self.active or stream is None:
            return False
        source = self._holding(on)
        session = self.of(stream)
        if session is None:
            if source is not None:
                source[0].join(stream, source[1])
            return source is not None
        if source is not None:
            session.capture.clocks.wait(stream.key, source[1])
        elif self._from_before(on):
            if not (isinstance(on, Stream) and on.key in session.outside):
                self._refuse(operation, "outside-wait", Status.ISOLATION, session)
        elif not isinstance(on, Event) or on.unknown:
            session.assume_joined(stream.key)
        return True

    def _holding(self, on: Event | Stream | None) -> tuple[Session, Clock] | None:
        for session in self.active:
            if isinstance(on, Stream) and on.key in session.streams:
                return session, session.capture.clocks.record(on.key)
            if isinstance(on, Event) and id(on) in session.events:
                return session, session.events[id(on)]
        return None

    def _from_before(self, on: Event | Stream | None) -> bool:
        """Whether what is awaited is surely no part of the capture. A stream without work in view has it from code out of view."""
        if isinstance(on, Event):
            return not on.unknown and on.recorded is not None
        return isinstance(on, Stream) and on.kind in ("null", "created", "ptds") and on.key in self._used

    def made(self, stream: Stream, guarded: bool) -> None:
        """A stream that is only made under a condition may be there already, and in the capture."""
        if self.active and guarded and stream.kind == "created":
            stream.kind = "foreign"

    def assume_awaited(self, value: Event | Stream) -> None:
        """Code out of view has a stream or an event: it may have joined it."""
        for session in self.active:
            if (isinstance(value, Stream) and value.key in session.streams) or id(value) in session.events:
                session.assume_joined(session.origin.key)

    # --- the host ----------------------------------------------------------------------------------------------------------------------

    def judge_host(self, operation: ops.Synchronize | ops.Query) -> None:
        """The host waits for or asks about a stream, an event or the device."""
        word = "synchronize" if isinstance(operation, ops.Synchronize) else "query"
        of = operation.of
        if id(of) in self._dead:
            self._refuse(operation, "dead-event", Status.INVALID_VALUE, self._dead[id(of)])
        if not self.active:
            return
        if of is None:
            self._refuse(operation, word, Status.UNSUPPORTED, self.active[-1])
        elif (held := self._holding(of)) is not None:
            status = Status.CAPTURED_EVENT if isinstance(of, Event) else Status.UNSUPPORTED
            self._refuse(operation, word, status, held[0])
        elif not (isinstance(of, Stream) and of.kind == "null" and self._refuse_null(operation)):
            self._refuse_unsafe(operation, word)

    def judge_memory(self, operation: ops.Alloc | ops.Free | ops.Register) -> None:
        """Memory comes from the driver, or goes back to it."""
        if not self.active:
            return
        if isinstance(operation, ops.Register):
            self._refuse_unsafe(operation, "register")
        elif operation.memory in (Memory.DEVICE, Memory.PINNED, Memory.MANAGED):
            if isinstance(operation, ops.Alloc):
                # torch's cache of pinned blocks asks their events before it hands one out.
                pinned = operation.cached and operation.memory is Memory.PINNED and operation.api == "torch"
                if not operation.cached or pinned:
                    self._refuse_unsafe(operation, "pin" if pinned else "allocate")
            elif operation.kind in ("free", "unregister") and not operation.cached:
                self._refuse_unsafe(operation, "free")

    def judge_callback(self, operation: ops.Callback) -> None:
        """``cudaStreamAddCallback`` cannot be captured; ``cudaLaunchHostFunc`` can."""
        session = self.of(operation.stream)
        if session is not None and operation.name.endswith(("AddCallback", "add_callback")):
            self._refuse(operation, "callback", Status.UNSUPPORTED, session)

    def _refuse_unsafe(self, operation: ops.Operation, kind: str) -> None:
        held = [s for s in self.active if unsafe_calls_refused([s.capture], _HOST)]
        if held:
            self._refuse(operation, kind, Status.UNSUPPORTED, held[-1])

    def _refuse(self, operation: ops.Operation, kind: str, status: Status, session: Session, trail: tuple[Step, ...] = ()) -> None:
        operation.refused = Refusal(kind, status, session.step, trail, session.depth)


def _made(session: Session) -> tuple[Step, ...]:
    blocking = [s for s in session.streams.values() if s.blocking]
    return tuple(Step(f"blocking stream: {step.message}", step.span) for s in blocking[:1] for step in s.trail[:1])


def _copy_refused(copy: ops.Copy) -> str:
    """Why a copy on a captured stream is refused: the host waits for it, or torch wants pinned memory; empty where it is captured."""
    device = copy.src if copy.direction is Direction.D2H else copy.dst
    host = copy.dst if copy.direction is Direction.D2H else copy.src
    if copy.direction not in (Direction.D2H, Direction.H2D) or device is None or not device.storage.on_device:
        return ""
    if copy.direction is Direction.H2D and (host is None or not host.storage.on_host):
        return ""  # perhaps on the device already
    if not copy.asked_async:
        return "copy"
    return "unpinned" if copy.api.startswith("torch") and copy.host_memory is Memory.PAGEABLE else ""


def mode_of(word: object) -> Mode | None:
    """A capture's mode as APIs spell it; None where it is not known."""
    text = str(word).lower().replace("_", "")
    found = {0: Mode.GLOBAL, 1: Mode.THREAD_LOCAL, 2: Mode.RELAXED}.get(word) if isinstance(word, int) else None
    return found or next((mode for mode in Mode if text.endswith(mode.value.lower())), None)
