"""Vector clocks of streams and host threads.

Issuing work on a stream ticks that stream's own component; waiting joins clocks. ``a`` is ordered before ``b`` exactly when ``b``'s clock
has reached ``a``'s stamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamlint.cuda_model.effects import Work
from streamlint.cuda_model.facts import FACTS
from streamlint.cuda_model.strength import Strength
from streamlint.support.records import record

MAIN = "main"  # the host thread of a path that knows no other
NULL = "null"

Clock = dict[str, int]
Orders = Callable[[str], bool]


@record(frozen=True, slots=True)
class Stamp:
    """One piece of work: the ``tick``-th on ``stream``."""

    stream: str
    tick: int


def guaranteed(fact: str) -> bool:
    """Whether documents promise a fact: what a race may not rest on is all the rest."""
    return FACTS[fact].strength is Strength.GUARANTEED


# What makes work on the null stream wait for blocking streams, by kind of work.
_ON_NULL = {
    Work.DEVICE: "null-waits-for-blocking",
    Work.PEER: "null-waits-for-blocking",
    Work.HOST_FUNCTION: "null-waits-for-blocking",
    Work.RECORD: "record-on-null-waits-for-blocking",
    Work.WAIT: "wait-on-null-is-a-barrier",
    Work.ALLOC: "ordered-alloc-on-null-waits-for-blocking",
    Work.FREE: "ordered-free-on-null-waits-for-blocking",
}
# What makes work on a blocking stream wait for the null stream.
_ON_BLOCKING = {
    Work.DEVICE: "blocking-waits-for-null",
    Work.PEER: "blocking-waits-for-null",
    Work.HOST_FUNCTION: "blocking-waits-for-null",
    Work.RECORD: "record-on-blocking-waits-for-null",
    Work.ALLOC: "ordered-alloc-on-blocking-waits-for-null",
    Work.FREE: "ordered-free-on-blocking-waits-for-null",
}


class Clocks:
    """The clocks of one path or one litmus run.

    ``blocking`` names the streams that take part in the null stream's barrier (created without ``cudaStreamNonBlocking``; per-thread
    streams too). ``orders`` says which facts are relied upon; the default is what documents promise.
    """

    def __init__(self, blocking: Iterable[str] = (), orders: Orders = guaranteed) -> None:
        self.streams: dict[str, Clock] = {}
        self.hosts: dict[str, Clock] = {}
        self.blocking = set(blocking)
        self._orders = orders

    def copy(self) -> Clocks:
        """Clocks that go their own way from here."""
        other = Clocks(self.blocking, self._orders)
        other.streams = {key: dict(value) for key, value in self.streams.items()}
        other.hosts = {key: dict(value) for key, value in self.hosts.items()}
        return other

    def of(self, stream: str) -> Clock:
        return self.streams.setdefault(stream, {})

    def host(self, thread: str = MAIN) -> Clock:
        return self.hosts.setdefault(thread, {})

    def issue(self, stream: str, work: Work = Work.DEVICE, thread: str = MAIN) -> Stamp:
        """Put work on a stream: behind the stream's earlier work, and behind what the null stream's barrier puts before it."""
        if not self._orders("stream-order"):
            self.streams[stream] = {stream: self.of(stream).get(stream, 0)}
        clock = self.of(stream)
        self._barrier(stream, work, clock)
        # What the host thread has seen end is before anything it issues.
        join(clock, self.host(thread))
        clock[stream] = clock.get(stream, 0) + 1
        return Stamp(stream, clock[stream])

    def _barrier(self, stream: str, work: Work, clock: Clock) -> None:
        if stream == NULL:
            if work in _ON_NULL and self._orders(_ON_NULL[work]):
                for other in self.blocking:
                    join(clock, self.of(other))
        elif stream in self.blocking and work in _ON_BLOCKING and self._orders(_ON_BLOCKING[work]):
            join(clock, self.of(NULL))

    def record(self, stream: str) -> Clock:
        """What an event recorded now stands for: the stream's work so far, and what the barrier puts before a record.

        On the null stream a record is an action that later work of blocking streams waits for; on a blocking stream it is not: the event
        stands for the null stream's work, and synchronizing the stream does not wait for it.
        """
        if stream == NULL or self._orders("record-holds-its-stream"):
            self._barrier(stream, Work.RECORD, self.of(stream))
        clock = self.of(stream)
        if self._orders("event-covers-later-work"):
            return clock
        snapshot = dict(clock)
        self._barrier(stream, Work.RECORD, snapshot)
        return snapshot

    def wait(self, stream: str, snapshot: Clock | None) -> None:
        """Later work on ``stream`` is behind ``snapshot``; ``None`` is an event that was never recorded. The host does not wait."""
        if snapshot is None and not self._orders("wait-for-nothing-is-a-barrier"):
            return
        clock = self.of(stream)
        self._barrier(stream, Work.WAIT, clock)
        if self._orders("event-order"):
            join(clock, snapshot or {})

    def synchronize(self, snapshot: Clock, thread: str = MAIN) -> None:
        """The host thread waits for ``snapshot``."""
        join(self.host(thread), snapshot)

    def stream_work(self, stream: str) -> Clock:
        """What ``cudaStreamSynchronize`` waits for; of the null stream, blocking streams' work too."""
        clock = dict(self.of(stream))
        if stream == NULL and self._orders("null-synchronize-waits-for-blocking"):
            for other in self.blocking:
                join(clock, self.of(other))
        return clock

    def device_work(self, streams: Iterable[str] | None = None) -> Clock:
        """What ``cudaDeviceSynchronize`` waits for; ``streams`` names the device's, where there are several devices."""
        clock: Clock = {}
        for other in list(self.streams if streams is None else streams):
            join(clock, self.of(other))
        return clock

    def join(self, thread: str, other: str) -> None:
        """What thread ``other`` has seen end, ``thread`` knows too (it was started by it, or joined it)."""
        join(self.host(thread), self.host(other))

    def host_sees(self, stamp: Stamp, thread: str = MAIN) -> bool:
        """Whether the host thread runs after this work has ended."""
        return self.host(thread).get(stamp.stream, 0) >= stamp.tick

    def ordered(self, stamp: Stamp, stream: str, thread: str = MAIN) -> bool:
        """Whether device work issued on ``stream`` next runs after ``stamp``."""
        if covers(self.of(stream), stamp) or self.host_sees(stamp, thread):
            return True
        if stream == NULL:
            return self._orders("null-waits-for-blocking") and any(covers(self.of(other), stamp) for other in self.blocking)
        return stream in self.blocking and self._orders("blocking-waits-for-null") and covers(self.of(NULL), stamp)

    def in_flight(self, streams: Iterable[str], thread: str = MAIN) -> list[str]:
        """The streams among ``streams`` that hold work which the host thread has not seen end."""
        return [name for name in streams if self.of(name).get(name, 0) > self.host(thread).get(name, 0)]


def covers(clock: Clock, stamp: Stamp) -> bool:
    """Whether whatever has this clock is behind that work."""
    return clock.get(stamp.stream, 0) >= stamp.tick


def join(into: Clock, other: Clock) -> None:
    for stream, tick in other.items():
        if into.get(stream, 0) < tick:
            into[stream] = tick
