"""What the model says of a program: which calls return and which work ends while the gate is shut.

Outcomes are sets of words: ``h3`` call 3 returned, ``d3`` its work on the device ended, ``r3`` the query 3 said "ready", ``x3:900`` CUDA
refused it with that status. One thing alone is held, the gate; so whatever is behind it stays undone, and a thread that waits for it
never goes on. That makes the scheduler of threads and locks simple: a blocked thread is blocked for good, with its locks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from streamlint.cuda_model import FACTS, Clocks, Strength
from streamlint.cuda_model.capture import Status
from streamlint.cuda_model.clocks import NULL, Clock, Stamp, covers, join
from streamlint.cuda_model.effects import CAUGHT_UP_WITH, Effect, Lock, Locks, Scope, Work
from streamlint.cuda_model.memory import Direction, Memory
from streamlint.litmus.capture import Captures
from streamlint.litmus.program import Call, Program, device_of, home_of

Outcome = frozenset[str]
Strengths = dict[str, Strength]
# Whether an optional fact holds, for a call of the program (or, where it is an order, for the whole program).
Decide = Callable[[str, int], bool]
MOST_OUTCOMES = 4096
_STAGES = 2  # what peer copies without access go through, in turn
_BEHIND, _PERHAPS_BEHIND = "malloc-async-on-null-catches-up", "malloc-async-catches-up-beside-spare-memory"


def leaves_a_mark(call: Call) -> bool:
    """Whether one can see that its work ended: a kernel's or a host function's flag, or bytes in a host buffer."""
    download = call.effect.direction is Direction.D2H and call.effect.memory is not Memory.MANAGED
    return download or call.call in ("launch", "firstLaunch", "graphLaunch", "launchHostFunc", "launch.peer")


def strengths(turned: str = "") -> Strengths:
    """Every fact's strength; ``turned`` names one to turn round: what held holds no more, what did not does."""
    table = {name: fact.strength for name, fact in FACTS.items()}
    if turned:
        table[turned] = Strength.NEVER if table[turned] >= Strength.OBSERVED else Strength.GUARANTEED
    return table


def observed(program: Program, table: Strengths) -> Outcome:
    """The outcome that the model expects on the GPU."""
    return _Run(program, lambda fact, _call: table[fact] >= Strength.OBSERVED).outcome()


def can_be_held(program: Program, table: Strengths) -> bool:
    """Whether the gate stands outside of every capture: within one it might be captured, or refused."""
    run = _Run(program, lambda fact, _call: table[fact] >= Strength.OBSERVED)
    run.outcome()
    return not run.in_capture


def allowed(program: Program, table: Strengths) -> set[Outcome] | None:
    """Every outcome between guaranteed and may: each fact between them may hold or not, call by call. ``None``: too many to list."""
    found: set[Outcome] = set()
    script: list[bool] = []
    for _ in range(MOST_OUTCOMES):
        decisions: dict[tuple[str, int], bool] = {}

        def decide(fact: str, call: int, script: list[bool] = script, decisions: dict[tuple[str, int], bool] = decisions) -> bool:
            strength = table[fact]
            if strength in (Strength.NEVER, Strength.GUARANTEED):
                return strength is Strength.GUARANTEED
            key = (fact, call)
            if key not in decisions:
                decisions[key] = script[len(decisions)] if len(decisions) < len(script) else False
            return decisions[key]

        found.add(_Run(program, decide).outcome())
        script = list(decisions.values())
        while script and script[-1]:
            script.pop()
        if not script:
            return found
        script[-1] = True
    return None


def outside(program: Program, seen: Outcome, table: Strengths) -> bool:
    """Whether an outcome is none that the model allows. Where it allows too many to list, none is said to be outside."""
    possible = allowed(program, table)
    return possible is not None and seen not in possible


@dataclass
class _Holder:
    """A thread that will not go on: the locks that it keeps, by name."""

    thread: int
    locks: set[str]


