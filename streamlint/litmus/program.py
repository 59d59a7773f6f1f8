"""A litmus program: what a few host threads call, in one fixed order of issue, and where the gate stands.

A text has a line for each call, ``T<thread> <call> [@stream] [#event]``; the call that the gate is put before ends in ``<gate`` (a kernel
that spins) or ``<hostgate`` (a host function that blocks). ``#`` at the start of a line is a comment. Streams: ``null``; ``ptds``, the
calling thread's own default stream; ``b1``, ``b2`` blocking; ``n1``, ``n2`` non-blocking; ``q1`` non-blocking on a second device.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from streamlint.cuda_model.clocks import NULL
from streamlint.cuda_model.effects import EFFECTS, Effect, Work
from streamlint.support.errors import StreamlintError, did_you_mean

STREAMS = ("null", "ptds", "b1", "b2", "n1", "n2")
PEER_STREAMS = ("null", "b1", "n1", "n2", "q1")
THREADS = 3
MOST_CALLS = 16
GATES = ("gate", "hostgate")
# Calls of the lab's own, beside those of the model: a capture's begin and end.
CAPTURES = ("beginCapture.global", "beginCapture.threadLocal", "beginCapture.relaxed", "endCapture")
_ON_SECOND_DEVICE = {
    "launch",
    "launchHostFunc",
    "eventRecord",
    "streamWaitEvent",
    "streamSynchronize",
    "streamQuery",
    "mallocAsync",
    "freeAsync",
}
_LINE = re.compile(r"T(?P<thread>\d)\s+(?P<call>[\w.]+)(?:\s+@(?P<stream>\w+))?(?:\s+#(?P<event>\d+))?(?:\s+<(?P<gate>\w+))?$")


class LitmusError(StreamlintError):
    """A text is not a litmus program; the message names the line."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of one thread. ``stream`` is a name of ``STREAMS``; ``event`` numbers the program's events."""

    thread: int
    call: str
    stream: str = ""
    event: int | None = None

    @property
    def effect(self) -> Effect:
        return EFFECTS[self.call]

    @property
    def captures(self) -> bool:
        return self.call in CAPTURES

    @property
    def clock(self) -> str:
        """The name of its stream's clock: each thread has a per-thread stream of its own."""
        if not self.captures and self.effect.stream == "null":
            return "null"
        return f"ptds{self.thread}" if self.stream == "ptds" else self.stream

    @property
    def on_null(self) -> bool:
        """Whether it works on the null stream."""
        return self.effect.stream != "" and self.clock == NULL

    @property
    def device(self) -> int:
        return device_of(self.stream)

    def __str__(self) -> str:
        stream = f" @{self.stream}" if self.stream else ""
        event = "" if self.event is None else f" #{self.event}"
        return f"T{self.thread} {self.call}{stream}{event}"


@dataclass(frozen=True, slots=True)
class Program:
    """``gate`` is the index of the call that a gate is put before; ``kind`` is the gate's. ``access``: peer access is enabled."""

    calls: tuple[Call, ...]
    gate: int = 0
    kind: str = "gate"
    access: bool = False

    def __str__(self) -> str:
        lines = ["access"] if self.access else []
        lines += [f"{call} <{self.kind}" if index == self.gate else str(call) for index, call in enumerate(self.calls)]
        return "\n".join(lines)

    def gated(self, gate: int, kind: str = "gate") -> Program:
        return replace(self, gate=gate, kind=kind)

    def gates(self) -> list[int]:
        """The calls that a gate can stand before: those that put work on a stream, outside of captures."""
        found: list[int] = []
        open_captures = 0
        for index, call in enumerate(self.calls):
            if call.captures:
                open_captures = open_captures + 1 if call.call.startswith("begin") else max(0, open_captures - 1)
            elif not open_captures and can_be_gated(call):
                found.append(index)
        return found


def can_be_gated(call: Call) -> bool:
    """Whether there is a stream to hold shut before this call."""
    return not call.captures and call.effect.stream != "" and call.effect.work in (Work.DEVICE, Work.HOST_FUNCTION, Work.PEER)


