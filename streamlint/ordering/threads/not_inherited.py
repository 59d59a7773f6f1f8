"""Threads that are started under a stream and work on the default stream: whose affair a race is that comes of it (SL026 tells it)."""

from __future__ import annotations

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ordering.paths.conditions import Frame
from streamlint.ordering.streams.streams import OF_THREAD, Currents
from streamlint.transfer.actions import CURRENT, NAMED, Stream


def starts_under_stream(currents: Currents, caller: Function, call: Instruction) -> bool:
    """Whether a call starts a thread while a stream is current, which the thread does not inherit."""
    around = currents.around_start(caller, call) if currents.at(caller, call) is OF_THREAD else None
    return around is not None and around.kind == NAMED


def is_not_inherited(currents: Currents, frame: Frame, one: Instruction, stream: Stream) -> bool:
    """Whether the stream of an instruction is the default stream only because a thread runs it which another stream was current for."""
    inner: Frame | None = frame
    at: Instruction | None = one if stream.kind == CURRENT and stream.register < 0 else None
    is_in_thread = False
    while inner is not None and at is not None:
        if currents.at(inner.function, at) is OF_THREAD:
            is_in_thread = True
            if starts_under_stream(currents, inner.function, at):
                return True
        elif (around := currents.at(inner.function, at)) is not None:
            return is_in_thread and around.kind == NAMED
        at, inner = inner.call, inner.caller
    return False
