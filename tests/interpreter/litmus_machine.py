"""Litmus programs for the machine of one path: operations in, conflicts out, no parser.

A program is a line of operations with ``;`` between them. ``a`` and ``b`` are non-blocking streams, ``x`` and ``y`` blocking ones, ``null``
and ``ptds`` the default streams, ``p`` a stream that came as a parameter, ``?`` one that is not known. ``e`` and ``f`` are events,
``u`` is one from out of view. Copies are asynchronous unless they end in ``!``; memory is ``host`` (pinned), ``page`` (pageable) or
``dev`` (device), with a part in brackets. ``*`` marks the one operation that makes a program right.
"""

from __future__ import annotations

import re

from streamlint import operations as ops
from streamlint.findings import Span
from streamlint.interpreter.machine import Machine
from streamlint.interpreter.values import Buffer, Event, Part, Storage, Stream, Value
from streamlint.operations import Direction, Memory


def stream(key: str) -> Stream:
    if key in ("null", "ptds"):
        return Stream(key, key, True if key == "ptds" else None)
    return Stream(key, "parameter", None) if key == "p" else Stream(key, "created", key in "xy")


class Litmus:
    """A machine with the streams, events and memory that programs name."""

    def __init__(self, program: str = "") -> None:
        self.machine = Machine()
        self.streams = {key: stream(key) for key in ("a", "b", "x", "y", "null", "ptds", "p")}
        self.events = {key: Event(key, unknown=key == "u") for key in "efu"}
        self.storages = {key: Storage(memory, key) for key, memory in MEMORY.items()}
        self.at = 0
        for line in program.split(";") if program else ():
            self.do(line.strip().removeprefix("*"))

    def do(self, line: str) -> None:
        """One operation: ``kernel a``, ``copy! x page[0]``, ``wait b e``."""
        self.at += 1
        word, *names = line.split()
        getattr(self, "_" + word.rstrip("!"))(*names, **({"blocking": True} if word.endswith("!") else {}))

    @property
    def conflicts(self) -> list[tuple[int, int]]:
        """The conflicts, as the places of both operations in the program, from 1."""
        return [(conflict.first.span.row, conflict.second.span.row) for conflict in self.machine.conflicts]

    def value(self, name: str) -> Value:
        return self.streams.get(name) or self.events.get(name) or self.buffer(name)

    def buffer(self, name: str) -> Buffer:
        key, _, rest = name.partition("[")
        return Buffer(self.storages[key], part(f"[{rest}" if rest else ""))

    @property
    def span(self) -> Span:
        return Span("litmus", self.at, 1, self.at, 2)

    # --- operations

    def _copy(self, on: str, into: str = "host", blocking: bool = False) -> None:
        """Device to host."""
        self._transfer(on, into, "dev", Direction.D2H, self.buffer(into).storage.memory, blocking)

    def _upload(self, on: str, of: str = "host", blocking: bool = False) -> None:
        """Host to device."""
        self._transfer(on, "dev", of, Direction.H2D, self.buffer(of).storage.memory, blocking)

    def _move(self, on: str, blocking: bool = False) -> None:
        """Device to device."""
        self._transfer(on, "dev", "dev", Direction.D2D, Memory.UNKNOWN, blocking)

    def _mystery(self, on: str, into: str = "host", blocking: bool = False) -> None:
        """A copy in a direction that is not known (``cudaMemcpyDefault``)."""
        self._transfer(on, into, "dev", Direction.UNKNOWN, Memory.UNKNOWN, blocking)

    def _transfer(self, on: str, dst: str, src: str, direction: Direction, memory: Memory, blocking: bool) -> None:
        sides = {"dst": self.buffer(dst), "src": self.buffer(src)}
        how = {"direction": direction, "host_memory": memory, "asked_async": not blocking}
        self.machine.copy(ops.Copy(self.span, stream=self.streams.get(on), **sides, **how))  # type: ignore[arg-type]

    def _kernel(self, on: str, *writes: str, blocking: bool = False) -> None:
        """Device work; with ``!`` the host waits in it, as in many Thrust algorithms."""
        written = tuple(self.buffer(name) for name in writes)
        self.machine.launch(ops.Launch(self.span, stream=self.streams.get(on), writes=written, host_waits=blocking))

    def _use(self, on: str, *reads: str) -> None:
        """Device work that reads."""
        self.machine.launch(ops.Launch(self.span, stream=self.streams.get(on), reads=tuple(self.buffer(name) for name in reads)))

    def _guess(self, on: str, *given: str) -> None:
        """A kernel that is not at hand: it may read and write what it was given."""
        buffers = tuple(self.buffer(name) for name in given)
        self.machine.launch(ops.Launch(self.span, stream=self.streams.get(on), reads=buffers, writes=buffers, assumed=True))

    def _record(self, event: str, on: str) -> None:
        self.machine.record(ops.Record(self.span, event=self.events[event], stream=self.streams.get(on)))

    def _wait(self, on: str, what: str) -> None:
        awaited = self.events.get(what) or self.streams.get(what)
        self.machine.wait(ops.Wait(self.span, stream=self.streams.get(on), on=awaited))

    def _sync(self, what: str) -> None:
        """Of a stream, an event, the ``device``, or something unknown."""
        self.machine.synchronize(ops.Synchronize(self.span, of=self.events.get(what) or self.streams.get(what)))

    def _query(self, what: str) -> None:
        self.machine.query(ops.Query(self.span, of=self.events.get(what) or self.streams.get(what)))

    def _read(self, what: str = "host") -> None:
        self.machine.host_read(ops.HostRead(self.span, buffer=self.buffer(what)))

    def _write(self, what: str = "host") -> None:
        self.machine.host_write(ops.HostWrite(self.span, buffer=self.buffer(what)))

    def _free(self, what: str) -> None:
        self.machine.free(ops.Free(self.span, buffer=self.buffer(what), memory=self.buffer(what).storage.memory))

    def _call(self, *names: str) -> None:
        """A call whose body is not at hand, with arguments."""
        self.machine.opaque(ops.Opaque(self.span, callee="call"), [self.value(name) for name in names])


MEMORY = {
    "host": Memory.PINNED,
    "other": Memory.PINNED,
    "page": Memory.PAGEABLE,
    "dev": Memory.DEVICE,
    "managed": Memory.MANAGED,
}


def part(text: str) -> Part:
    """``[0][:n]`` as the interpreter writes it."""
    return tuple(_axis(entry) for entry in re.findall(r"\[(.*?)\]", text))


def _axis(entry: str) -> tuple[str, ...]:
    if entry == "*":
        return ("*", "", "")
    if entry == "?":
        return ("?", "1")
    low, colon, high = entry.partition(":")
    if not colon:
        return ("i", low)
    # An open end behind a beginning is the constant None.
    return ("s", low, high or ("None" if low else ""))


def conflicts(program: str) -> list[tuple[int, int]]:
    return Litmus(program).conflicts


def without_order(program: str) -> str:
    """The program without the one operation that makes it right, which ``*`` marks."""
    kept = [line for line in program.split(";") if not line.strip().startswith("*")]
    assert len(kept) == program.count(";")
    return ";".join(kept)
