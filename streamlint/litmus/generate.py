"""Random programs. The same seed gives the same programs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from streamlint.cuda_model import EFFECTS, FACTS, Strength
from streamlint.litmus.program import (
    PEER_STREAMS,
    STREAMS,
    THREADS,
    Call,
    Program,
    can_be_gated,
    device_of,
    takes_event,
    works_on_second_device,
)

CALLS = (4, 9)
# How often a call is drawn, where it is not once in a while (1).
_OFTEN = {
    "launch": 14,
    "eventRecord": 5,
    "streamWaitEvent": 5,
    "launchHostFunc": 2,
    "streamSynchronize": 2,
    "eventSynchronize": 2,
    "freeAsync": 1.5,
}
_SELDOM = {"deviceSynchronize": 0.7, "firstLaunch": 0.5}
_CAPTURES = 0.12  # the share of programs with a capture in them
PEERS = 0.3  # the share of programs on two devices, where there are two
_PEER_CALLS = 4.0  # how often a call about both devices is drawn in such a program
_FOREIGN_RECORDS = 0.1  # the share of records, in such a program, of an event that may be of the other device
_HOST_GATES = 0.1


def programs(seed: int, *, peers: float = 0.0) -> Iterator[Program]:
    """An endless stream of programs, without a gate yet: the runner puts one before each call that can have it.

    ``peers`` is the share of them that is on two devices.
    """
    rng = random.Random(seed)
    while True:
        program = _program(rng, peers=peers > 0 and rng.random() < peers)
        if program.gates():
            yield program


def _program(rng: random.Random, *, peers: bool) -> Program:
    size, threads = rng.randint(*CALLS), rng.choice((1, 2, 2, 3))
    names = rng.sample(PEER_STREAMS if peers else STREAMS, rng.randint(2, 4))
    if peers and "q1" not in names:
        names[0] = "q1"
    calls = _calls(rng, size, threads, names, peers=peers)
    if not peers and rng.random() < _CAPTURES:
        _add_capture(rng, calls, names)
    kind = "hostgate" if rng.random() < _HOST_GATES else "gate"
    return Program(tuple(calls), 0, kind, peers and rng.random() < 0.5)


def _calls(rng: random.Random, size: int, threads: int, names: list[str], *, peers: bool) -> list[Call]:
    calls: list[Call] = []
    choice = [call for call, effect in EFFECTS.items() if peers or not effect.peer]
    weights = [_OFTEN.get(call, _SELDOM.get(call, _PEER_CALLS if EFFECTS[call].peer else 1.0)) for call in choice]
    events: list[int] = []  # the device of each
    while len(calls) < size:
        name = rng.choices(choice, weights)[0]
        stream = rng.choice(names) if EFFECTS[name].stream == "own" else ""
        among = _events(rng, name, stream, events, peers=peers) if takes_event(name) else []
        if takes_event(name) and not among:
            continue
        event = rng.choice(among) if among else None
        if stream == "q1" and not works_on_second_device(name):
            continue
        if event == len(events):
            events.append(device_of(stream))
        calls.append(Call(rng.randrange(threads), name, stream, event))
    return calls


def _events(rng: random.Random, name: str, stream: str, events: list[int], *, peers: bool) -> list[int]:
    """The numbers of the events that a call may take: a record mostly takes a new one."""
    foreign = name != "eventRecord" or (peers and rng.random() < _FOREIGN_RECORDS)
    known = [number for number, device in enumerate(events) if foreign or device == device_of(stream)]
    new = name == "eventRecord" and (not known or rng.random() < 0.8)
    return [len(events)] if new else known


def _add_capture(rng: random.Random, calls: list[Call], names: list[str]) -> None:
    streams = [name for name in names if name != "null"]
    stream = rng.choice(streams)
    thread = rng.randrange(THREADS) if stream != "ptds" else calls[0].thread
    begin = rng.randrange(len(calls) // 2 + 1)
    calls.insert(begin, Call(thread, "beginCapture." + rng.choice(("global", "global", "threadLocal", "relaxed")), stream))
    calls.insert(rng.randint(begin + 2, len(calls)), Call(thread, "endCapture", stream))


def pairs() -> Iterator[Program]:
    """Every call that may wait, its stream held shut, beside every call of a second thread on each kind of stream."""
    for waiting in _waiting():
        for name, effect in EFFECTS.items():
            if effect.peer:
                continue
            for stream in ("null", "b1", "b2", "n1", "ptds") if effect.stream == "own" else ("",):
                beside = Call(1, name, stream, 0 if takes_event(name) else None)
                yield Program((*waiting, beside))


def _waiting() -> Iterator[tuple[Call, ...]]:
    for name, effect in EFFECTS.items():
        may = any(FACTS[wait.fact].strength > Strength.NEVER for wait in effect.waits)
        if not may or effect.peer or takes_event(name):
            continue
        if effect.stream == "own":
            for stream in ("null", "b1", "n1", "ptds"):
                call = Call(0, name, stream)
                yield (call,) if can_be_gated(call) else (Call(0, "launch", stream), call)
        elif effect.stream == "null":
            yield (Call(0, name),)
        else:
            yield Call(0, "launch", "n2"), Call(0, name)


def warm_up(*, peers: bool) -> Iterator[Program]:
    """Each call once on each stream that it can have: what is loaded or grown the first time is so before a gate shuts."""
    for name, effect in EFFECTS.items():
        if effect.peer and not peers:
            continue
        for thread in range(THREADS):
            calls = [
                Call(thread, name, stream, 0 if takes_event(name) else None) for stream in (STREAMS if effect.stream == "own" else ("",))
            ]
            yield Program((*calls, *(Call(thread, "launch", stream) for stream in STREAMS[: 16 - len(calls)])))
    if peers:
        second = [call for call in EFFECTS if works_on_second_device(call)]
        for access in (False, True):
            yield Program(tuple(Call(0, call, "q1", 0 if takes_event(call) else None) for call in second), access=access)
