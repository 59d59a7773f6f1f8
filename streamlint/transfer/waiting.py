"""What makes a stream wait: for an event, or for another stream. The host goes on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from streamlint.ir import opcodes as op
from streamlint.transfer.actions import Action, Stream
from streamlint.transfer.modelled import ModelledCall


class Waited(NamedTuple):
    """A stream waits for what a register holds: an event, or all that is queued on a stream."""

    stream: Stream
    of: int
    name: str


def wait(call: ModelledCall) -> Iterator[Action]:
    """``stream.wait_event(event)``, ``event.wait(stream)``, ``cudaStreamWaitEvent``."""
    of = call.one("on")
    yield Waited(call.stream(), op.NONE if of is None else of, call.name)


EFFECTS = {"wait": wait}
