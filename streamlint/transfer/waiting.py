"""What makes a stream wait: for an event, or for another stream. The host goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.ir import opcodes as op
from streamlint.transfer.actions import CURRENT, UNKNOWN, Action, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.order import is_event


class Waited(NamedTuple):
    """A stream waits for what a register holds: an event (``is_event``), or all that is queued on a stream. ``of`` may be NONE."""

    stream: Stream
    of: int
    name: str
    is_event: bool


class Exchanged(NamedTuple):
    """A library takes memory over by a protocol that names its stream: that waits for the current stream of the memory's library."""

    stream: Stream
    of: Stream


def exchange(call: ModelledCall) -> Iterator[Exchanged]:
    """``cupy.from_dlpack(tensor)``; nobody is asked to wait for a bare capsule. CuPy's interface for arrays names its stream as well."""
    for register in call.all("of") if call.row.get("shares") else ():
        if is_capsule(call, register):
            continue
        libraries = {value.type.partition(".")[0] for value in call.memory(register)}
        of = Stream(CURRENT, library=libraries.pop()) if len(libraries) == 1 else Stream(UNKNOWN)
        if call.row.get("shares") == "dlpack" or of.library == "cupy":
            yield Exchanged(Stream(CURRENT, library=call.row.library), of)


def is_capsule(call: ModelledCall, register: int) -> bool:
    """Whether what a call is given is a pointer that another call has made of an array."""
    made = call.function.definitions[register] if register >= 0 else None
    rows = call.facts.rows(call.function, made) if made is not None and made[0] in (op.CALL, op.INVOKE) else ()
    return any(row.get("type") == "pointer" for row in rows)


def wait(call: ModelledCall) -> Iterator[Action]:
    """``s.wait_stream(t)``, ``stream.wait_event(event)``, ``event.wait(stream)``, ``cudaStreamWaitEvent``."""
    of = call.one("on")
    yield Waited(call.stream(), op.NONE if of is None else of, call.name, of is not None and is_event(call, of))


EFFECTS = {"wait": wait}
