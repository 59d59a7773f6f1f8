"""The machine of one path: operations in, order and conflicts out. Knows clocks and accesses, no syntax and no library.

Tests drive it by hand, in a few lines of launch, copy, record, wait, synchronize and read.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Iterator

from streamlint import cuda_model
from streamlint.cuda_model import Clocks, Scope, Stamp, Strength, covers
from streamlint.findings import Step
from streamlint.interpreter.alike import Alike
from streamlint.interpreter.captures import Captures
from streamlint.interpreter.default_stream import give_threads_own
from streamlint.interpreter.gil import Gil
from streamlint.interpreter.reach import reachable
from streamlint.interpreter.unknowns import begin_apart, parts_meet
from streamlint.interpreter.values import Access, Buffer, Event, Storage, Stream, Value
from streamlint.operations import (
    Alloc,
    Callback,
    Conflict,
    Context,
    Copy,
    Create,
    Direction,
    Entry,
    Free,
    HostRead,
    HostWrite,
    Launch,
    Memory,
    Opaque,
    Operation,
    Query,
    Record,
    Register,
    Synchronize,
    Wait,
)
from streamlint.record import replace

_AWAITED = (Buffer, Stream, Event)


class Machine:
    """State of one path. ``operations`` and ``conflicts`` are what checks see afterwards."""

    def __init__(self) -> None:
        self.clocks = Clocks()
        self.operations: list[Operation] = []
        self.conflicts: list[Conflict] = []
        self.streams: dict[str, Stream] = {}
        self.pending: dict[int, Storage] = {}  # storages with device accesses that the host may not have seen end
        self._on_null: list[tuple[Copy | Launch, Stamp]] = []  # null-stream work that the host may not have seen end
        self._keys = itertools.count(1)
        self.context = Context()
        self.captures = Captures()  # work that a capture takes is recorded into a graph, and does not run
        self._entered: Stamp | None = None  # what stands for a caller's work
        self.alike = Alike()
        self._ago = 0  # how often what goes on was put before all that is known of
        self.per_thread = False  # the default stream is the thread's own
        self.per_thread_because: tuple[Step, ...] = ()  # where that is said
        # Atoms decided without evidence so far, in order; kept by the path.
        self.guesses: tuple[str, ...] = ()
        # What the host has seen once it knows that a callback ran: one clock for each that was registered.
        self.told_by_callback: list[dict[str, int]] = []
        self.gil = Gil()

    # --- values -----------------------------------------------------------------------------------------------------------------

    def fresh(self, prefix: str) -> str:
        return f"{prefix}{next(self._keys)}"

    def know(self, stream: Stream) -> Stream:
        """Register a stream's clock; blocking ones take part in the default stream's barrier."""
        if stream.key not in self.streams:
            self.streams[stream.key] = stream
            # Where it is not known, it is taken as ordered: the barrier is an order that may be there.
            if stream.blocking or stream.kind == "ptds" or (stream.blocking is None and stream.kind not in ("null", "ambient")):
                self.clocks.blocking.add(stream.key)
        for key in self.alike.given_alike(stream):
            self.clocks.wait(stream.key, self.clocks.record(key))
        return stream

    # --- the record ----------------------------------------------------------------------------------------------------------------

    def note(self, operation: Operation) -> Operation:
        """Append an operation to the path, with its surroundings."""
        operation.index = len(self.operations)
        if self.per_thread:
            give_threads_own(operation, self.per_thread_because)
        capture = self.captures.step
        operation.context = self.context if capture is None else replace(self.context, capture=capture)
        operation.guesses = self.guesses  # one for all up to the next: what is kept of an object holds hundreds
        operation.gil = self.gil.held
        self.operations.append(operation)
        return operation

    # --- work ------------------------------------------------------------------------------------------------------------------------

    def copy(self, operation: Copy) -> None:
        """A copy: reads its source and writes its destination, on its stream or (synchronous forms) seen to end by the host."""
        self.note(operation)
        if self.captures.takes(operation):
            return
        stream = self.know(operation.stream) if operation.stream else None
        operation.beside = self._beside(stream)
        if stream is None:
            return
        stamp = self._issue(operation, stream)
        if operation.src is not None:
            self._device_access(operation, operation.src, stamp, write=False)
        if operation.dst is not None:
            self._device_access(operation, operation.dst, stamp, write=True)
        wait = cuda_model.copy_wait(operation.direction, operation.host_memory, operation.asked_async, operation.nbytes)
        unknown = operation.direction is Direction.UNKNOWN and not operation.asked_async
        if wait.strength is Strength.GUARANTEED or unknown:
            # A pageable upload returns once its source is staged: the work before it has ended, the transfer may not have.
            behind = self.clocks.of(stream.key)
            self.clocks.synchronize({**behind, stamp.stream: stamp.tick - 1} if wait.scope is Scope.BEFORE else behind)
            self._settle()

    def launch(self, operation: Launch) -> None:
        self.note(operation)
        if self.captures.takes(operation) or operation.stream is None:
            return
        stream = self.know(operation.stream)
        operation.beside = self._beside(stream)
        stamp = self._issue(operation, stream)
        for buffer in operation.reads:
            self._device_access(operation, buffer, stamp, write=False)
        for buffer in operation.writes:
            self._device_access(operation, buffer, stamp, write=True, sure=not operation.assumed)
        if operation.host_waits:
            self.clocks.synchronize_stream(stream.key)
            self._settle()

    def _issue(self, operation: Copy | Launch, stream: Stream) -> Stamp:
        stamp = self.clocks.issue(stream.key)
        if stream.kind == "null":
            self._on_null.append((operation, stamp))
        elif stream.kind == "created":
            for earlier, work in self._on_null:
                if not self.clocks.host_sees(work) and stream not in earlier.followed_by:
                    earlier.followed_by = (*earlier.followed_by, stream)
        return stamp

    def _beside(self, stream: Stream | None) -> tuple[Stream, ...]:
        """For work on the null stream: the other streams that hold work which the host has not seen end."""
        if stream is None or stream.kind != "null":
            return ()
        others = [key for key, other in self.streams.items() if other.kind in ("created", "parameter", "foreign")]
        return tuple(self.streams[key] for key in self.clocks.in_flight(others))

    def enter(self, operation: Entry) -> Access | None:
        """A root is entered. Returns the last of its caller's work on the current stream, which may be what made its arguments."""
        self.note(operation)
        if operation.stream is None:
            return None
        self._entered = self.clocks.issue(operation.stream.key)
        return Access(operation, self._entered, ())

    def presume_work(self, operation: Operation, stream: Stream) -> Access:
        """Work on memory of which it is not known yet whether it is on a device: it is no operation of the path."""
        operation.index, operation.context = len(self.operations), self.context
        stamp = self.clocks.issue(self.know(stream).key)
        entered = self._entered
        if entered is not None and stamp.stream == entered.stream and stamp.tick == entered.tick + 1:
            self._entered = stamp  # no more is known to run there than before
        return Access(operation, stamp, (), over=self._ago > 0)

    def _device_access(self, operation: Operation, buffer: Buffer, stamp: Stamp, write: bool, sure: bool = True) -> None:
        storage = buffer.storage
        reached = storage.memory is Memory.UNKNOWN and isinstance(operation, Launch) and operation.kind == "kernel"
        if storage.made is not None and (storage.on_device or reached):  # what a kernel is given is there
            # An upload into what a caller hands over: the caller knows that it is free.
            fills = isinstance(operation, Copy) and operation.direction is Direction.H2D and isinstance(storage.made.operation, Entry)
            storage.writes.extend([] if fills or storage.made.over else [storage.made])
            storage.made = None
        access = Access(operation, stamp, buffer.part, sure)
        self._conflict_on_device(access, buffer, write=write)
        self.pending[id(storage)] = storage
        if write:
            # What this write covers entirely and is ordered behind needs no record of its own.
            storage.writes = [old for old in storage.writes if not (old.stamp.stream == stamp.stream and old.part == buffer.part)]
            storage.writes.append(access)
        else:
            storage.reads.append(access)

    def _conflict_on_device(self, access: Access, buffer: Buffer, write: bool) -> None:
        """An earlier access on another stream, one of the two a write, that nothing puts before this one: the nearest counts."""
        clock = self.clocks.of(access.stamp.stream)
        storage = buffer.storage
        for earlier in sorted((*storage.writes, *(storage.reads if write else ())), key=lambda a: -a.operation.index):
            if earlier.operation is access.operation or covers(clock, earlier.stamp) or self.clocks.host_sees(earlier.stamp):
                continue
            first_writes = any(earlier is other for other in storage.writes)
            if not (earlier.sure if first_writes else access.sure) or not parts_meet(earlier.part, access.part):
                continue
            if _has_pointers(earlier.operation) and _has_pointers(access.operation) and begin_apart(earlier.part, access.part):
                continue  # each its own share of the memory
            if isinstance(earlier.operation, Alloc) and access.operation.context.crossing is not None:
                continue  # C++ that Python calls: nothing is said of recycled blocks, and it must not hide what is
            self.conflicts.append(Conflict(earlier.operation, access.operation, "stream-wait", 0, first_writes, buffer))
            # What follows on this stream is a consequence: one finding a pair.
            self.clocks.wait(access.stamp.stream, {earlier.stamp.stream: earlier.stamp.tick})
            return

    # --- the host ------------------------------------------------------------------------------------------------------------------

    def host_read(self, operation: HostRead) -> bool:
        """The host looks at a buffer. Returns whether the value was still in flight."""
        self.note(operation)
        return operation.buffer is not None and self._conflict_with_host(operation, operation.buffer)

    def is_busy(self, storage: Storage) -> bool:
        """Whether the host has not seen all work on a storage end."""
        return any(not self.clocks.host_sees(access.stamp) for access in (*storage.writes, *storage.reads))

    def in_flight(self, buffer: Buffer) -> Access | None:
        """A device-side write to the buffer that the host has not seen end."""
        for access in reversed(buffer.storage.writes):
            if not self.clocks.host_sees(access.stamp) and parts_meet(access.part, buffer.part):
                return access
        return None

    def _conflict_with_host(self, operation: Operation, buffer: Buffer) -> bool:
        access = self.in_flight(buffer)
        if access is None:
            return False
        self.conflicts.append(Conflict(access.operation, operation, "host-wait", 0, True, buffer))
        # One finding a copy: the value has been looked at, what follows is a consequence.
        buffer.storage.writes.remove(access)
        return True

    def host_write(self, operation: HostWrite) -> None:
        """The host fills a buffer, which a copy may still be reading, or writing."""
        self.note(operation)
        if operation.buffer is None:
            return
        storage = operation.buffer.storage
        for accesses, first_writes in ((storage.reads, False), (storage.writes, True)):
            for access in reversed(accesses):
                if not self.clocks.host_sees(access.stamp) and parts_meet(access.part, operation.buffer.part):
                    self.conflicts.append(Conflict(access.operation, operation, "host-wait", 0, first_writes, operation.buffer))
                    accesses.remove(access)
                    return

    # --- order -----------------------------------------------------------------------------------------------------------------------

    def record(self, operation: Record) -> None:
        self.note(operation)
        event = operation.event
        captured = self.captures.records(event, operation.stream)
        if event is None:
            return
        if captured:
            event.recorded = operation
            return
        if operation.stream is None:
            event.unknown = True
            return
        self.know(operation.stream)
        event.snapshot = self.clocks.record(operation.stream.key)
        for key in self.alike.may_be(operation.stream):
            event.snapshot = {**self.clocks.of(key), **event.snapshot}
        event.awaited = False
        event.recorded = operation

    def wait(self, operation: Wait) -> None:
        self.note(operation)
        if self.captures.waits(operation) or operation.stream is None:
            return
        stream = self.know(operation.stream)
        on = operation.on
        waiting = (stream.key, *self.alike.may_be(stream))
        if isinstance(on, Stream):
            self.know(on)
            for key in waiting:
                self.clocks.wait(key, self.clocks.record(on.key))
            for key in self.alike.may_be(on):
                self.clocks.wait(stream.key, self.clocks.of(key))
        elif isinstance(on, Event) and not on.unknown:
            operation.empty = on.snapshot is None
            on.awaited = True
            for key in waiting:
                self.clocks.wait(key, on.snapshot)
        else:
            # It is not known what is awaited: taken as something that orders everything.
            for clock in list(self.clocks.streams.values()):
                self.clocks.wait(stream.key, clock)

    def synchronize(self, operation: Synchronize) -> None:
        self.note(operation)
        self.captures.judge_host(operation)
        operation.empty = isinstance(operation.of, Event) and not operation.of.unknown and operation.of.snapshot is None
        if isinstance(operation.of, Event):
            operation.of.awaited = True
        self.host_waits(operation.of)

    def host_waits(self, on: Event | Stream | None) -> None:
        """The host waits for a stream, an event, or (None) the device."""
        if isinstance(on, Stream):
            self.know(on)
            self.clocks.synchronize_stream(on.key)
            for key in self.alike.may_be(on):
                self.clocks.synchronize(self.clocks.of(key))
        elif isinstance(on, Event) and not on.unknown:
            if on.snapshot is not None:
                self.clocks.synchronize(on.snapshot)
        else:
            self.clocks.synchronize_device()
        self._settle()

    def query(self, operation: Query) -> None:
        self.note(operation)
        if isinstance(operation.of, Event):
            operation.of.awaited = True
        self.captures.judge_host(operation)

    # --- memory ------------------------------------------------------------------------------------------------------------------------

    def alloc(self, operation: Alloc) -> None:
        self.note(operation)
        self.captures.judge_memory(operation)
        if operation.buffer is None:
            return
        operation.buffer.storage.allocated = operation
        if operation.stream is not None and not self.captures.active:
            # A block of a pool may be a recycled one: what its stream still runs, as far as it is in view, may use it.
            tick = self.clocks.of(operation.stream.key).get(operation.stream.key, 0)
            stamp = Stamp(operation.stream.key, tick)
            if not self.clocks.host_sees(stamp) and stamp != self._entered:
                operation.buffer.storage.writes.append(Access(operation, stamp, ()))
                self.pending[id(operation.buffer.storage)] = operation.buffer.storage

    def free(self, operation: Free) -> None:
        self.note(operation)
        self.captures.judge_memory(operation)
        if operation.buffer is not None:
            if operation.stream is not None and not self.captures.active:
                self._conflict_on_device(
                    Access(operation, self.clocks.issue(self.know(operation.stream).key), ()), operation.buffer, write=True
                )
            if operation.memory is Memory.PAGEABLE and operation.buffer.storage.memory is Memory.PINNED:
                self._conflict_with_free(operation, operation.buffer)
            operation.buffer.storage.freed = True
            operation.buffer.storage.writes.clear()
            operation.buffer.storage.reads.clear()

    def _conflict_with_free(self, operation: Free, buffer: Buffer) -> None:
        """Page-locked memory is given back by a call that waits for nothing, while a copy may still use it."""
        storage = buffer.storage
        for accesses, first_writes in ((storage.reads, False), (storage.writes, True)):
            for access in reversed(accesses):
                if not self.clocks.host_sees(access.stamp):
                    self.conflicts.append(Conflict(access.operation, operation, "host-wait", 0, first_writes, buffer))
                    return

    def register(self, operation: Register) -> None:
        self.note(operation)
        self.captures.judge_memory(operation)
        if operation.buffer is not None:
            operation.buffer.storage.memory = Memory.PINNED

    # --- the rest ------------------------------------------------------------------------------------------------------------------------

    def create(self, operation: Create) -> None:
        self.note(operation)
        if isinstance(operation.value, Stream):
            self.captures.made(operation.value, bool(self.context.guards))
            self.know(operation.value)

    def callback(self, operation: Callback) -> None:
        self.note(operation)
        self.captures.judge_callback(operation)
        if operation.stream is not None and operation.context.callback is None:
            self.told_by_callback.append(self.clocks.record(self.know(operation.stream).key))

    def callbacks_seen(self) -> None:
        """The host has waited for what callbacks set: the work before them has ended."""
        for clock in self.told_by_callback:
            self.clocks.synchronize(clock)
        self.told_by_callback.clear()
        self._settle()

    @contextlib.contextmanager
    def aside(self, handed: Collection[Storage] = ()) -> Iterator[None]:
        """Inside, operations are another thread's, with nothing in flight; outside, nothing of theirs is left: no order lies between.

        What is ``handed`` over keeps the work on it: the thread has seen no more of it end than the one that hands it over.
        """
        first, clocks, on_null, captures = len(self.operations), self.clocks, self._on_null, self.captures
        pending = self._under_way()
        self.clocks, self._on_null, self.captures = clocks.copy(), [], Captures()
        if handed:
            for storage, _, _ in pending:
                if storage not in handed:
                    storage.writes, storage.reads = [], []
        else:
            self.clocks.synchronize_device()
        try:
            yield
        finally:
            for operation in self.operations[first:]:
                if isinstance(operation, Record) and operation.event is not None:
                    operation.event.unknown = True
            self._put_back(pending)
            self.clocks, self._on_null, self.captures = clocks, on_null, captures

    @contextlib.contextmanager
    def long_ago(self) -> Iterator[None]:
        """Inside, operations were done before all that is known of: outside, nothing of theirs is under way."""
        pending = self._under_way()
        self._ago += 1
        try:
            yield
        finally:
            self._ago -= 1
            self._put_back(pending)

    def _under_way(self) -> list[tuple[Storage, list[Access], list[Access]]]:
        return [(storage, list(storage.writes), list(storage.reads)) for storage in self.pending.values()]

    def _put_back(self, pending: list[tuple[Storage, list[Access], list[Access]]]) -> None:
        for touched in self.pending.values():
            touched.writes, touched.reads = [], []
        for storage, writes, reads in pending:
            storage.writes, storage.reads = writes, reads
        self.pending = {id(storage): storage for storage, _, _ in pending}

    def opaque(self, operation: Opaque, values: Iterable[Value]) -> None:
        """A call whose body is not at hand: it may wait for all it can reach, and touch or await each host buffer it can reach."""
        self.opaque_among(operation, reachable(list(values)))

    def opaque_among(self, operation: Opaque, reached: Iterable[Value]) -> None:
        """The same, where it is known already what the call can reach."""
        self.note(operation)
        for value in reached:
            if isinstance(value, _AWAITED):
                self.forget(value)
        self._settle()

    def opaque_work(self, operation: Opaque, stream: Stream, reads: Iterable[Buffer], writes: Iterable[Buffer]) -> None:
        """What an opaque call does on the device: one launch on its current stream, on what it was given."""
        operation.stream = stream
        if self.captures.takes(operation):
            return
        self.know(stream)
        stamp = self.clocks.issue(stream.key)
        for buffer in reads:
            self._device_access(operation, buffer, stamp, write=False)
        for buffer in writes:
            self._device_access(operation, buffer, stamp, write=True)

    def forget(self, value: Value) -> None:
        """Code out of view has this value: it may have awaited it."""
        if isinstance(value, Stream | Event):
            self.captures.assume_awaited(value)
        if isinstance(value, Stream):
            if value.key in self.clocks.streams:
                self.clocks.synchronize(self.clocks.of(value.key))
        elif isinstance(value, Event):
            if value.snapshot is not None:
                self.clocks.synchronize(value.snapshot)
            value.unknown = True
        elif isinstance(value, Buffer) and not value.storage.on_device:
            value.storage.writes.clear()
            value.storage.reads.clear()

    def forget_everything(self) -> None:
        """Control leaves the code at hand: whoever has it may wait for the device."""
        self.clocks.synchronize_device()
        self._settle()

    def _settle(self) -> None:
        if not self._on_null and not self.pending:
            return
        self._on_null = [(operation, stamp) for operation, stamp in self._on_null if not self.clocks.host_sees(stamp)]
        done = []
        for key, storage in self.pending.items():
            storage.writes = [access for access in storage.writes if not self.clocks.host_sees(access.stamp)]
            storage.reads = [access for access in storage.reads if not self.clocks.host_sees(access.stamp)]
            if not storage.writes and not storage.reads:
                done.append(key)
        for key in done:
            del self.pending[key]


def _has_pointers(operation: Operation) -> bool:
    """A kernel of C++: what it is given does not say where it ends."""
    return isinstance(operation, Launch) and operation.kind == "kernel" and operation.api == "cuda-runtime"
