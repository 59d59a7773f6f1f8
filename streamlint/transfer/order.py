"""What orders: waits of the host, records of events, queries."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.objects import LibraryObject
from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, DEVICE, NULL, Action, Asked, Freed, Lost, Recorded, Signalled, Stream, Synchronized, Viewed
from streamlint.transfer.modelled import ModelledCall


def synchronize(call: ModelledCall) -> Iterator[Action]:
    """The host waits for a stream, an event or the device."""
    of = call.row.get("of")
    if of in (CURRENT, NULL):
        yield Synchronized(Stream(str(of), library=call.row.library), call.name)
        return
    register = call.one("of", call.receiver) if of != DEVICE else None
    if register is None:
        yield Synchronized(None, call.name)
    elif is_event(call, register):
        yield Synchronized(register, call.name)
    else:
        yield Synchronized(call.stream_in(register), call.name)


def is_event(call: ModelledCall, register: int) -> bool:
    """Whether a register holds an event, no stream."""
    kinds = {value.kind for value in call.values(register) if isinstance(value, LibraryObject)}
    return "event" in kinds if kinds & {"event", "stream"} else "vent" in call.name


def record(call: ModelledCall) -> Iterator[Action]:
    """An event is recorded; a method of a stream may make it, and gives back the one that it was given."""
    event, is_method = call.one("event"), call.receiver is not None
    yield Recorded(call.result if event is None else event, call.stream())
    if event is not None and is_method and event != call.receiver:
        yield Recorded(call.result, call.stream())


def query(call: ModelledCall) -> Iterator[Action]:
    """A question whether work is done: a truth value, or a status of the runtime."""
    of = call.one("of", call.receiver)
    yield Asked(op.NONE if of is None else of, call.row.library in call.facts.models.marked("driver") or ".runtime." in call.name)


def capture(call: ModelledCall) -> Iterator[Action]:
    """The end of a capture: what was captured runs when the graph is replayed."""
    if call.text("part") == "end":
        yield Synchronized(None, call.name)


def stream_of(call: ModelledCall) -> Iterator[Action]:
    """A stream that wraps the handle of another library's: the same stream."""
    if call.text("which") == "external" and (source := call.one("from")) is not None:
        yield Viewed(source)


def callback(call: ModelledCall) -> Iterator[Action]:
    """A host function behind the work of a stream: what it is given may tell that the work is done."""
    yield Signalled(call.stream(), call.operands)


def free(call: ModelledCall) -> Iterator[Action]:
    """Memory that the driver frees: the host waits; that of the heap goes at once."""
    if call.row.library in call.facts.models.marked("frees-at-once"):
        if (memory := call.one("of")) is not None:
            yield Freed(memory, call.name)
    elif call.row.get("stream") is None:
        yield Synchronized(None, call.name)


def unregister(call: ModelledCall) -> Iterator[Action]:
    """Memory is no longer page-locked: the host waits for what uses it."""
    yield Synchronized(None, call.name)


def block(call: ModelledCall) -> Iterator[Action]:
    """The host waits for another thread, or ends."""
    yield Lost(call.operands)


def symmetric(call: ModelledCall) -> Iterator[Action]:
    """Ranks wait for one another: who else waits for whom is not known. Others have methods of these names as well."""
    held = call.values(call.receiver) if call.receiver is not None else ()
    is_known = call.text("part") in ("memory", "rendezvous") or any(isinstance(value, LibraryObject) for value in held)
    if call.text("part") in ("rendezvous", "barrier", "wait") or not is_known:
        yield Lost(call.operands)


EFFECTS = {
    "synchronize": synchronize,
    "record": record,
    "query": query,
    "free": free,
    "unregister": unregister,
    "capture": capture,
    "callback": callback,
    "stream_of": stream_of,
    "block": block,
    "exit": block,
    "unknown": block,
    "communicator": block,
    "symmetric": symmetric,
}