def parse(text: str, first: int = 1) -> Program:
    """Read a program. Raises :class:`LitmusError` with the line that is wrong; ``first`` is the number of the text's first line."""
    calls: list[Call] = []
    gate, kind, access = None, "gate", False
    for number, raw in enumerate(text.splitlines(), first):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if line == "access":
            access = True
            continue
        found = _LINE.match(line)
        if found is None:
            raise LitmusError(f"line {number}: '{line}' is no call; it should read like 'T0 launch @n1'")
        if found["gate"]:
            if found["gate"] not in GATES or gate is not None:
                raise LitmusError(f"line {number}: one call may end in '<gate' or '<hostgate'")
            gate, kind = len(calls), found["gate"]
        calls.append(_checked(number, found))
    if len(calls) > MOST_CALLS:
        raise LitmusError(f"a program has at most {MOST_CALLS} calls, this has {len(calls)}")
    if gate is None:
        raise LitmusError("no call ends in '<gate': nothing is held shut")
    program = Program(tuple(calls), gate, kind, access)
    if gate not in program.gates():
        raise LitmusError(f"a gate cannot stand before '{calls[gate]}': it puts no work on a stream, or stands within a capture")
    return program


def _checked(number: int, found: re.Match[str]) -> Call:
    call = Call(int(found["thread"]), found["call"], found["stream"] or "", None if found["event"] is None else int(found["event"]))
    if call.call not in EFFECTS and not call.captures:
        raise LitmusError(f"line {number}: unknown call '{call.call}'{did_you_mean(call.call, (*EFFECTS, *CAPTURES))}")
    if call.thread >= THREADS:
        raise LitmusError(f"line {number}: there are threads T0 to T{THREADS - 1}")
    takes = call.captures or call.effect.stream == "own"
    if takes != bool(call.stream) or (call.stream and call.stream not in (*STREAMS, *PEER_STREAMS)):
        raise LitmusError(f"line {number}: {call.call} takes {'a stream: @' + ', @'.join(STREAMS) if takes else 'no stream'}")
    if call.device and not works_on_second_device(call.call):
        raise LitmusError(f"line {number}: {call.call} is not run on the second device")
    if takes_event(call.call) != (call.event is not None):
        raise LitmusError(f"line {number}: {call.call} takes {'an event, as in #0' if call.event is None else 'no event'}")
    return call


def device_of(stream: str) -> int:
    """The device of a stream, by its name."""
    return 1 if stream.startswith("q") else 0


def works_on_second_device(call: str) -> bool:
    """The lab's second device has a stream, kernels, host functions, events and ordered memory; copies there are peer copies."""
    return call in _ON_SECOND_DEVICE or (EFFECTS[call].peer and EFFECTS[call].stream == "own")


def home_of(calls: Sequence[Call], event: int) -> int:
    """The device that an event is made on: that of the stream that first records it."""
    return next((call.device for call in calls if call.call == "eventRecord" and call.event == event), 0)


def takes_event(call: str) -> bool:
    return call in ("eventRecord", "streamWaitEvent", "eventSynchronize", "eventQuery")


def without(program: Program, index: int) -> Program | None:
    """The program with one call less; ``None`` if it is the gated one, the last, or the end of a capture around the gate."""
    if index == program.gate or len(program.calls) < 2:
        return None
    calls = program.calls[:index] + program.calls[index + 1 :]
    less = replace(program, calls=calls, gate=program.gate - (index < program.gate))
    return less if less.gate in less.gates() else None


def needs_peers(program: Program) -> bool:
    """Whether a program is about two devices."""
    return any(call.device or (not call.captures and call.effect.peer) for call in program.calls)


def outcome_text(tokens: Iterable[str]) -> str:
    """``h0 d0 h1``, in the order of the calls."""
    return " ".join(sorted(tokens, key=lambda token: (int(token[1:].split(":")[0]), token[0]))) or "nothing"
