"""What makes a stream wait: for an event, or for another stream. The host goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Action, Stream
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.order import is_event


class Waited(NamedTuple):
    """A stream waits for what a register holds: an event (``is_event``), or all that is queued on a stream. ``of`` may be NONE."""

    stream: Stream
    of: int
    name: str
    is_event: bool


def wait(call: ModelledCall) -> Iterator[Action]:
    """``s.wait_stream(t)``, ``stream.wait_event(event)``, ``event.wait(stream)``, ``cudaStreamWaitEvent``."""
    of = call.one("on")
    yield Waited(call.stream(), op.NONE if of is None else of, call.name, of is not None and is_event(call, of))


EFFECTS = {"wait": wait}
