"""What CUDA orders, what makes the host wait, and how strong each order is: the one model behind prediction and lab.

A ``Clocks`` holds a vector clock for every stream and for the host thread. Issuing work on a stream ticks that stream's own component;
waiting joins clocks. ``a`` is ordered before ``b`` exactly when ``b``'s clock has reached ``a``'s stamp.

Sources: CUDA C++ Programming Guide, "Asynchronous Execution" (streams, events, default stream); CUDA Runtime API, "API synchronization
behavior" and "Stream synchronization behavior"; ``cuda_runtime_api.h`` of CUDA 13.0. "H200" marks what was measured and no document says.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from streamlint.operations import Direction, Memory

HOST = "host"
NULL = "null"

# Pageable H2D copies up to this many bytes return once staged, on every driver documented (older programming guides: 64 KB).
STAGED_BYTES = 64 * 1024

Clock = dict[str, int]


class Strength(enum.IntEnum):
    """How far an order or a wait can be relied on."""

    NEVER = 0
    MAY = 1  # documents allow it; nobody may rely on it
    OBSERVED = 2  # a GPU did it; nobody may rely on it either
    GUARANTEED = 3  # documented


@dataclass(frozen=True, slots=True)
class Stamp:
    """One piece of work: the ``tick``-th on ``stream``."""

    stream: str
    tick: int


@dataclass(frozen=True, slots=True)
class HostWait:
    """Whether a call returns only after the work before it on its stream has ended, and why we say so."""

    strength: Strength
    source: str


# (direction, host memory, asked asynchronous) -> does the host wait for the copy. API synchronization behavior, CUDA 13.0.
_COPY_WAITS: dict[tuple[Direction, Memory, bool], HostWait] = {
    (Direction.H2D, Memory.PINNED, True): HostWait(Strength.NEVER, "API synchronization behavior: asynchronous"),
    (Direction.D2H, Memory.PINNED, True): HostWait(Strength.NEVER, "API synchronization behavior: asynchronous"),
    (Direction.H2D, Memory.PAGEABLE, True): HostWait(
        Strength.MAY, "API synchronization behavior: the driver may synchronize with the stream"
    ),
    (Direction.D2H, Memory.PAGEABLE, True): HostWait(
        Strength.OBSERVED, "documented as may; H200: returns when the copy has ended, from 8 bytes on"
    ),
    (Direction.H2D, Memory.PINNED, False): HostWait(Strength.GUARANTEED, "API synchronization behavior: synchronous"),
    (Direction.D2H, Memory.PINNED, False): HostWait(Strength.GUARANTEED, "API synchronization behavior: synchronous"),
    (Direction.H2D, Memory.PAGEABLE, False): HostWait(
        Strength.GUARANTEED, "API synchronization behavior: stream synchronized before staging"
    ),
    (Direction.D2H, Memory.PAGEABLE, False): HostWait(Strength.GUARANTEED, "API synchronization behavior: returns once the copy has ended"),
}


def copy_wait(direction: Direction, memory: Memory, asynchronous: bool) -> HostWait:
    """Whether the host waits in a copy; device-to-device copies never make it wait.

    Memory of unknown kind gets what both kinds share.
    """
    if direction in (Direction.D2D, Direction.PEER):
        return HostWait(Strength.NEVER, "API synchronization behavior: no host-side synchronization")
    if direction is Direction.H2H:
        return HostWait(Strength.GUARANTEED, "API synchronization behavior: fully synchronous")
    if found := _COPY_WAITS.get((direction, memory, asynchronous)):
        return found
    if not asynchronous and direction in (Direction.H2D, Direction.D2H):
        return HostWait(Strength.GUARANTEED, "API synchronization behavior: synchronous forms")
    return HostWait(Strength.MAY, "memory of unknown kind")


# Calls on allocations: does the host wait for the device. H200 unless a document is named.
ALLOCATION_WAITS: dict[tuple[str, Memory], HostWait] = {
    ("alloc", Memory.DEVICE): HostWait(Strength.MAY, "Programming Guide lists it as implicit synchronization; H200: does not wait"),
    ("free", Memory.DEVICE): HostWait(
        Strength.OBSERVED, "cuda_runtime_api.h: may perform implicit synchronization; H200: waits for the device"
    ),
    ("alloc", Memory.PINNED): HostWait(Strength.MAY, "H200: slow (1 ms for 4 KB, 31 ms for 64 MB), does not wait"),
    ("free", Memory.PINNED): HostWait(Strength.OBSERVED, "cudaFreeHost causes implicit device synchronization; H200: waits for the device"),
    ("unregister", Memory.PINNED): HostWait(Strength.OBSERVED, "H200: waits for the device"),
    ("register", Memory.PINNED): HostWait(Strength.MAY, "H200: does not wait, page-locks every page"),
}


@dataclass(slots=True)
class Clocks:
    """Vector clocks of the streams and of one host thread, with the legacy default stream's barrier.

    ``blocking`` names the streams that take part in the barrier (created without ``cudaStreamNonBlocking``; per-thread streams too).
    """

    streams: dict[str, Clock] = field(default_factory=dict)
    host: Clock = field(default_factory=dict)
    blocking: set[str] = field(default_factory=set)

    def of(self, stream: str) -> Clock:
        return self.streams.setdefault(stream, {})

    def issue(self, stream: str) -> Stamp:
        """Put work on a stream: behind the stream's earlier work, and behind what the default-stream barrier puts before it."""
        clock = self.of(stream)
        # Stream synchronization behavior: the legacy stream waits for all blocking streams, and they wait for it.
        if stream == NULL:
            for other in self.blocking:
                _join(clock, self.of(other))
        elif stream in self.blocking:
            _join(clock, self.of(NULL))
        # What the host has seen end is before anything it issues.
        _join(clock, self.host)
        clock[stream] = clock.get(stream, 0) + 1
        return Stamp(stream, clock[stream])

    def record(self, stream: str) -> Clock:
        """What an event recorded now stands for: the stream's work so far.

        H200: a record on an idle blocking stream is not held by the barrier, so null-stream work is not in it.
        """
        return dict(self.of(stream))

    def wait(self, stream: str, snapshot: Clock) -> None:
        """Later work on ``stream`` is behind ``snapshot``. The host does not wait."""
        _join(self.of(stream), snapshot)

    def synchronize(self, snapshot: Clock) -> None:
        """The host waits for ``snapshot``."""
        _join(self.host, snapshot)

    def synchronize_stream(self, stream: str) -> None:
        """``cudaStreamSynchronize``. H200: on the null stream it waits for every blocking stream too."""
        self.synchronize(self.of(stream))
        if stream == NULL:
            for other in self.blocking:
                self.synchronize(self.of(other))

    def synchronize_device(self) -> None:
        for clock in list(self.streams.values()):
            self.synchronize(clock)

    def host_sees(self, stamp: Stamp) -> bool:
        """Whether the host is guaranteed to run after this work has ended."""
        return self.host.get(stamp.stream, 0) >= stamp.tick

    def ordered(self, stamp: Stamp, stream: str) -> bool:
        """Whether work issued on ``stream`` next is guaranteed to run after ``stamp``."""
        clock = self.of(stream)
        if clock.get(stamp.stream, 0) >= stamp.tick or self.host_sees(stamp):
            return True
        if stream == NULL:
            return any(self.of(other).get(stamp.stream, 0) >= stamp.tick for other in self.blocking)
        return stream in self.blocking and self.of(NULL).get(stamp.stream, 0) >= stamp.tick

    def in_flight(self, streams: Iterable[str]) -> list[str]:
        """The streams among ``streams`` that hold work which the host has not seen end."""
        return [name for name in streams if self.of(name).get(name, 0) > self.host.get(name, 0)]


def _join(into: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if into.get(stream, 0) < tick:
            into[stream] = tick
