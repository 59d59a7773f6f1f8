"""What documents promise, by a second account of it: one that knows nothing of clocks and walks from call to call."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from streamlint.cuda_model import FACTS, Fact, Strength
from streamlint.litmus.predict import leaves_a_mark, observed, strengths
from streamlint.litmus.program import STREAMS, Call, Program, parse, takes_event

PROMISED = {name: fact.strength if fact.strength is Strength.GUARANTEED else Strength.NEVER for name, fact in FACTS.items()}
# Calls that return at once by all documents, and are in the order that documents speak of.
PLAIN = ("launch", "launch", "graphLaunch", "launchHostFunc", "memcpyAsync.d2h.pinned.small", "memsetAsync.device", "eventRecord")
ISSUED = (*PLAIN, "eventRecord", "streamWaitEvent", "streamWaitEvent")


def null(call: Call) -> bool:
    return call.stream == "null"


def blocking(call: Call) -> bool:
    return call.stream in ("b1", "b2", "ptds")


def before(calls: tuple[Call, ...], number: int) -> Iterator[int]:
    """The earlier calls that call ``number`` is put behind, one step back."""
    call = calls[number]
    if call.call == "streamWaitEvent":
        records = [other for other in range(number) if calls[other].call == "eventRecord" and calls[other].event == call.event]
        if not records:
            return  # there is nothing to wait for, so nothing is waited for
        yield records[-1]
    for other in range(number):
        earlier = calls[other]
        if unrecorded(calls, other) or (earlier.call == "eventRecord" and not null(earlier)):
            continue  # a record is an action on the null stream alone
        same = earlier.clock == call.clock
        barrier = (null(call) and blocking(earlier)) or (null(earlier) and blocking(call) and call.call != "streamWaitEvent")
        if same or barrier:
            yield other


def unrecorded(calls: tuple[Call, ...], number: int) -> bool:
    """Whether a call waits for an event that was not recorded before it."""
    call = calls[number]
    return call.call == "streamWaitEvent" and not any(c.call == "eventRecord" and c.event == call.event for c in calls[:number])


def held(program: Program) -> set[int]:
    """The calls whose work is behind the gate: the gated one, and all that a path leads to."""
    found: set[int] = {program.gate}
    for number in range(program.gate + 1, len(program.calls)):
        if not program.calls[number].call.endswith("Query") and found & set(before(program.calls, number)):
            found.add(number)
    return found


def programs(seed: int, count: int) -> Iterator[Program]:
    """Programs of plain calls on one thread or two, with a query of each stream and event at the end."""
    rng = random.Random(seed)
    for _ in range(count):
        streams = rng.sample(STREAMS, rng.randint(2, 4))
        calls = [Call(0, "launch", rng.choice(streams))]
        for _ in range(rng.randint(3, 9)):
            name = rng.choice(ISSUED)
            calls.append(Call(rng.randrange(2), name, rng.choice(streams), rng.randrange(2) if takes_event(name) else None))
        calls += [Call(0, "streamQuery", stream) for stream in streams] + [Call(0, "eventQuery", "", event) for event in range(2)]
        yield Program(tuple(calls))


def ready(program: Program, behind: set[int], query: int) -> bool:
    """Whether a query finds nothing unfinished."""
    calls, call = program.calls, program.calls[query]
    if call.call == "eventQuery":
        records = [number for number in range(query) if calls[number].call == "eventRecord" and calls[number].event == call.event]
        return not records or records[-1] not in behind
    works = [number for number in behind if calls[number].call != "eventRecord" or null(calls[number])]
    return not any(calls[number].clock == call.clock or (null(call) and blocking(calls[number])) for number in works)


def walked(program: Program) -> set[str]:
    """The outcome, by the walk."""
    behind = held(program)
    words = {f"h{number}" for number in range(len(program.calls))}
    for number, call in enumerate(program.calls):
        if leaves_a_mark(call) and number not in behind:
            words.add(f"d{number}")
        if call.call.endswith("Query") and ready(program, behind, number):
            words.add(f"r{number}")
    return words


@pytest.mark.parametrize("table", [PROMISED, strengths()], ids=["promised", "observed"])
@pytest.mark.parametrize("seed", range(4))
def test_order_is_what_a_walk_from_call_to_call_says(seed: int, table: dict[str, Strength]) -> None:
    for program in programs(seed, 250):
        assert observed(program, table) == walked(program), program


def test_the_walk_says_yes_and_no() -> None:
    marks, queries = [], []
    for program in programs(0, 250):
        words = walked(program)
        marks += [f"d{number}" in words for number, call in enumerate(program.calls) if leaves_a_mark(call)]
        queries += [f"r{number}" in words for number, call in enumerate(program.calls) if call.call.endswith("Query")]
    assert 0.3 < sum(marks) / len(marks) < 0.7
    assert 0.3 < sum(queries) / len(queries) < 0.9


PROMISES = [fact for fact in FACTS.values() if fact.strength is Strength.GUARANTEED]


@pytest.mark.parametrize("fact", PROMISES, ids=[fact.name for fact in PROMISES])
def test_the_program_of_a_promise_rests_on_promises_alone(fact: Fact) -> None:
    program = parse(fact.shown_by)
    assert observed(program, PROMISED) == observed(program, strengths())
