"""The smallest program that still disagrees, and what kind of disagreement it is."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

from streamlint.litmus.predict import Outcome
from streamlint.litmus.program import Call, Program, without


def smallest(program: Program, disagrees: Callable[[Program], bool], seconds: float) -> Program:
    """Drop calls, then merge threads, as long as the disagreement stays; stops where it stands when time is up."""
    end = time.monotonic() + seconds
    moved = True
    while moved and time.monotonic() < end:
        moved = False
        for index in reversed(range(len(program.calls))):
            if time.monotonic() > end:
                break
            candidate = without(program, index)
            if candidate is not None and disagrees(candidate):
                program, moved = candidate, True
                break
        else:
            for candidate in _simpler(program):
                if time.monotonic() < end and disagrees(candidate):
                    program, moved = candidate, True
                    break
    return program


def _simpler(program: Program) -> list[Program]:
    used = sorted({call.thread for call in program.calls})
    found = [replace(program, access=False)] if program.access else []
    if used != list(range(len(used))):
        found.append(replace(program, calls=tuple(replace(call, thread=used.index(call.thread)) for call in program.calls)))
    for index, call in enumerate(program.calls):
        if call.thread > 0:
            calls = (*program.calls[:index], replace(call, thread=0), *program.calls[index + 1 :])
            found.append(replace(program, calls=calls))
    return found


def kind_of(program: Program, expected: Outcome, seen: Outcome) -> str:
    """A label that disagreements with one cause tend to share: what was held, and the first call that did otherwise."""
    missing, extra = expected - seen, seen - expected
    word = min(missing or extra, key=lambda text: int(text[1:].split(":")[0]))
    index = int(word[1:].split(":")[0])
    gated, other = program.calls[program.gate], program.calls[index]
    waiting = _waits_before(program, expected | seen, index)
    return f"{'-' if missing else '+'} {word[0]} {_place(other)} while {program.kind} {_place(gated)}" + (
        f", {waiting} waits" if waiting else ""
    )


def _waits_before(program: Program, returned: Outcome, index: int) -> str:
    for number, call in enumerate(program.calls[:index]):
        if f"h{number}" not in returned:
            return _place(call)
    return ""


def _place(call: Call) -> str:
    """The call and the kind of its stream."""
    stream = call.stream.rstrip("12") if call.stream else ""
    return f"{call.call}@{stream}" if stream else call.call