@dataclass
class _Memory:
    """What an allocation on the null stream has to catch up with."""

    behind: str = ""  # the fact that says how surely it has to with blocking streams; empty: it has not
    freed: set[str] = field(default_factory=set)  # the streams that have freed
    spare: bool = False  # there is memory that the null stream may take as it is

    def note(self, call: Call, is_waited_for: bool) -> None:
        """Add a call; whether it is work of a blocking stream, or waits there, that the next allocation waits for."""
        work, on_null = call.effect.work, call.on_null
        synchronizes = call.call in ("streamSynchronize", "deviceSynchronize", "eventSynchronize")
        if on_null and work not in (Work.NONE, Work.WAIT):
            self.behind = self.behind and _PERHAPS_BEHIND
        elif is_waited_for:
            self.behind = _PERHAPS_BEHIND if self.spare else _BEHIND
        if call.call == "freeOrdered" or (on_null and work is Work.FREE) or (synchronizes and self.freed):
            self.spare = True
        elif work is Work.ALLOC:
            self.spare = False
        if work is Work.FREE:
            self.freed.add(call.clock)


@dataclass
class _Copies:
    """The copies so far."""

    peers: Clock = field(default_factory=dict)  # all between devices
    engines: dict[Direction, Clock] = field(default_factory=dict)  # those of each direction
    # Between devices through the host: those of each device's streams together, and each in their order.
    staging: dict[int, Clock] = field(default_factory=dict)
    staged: list[Clock] = field(default_factory=list)

    def add_peer(self, device: int, clock: Clock) -> None:
        """Add a copy between devices."""
        for later in (self.peers, self.staging.setdefault(device, {})):
            join(later, clock)
        self.staged.append(dict(clock))


