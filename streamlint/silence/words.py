"""Operations, memory and streams in plain words."""

from __future__ import annotations

import re

from streamlint.interpreter.values import Buffer, Event, Stream
from streamlint.operations import (
    Alloc,
    Block,
    Callback,
    Copy,
    Create,
    Direction,
    Evidence,
    Free,
    HostRead,
    HostWrite,
    Launch,
    Memory,
    Opaque,
    Operation,
    Query,
    Record,
    Spawn,
    Synchronize,
    Wait,
)

_WAYS = {
    Direction.H2D: "a copy to the device",
    Direction.D2H: "a copy from the device",
    Direction.D2D: "a copy on the device",
    Direction.H2H: "a copy on the host",
}
_SHORT = {
    HostRead: "the read",
    HostWrite: "the write",
    Copy: "the copy",
    Launch: "the launch",
    Opaque: "the call",
    Wait: "the wait",
    Synchronize: "the wait of the host",
    Record: "the record",
    Alloc: "the allocation",
    Free: "the free",
}
_STREAMS = {
    "null": "the default stream",
    "ptds": "the thread's own default stream",
    "ambient": "the stream that is current at the entry (taken as the default one)",
    "parameter": "a stream that was handed in",
    "foreign": "a stream from out of view",
}
_SIMPLE = {
    Create: "makes a {what}",
    Query: "asks whether something is done, without waiting",
    Callback: "puts a host function on a stream",
    Block: "blocks until another thread lets it go",
    Spawn: "starts other code beside this",
    Record: "records an event",
    Synchronize: "makes the host wait",
    Wait: "makes a stream wait",
}


def short(operation: Operation) -> str:
    """``the copy``."""
    return _SHORT.get(type(operation), "the operation")


def sentence(operation: Operation) -> str:
    """What an operation is, with its facts: the predicate of a sentence about its line."""
    name = f" ({operation.name})" if operation.name else ""
    if isinstance(operation, Copy):
        return _copy(operation, name)
    if isinstance(operation, Launch):
        return f"is device work{name} on {stream(operation.stream)}"
    if isinstance(operation, HostRead | HostWrite):
        verb = "reads" if isinstance(operation, HostRead) else "writes"
        return f"{verb} {memory(operation.buffer)} on the host{name}"
    if isinstance(operation, Alloc | Free):
        pool = ", from a pool that seldom asks the driver" if operation.cached else ""
        return f"{'allocates' if isinstance(operation, Alloc) else 'frees'} {operation.memory.value} memory{name}{pool}"
    if isinstance(operation, Opaque):
        return f"calls `{shown_callee(operation)}`, whose body is not at hand"
    words = _SIMPLE.get(type(operation), "uses the device").format(what=getattr(operation, "what", ""))
    return words + name + _object(operation)


def _copy(copy: Copy, name: str) -> str:
    what = _WAYS.get(copy.direction, "a copy whose direction is unknown")
    how = "asynchronous" if copy.asked_async else "synchronous"
    return f"is {what}, {how}{name}, on {stream(copy.stream)}; {host_side(copy)}"


def host_side(copy: Copy) -> str:
    """What is known of the host memory of a copy."""
    if copy.direction is Direction.D2D:
        return "no host memory takes part"
    return f"its host memory is {copy.host_memory.value}{_named(host_buffer(copy))}"


def host_buffer(copy: Copy) -> Buffer | None:
    """The side of a copy that is on the host, as far as the direction says."""
    return copy.src if copy.direction is Direction.H2D else copy.dst if copy.direction is Direction.D2H else copy.src or copy.dst


def memory(buffer: Buffer | None) -> str:
    """A buffer with the kind of its memory."""
    if buffer is None:
        return "memory that is not known"
    kind = "host" if buffer.storage.host and buffer.storage.memory is Memory.UNKNOWN else buffer.storage.memory.value
    return f"{kind} memory{_named(buffer)}"


def _named(buffer: Buffer | None) -> str:
    name = name_of(buffer)
    return f" ({name})" if name else ""


def name_of(buffer: Buffer | None) -> str:
    """Where memory came from: ``parameter `batch` ``, `` `self.x` ``; empty where nothing names it."""
    if buffer is None:
        return ""
    name = buffer.storage.name
    if match := re.fullmatch(r"[\w.<>:~]*?:(\w+)(?:\[.*)?", name):
        return f"parameter `{match[1]}`"
    if buffer.storage.trail:
        step = buffer.storage.trail[0]
        return f"{step.message.removesuffix(' here')} in line {step.span.row}"
    if re.fullmatch(r"[\w.\[\]]+", name):
        return f"`{name}`"
    made = re.search(r"@.*:(\d+):\d+", name)
    return f"from line {made[1]}" if made else ""


def stream(value: Stream | None) -> str:
    """A stream, as far as it is known."""
    if value is None:
        return "a stream that is not known"
    if value.kind in _STREAMS:
        return _STREAMS[value.kind]
    return f"the stream made in line {value.trail[0].span.row}" if value.trail else "a stream of its own"


def target(value: Event | Stream | None) -> str:
    """What is waited for."""
    if value is None:
        return "the whole device"
    if isinstance(value, Stream):
        return stream(value)
    return "an event that is not known, which is taken to be behind everything" if value.unknown else "an event"


def _object(operation: Operation) -> str:
    if isinstance(operation, Synchronize):
        return f" for {target(operation.of)}"
    if isinstance(operation, Wait):
        return f": {stream(operation.stream)} for {target(operation.on)}"
    if isinstance(operation, Record):
        return f" on {stream(operation.stream)}"
    return ""


def shown_callee(operation: Opaque) -> str:
    """The callee's name without the function whose parameter it is."""
    return operation.callee.partition("@")[0].rpartition(":")[2] or "a value"


def evidence(level: Evidence) -> str:
    """How surely a value is on a CUDA device."""
    return {
        Evidence.NONE: "nothing says that the tensor is on a CUDA device",
        Evidence.SCOPE: "only the code around says that the tensor is on a CUDA device",
        Evidence.DEFAULT: "only a default says that the device is CUDA",
    }.get(level, "the tensor is on a CUDA device")