@dataclass
class _Run:
    program: Program
    decide: Decide
    words: set[str] = field(default_factory=set)
    held: list[_Holder] = field(default_factory=list)
    blocked: set[int] = field(default_factory=set)
    events: dict[int, Clock] = field(default_factory=dict)
    gate: Stamp | None = None
    in_capture: bool = False
    memory: _Memory = field(default_factory=_Memory)
    copies: _Copies = field(default_factory=_Copies)
    origins: dict[int, int] = field(default_factory=dict)  # the device of each event's last record

    def outcome(self) -> Outcome:
        self.clocks = Clocks(self._blocking(), lambda fact: self.decide(fact, -1))
        self.captures = Captures(lambda fact: self.decide(fact, -1))
        for index, call in enumerate(self.program.calls):
            if call.thread not in self.blocked:
                self._call(index, call)
        return frozenset(self.words)

    def _blocking(self) -> set[str]:
        streams = {call.clock for call in self.program.calls if call.stream}
        if self.decide("null-barrier-holds-nonblocking", -1):
            return streams - {NULL, "q1"}
        per_thread = self.decide("per-thread-stream-is-blocking", -1)
        return {name for name in streams if name.startswith("b") or (per_thread and name.startswith("ptds"))}

    # --- one call ---------------------------------------------------------------------------------------------------------------------

    def _call(self, index: int, call: Call) -> None:
        if index == self.program.gate:
            self._shut_gate(call.clock)
        if call.captures and self._stuck(index, call):
            return
        if self._loads_first(call) and (self._stuck(index, call) or self._waits(index, call, {}, first=True)):
            return
        if self._locks_captured(call) and self._stuck(index, call):
            return
        # What else a capture takes or refuses needs no lock.
        status = self.captures.take(call, self.events)
        if status is None and self._is_foreign(index, call):
            status = str(int(Status.INVALID_HANDLE))
        if status is None:
            if self._stuck(index, call):
                return
            before = self._issue(index, call, call.effect)
            if self._waits(index, call, before, first=False):
                return
        elif status:
            self.words.add(f"x{index}:{status}")
        self.words.add(f"h{index}")

    def _shut_gate(self, stream: str) -> None:
        self.in_capture = self.captures.active
        work = Work.HOST_FUNCTION if self.program.kind == "hostgate" else Work.DEVICE
        self.gate = self.clocks.issue(stream, work)

    def _is_foreign(self, index: int, call: Call) -> bool:
        """Whether it records an event of the other device."""
        foreign = call.effect.work is Work.RECORD and call.event is not None and home_of(self.program.calls, call.event) != call.device
        return foreign and self.decide("record-needs-an-event-of-its-device", index)

    def _locks_captured(self, call: Call) -> bool:
        if call.captures or not call.effect.locks_captured:
            return False
        capture = self.captures.of(call.clock)
        return capture is not None and not capture.invalid

    def _loads_first(self, call: Call) -> bool:
        """Whether there is a kernel to load, before the call comes to its stream."""
        if call.captures or self.captures.forbids_null(call):
            return False
        capture = self.captures.of(call.clock) if call.effect.stream else None
        if capture is not None and capture.invalid:
            return False
        return any(wait.scope is Scope.DEVICE_FIRST for wait in call.effect.waits)

    def _waits(self, index: int, call: Call, before: Clock, *, first: bool) -> bool:
        """Whether the call does not return. ``first``: asks for what it waits for before it issues its work."""
        for wait in call.effect.waits:
            if (wait.scope is Scope.DEVICE_FIRST) is not first:
                continue
            if self._behind(self._awaited(wait.scope, call, before)) and self.decide(wait.fact, index):
                self.blocked.add(call.thread)
                self.held.append(_Holder(call.thread, self._keeps(index, call, call.effect)))
                return True
        return False

    def _behind(self, clock: Clock) -> bool:
        return self.gate is not None and covers(clock, self.gate)

    def _issue(self, index: int, call: Call, effect: Effect) -> Clock:
        """Put the call's work on its stream; returns the clock of what was before it."""
        stream = call.clock
        self._catch_up(call)
        if effect.work is Work.NONE:
            if call.call in ("streamQuery", "eventQuery"):
                clock = self.clocks.stream_work(stream) if call.call == "streamQuery" else self.events.get(call.event or 0, {})
                if not self._behind(clock):
                    self.words.add(f"r{index}")
            return {}
        if effect.work is Work.RECORD:
            self.events[call.event or 0] = self.clocks.record(stream)
            self.origins[call.event or 0] = call.device
        elif effect.work is Work.WAIT:
            self.clocks.wait(stream, self.events.get(call.event or 0))
        else:
            return self._run(index, call, effect)
        return {}

    def _catch_up(self, call: Call) -> None:
        """Note what the null stream's next allocation has to catch up with, and what comes after it."""
        work = call.effect.work
        is_blocking = call.clock in self.clocks.blocking and work in CAUGHT_UP_WITH
        self.memory.note(call, is_blocking and (work is not Work.WAIT or call.event in self.events))

    def _run(self, index: int, call: Call, effect: Effect) -> Clock:
        stream = call.clock
        if effect.work is Work.PEER:
            self._peer(index, call)
        if effect.work is Work.HOST_FUNCTION and self.gate is not None and self.program.kind == "hostgate" and index != self.program.gate:
            same = self.program.calls[self.program.gate].device == call.device
            if self.decide("host-functions-are-serialised" if same else "host-functions-wait-across-devices", index):
                self.clocks.of(stream)[self.gate.stream] = self.gate.tick
        direction = Direction.D2H if effect.work is Work.PEER and not self.program.access else effect.direction
        engine = self.copies.engines.setdefault(direction, {})
        if self._behind(engine) and self.decide("copies-of-a-direction-share-an-engine", index):
            join(self.clocks.of(stream), engine)
        self.clocks.issue(stream, effect.work)
        clock = self.clocks.of(stream)
        if direction in (Direction.H2D, Direction.D2H):
            join(engine, clock)
        if effect.work is Work.PEER:
            self.copies.add_peer(call.device, clock)
        before = {**clock, stream: clock[stream] - 1}
        if not self._behind(clock) and leaves_a_mark(call):
            self.words.add(f"d{index}")
        return before

    def _peer(self, index: int, call: Call) -> None:
        """What a copy between devices is behind, beside its own stream's work."""
        mine = self.clocks.of(call.clock)
        if call.effect.stream == "null" and self.decide("peer-sync-is-a-barrier", index):
            join(mine, self.clocks.device_work())
        if self.program.access:
            return
        if self.decide("peer-copies-without-access-serialise", -1):
            join(mine, self.copies.staging.get(call.device, {}))
        if len(self.copies.staged) >= _STAGES and self.decide("peer-copies-take-turns-in-two-stages", index):
            join(mine, self.copies.staged[-_STAGES])

    def _awaited(self, scope: Scope, call: Call, before: Clock) -> Clock:
        if scope is Scope.BEFORE:
            return before
        if scope is Scope.ITSELF:
            return self.clocks.of(call.clock)
        if scope is Scope.STREAM:
            return self.clocks.stream_work(call.clock)
        if scope is Scope.EVENT:
            return self.events.get(call.event or 0, {})
        if self.decide("waits-reach-other-devices", -1):
            return self.clocks.device_work()
        clock = self.clocks.device_work(stream for stream in self.clocks.streams if device_of(stream) == call.device)
        if self.decide("peer-copy-is-work-of-both-devices", -1):
            join(clock, self.copies.peers)
        return clock

    # --- locks ------------------------------------------------------------------------------------------------------------------------

    def _stuck(self, index: int, call: Call) -> bool:
        """Whether another thread holds a lock that this call takes; the thread is then blocked, with no lock of its own."""
        barred = self._barred(index, call)
        if barred:
            # Staging comes last: a thread that waits for it has its stream's lock already.
            staged = barred <= {Lock.UPLOADS, Lock.DOWNLOADS}
            self.blocked.add(call.thread)
            self.held.append(_Holder(call.thread, self._keeps(index, call, call.effect) if staged else set()))
        return bool(barred)

    def _barred(self, index: int, call: Call) -> set[Lock]:
        taken = set().union(*(holder.locks for holder in self.held if holder.thread != call.thread))
        if not taken:
            return set()
        if call.captures:
            fact = "end-capture-takes-a-lock" if call.call == "endCapture" else "begin-capture-takes-the-object-lock"
            return {lock for lock in (Lock.CONTEXT, Lock.OBJECTS) if lock.value in taken and self.decide(fact, index)}
        return {claim.lock for claim in self._takes(index, call) if _name(claim.lock, call) in taken and self.decide(claim.fact, index)}

    def _takes(self, index: int, call: Call) -> tuple[Locks, ...]:
        """The locks that a call takes, of the devices that it concerns."""
        work, takes = call.effect.work, self._takes_alone(call)
        if work is Work.WAIT and self.origins.get(call.event or 0, call.device) != call.device:
            takes = (Locks(Lock.CONTEXT, "wait-across-devices-takes-a-lock"),)
        elif call.device and work is Work.PEER:
            takes = (Locks(Lock.CONTEXT, "peer-copy-takes-both-devices-locks"),)
        elif call.device and not self.decide("locks-reach-other-devices", index):
            takes = tuple(claim for claim in takes if claim.lock is Lock.STREAM)
        if work is Work.PEER and not self.program.access:
            takes += (Locks(Lock.DOWNLOADS, "peer-copies-without-access-share-staging"),)
        return takes

    def _takes_alone(self, call: Call) -> tuple[Locks, ...]:
        """The locks that a call takes where there is one device."""
        effect = call.effect
        if self.memory.behind and effect.work is Work.ALLOC and call.clock == NULL:
            return (Locks(Lock.CONTEXT, self.memory.behind),)
        if call.call == "streamSynchronize" and call.clock in self.memory.freed & self.clocks.blocking:
            return (Locks(Lock.CONTEXT, "synchronize-after-free-takes-a-lock"),)
        return effect.on_null.takes if effect.on_null.takes and call.clock == NULL else effect.takes

    def _keeps(self, index: int, call: Call, effect: Effect) -> set[str]:
        claims = effect.on_null.holds if call.clock == NULL and effect.stream == "own" else effect.holds
        return {_name(claim.lock, call) for claim in claims if self.decide(claim.fact, index)}


def _name(lock: Lock, call: Call) -> str:
    if lock is Lock.STREAM:
        return f"stream {call.clock}"
    return f"stream {NULL}" if lock is Lock.NULL_STREAM else lock.value
