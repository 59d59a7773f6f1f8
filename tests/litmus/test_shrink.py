"""The smallest program that still shows something, and names for what it shows."""

from __future__ import annotations

import itertools

import pytest

from streamlint.litmus.generate import programs
from streamlint.litmus.predict import observed, strengths
from streamlint.litmus.program import Program, parse, without
from streamlint.litmus.shrink import kind_of, smallest

LONG = """access
T1 eventRecord @n1 #0
T1 launch @b1 <gate
T1 malloc
T1 streamWaitEvent @n2 #0
T2 launch @null
T2 launch @n2"""


def has(*lines: str):
    """Whether a program has calls that read like this, whoever's they are."""
    return lambda program: all(any(str(call).endswith(f" {line}") for call in program.calls) for line in lines)


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ((), "T0 launch @b1 <gate"),
        (("launch @null",), "T0 launch @b1 <gate\nT0 launch @null"),
        (("malloc", "streamWaitEvent @n2 #0"), "T0 launch @b1 <gate\nT0 malloc\nT0 streamWaitEvent @n2 #0"),
        (("eventRecord @n1 #0",), "T0 eventRecord @n1 #0\nT0 launch @b1 <gate"),
    ],
)
def test_what_is_not_needed_goes(lines: tuple[str, ...], left: str) -> None:
    assert str(smallest(parse(LONG), has(*lines), 60)) == left


def test_threads_are_merged_only_where_that_does_not_matter() -> None:
    def other_thread(program: Program) -> bool:
        threads = {str(call).split(" ", 1)[1]: call.thread for call in program.calls}
        return "launch @null" in threads and threads["launch @null"] != threads["launch @b1"]

    assert str(smallest(parse(LONG), other_thread, 60)) in ("T0 launch @b1 <gate\nT1 launch @null", "T1 launch @b1 <gate\nT0 launch @null")


def test_peer_access_stays_where_it_matters() -> None:
    assert str(smallest(parse(LONG), lambda program: program.access, 60)) == "access\nT0 launch @b1 <gate"


def test_what_nothing_can_be_taken_from_stays() -> None:
    whole = parse(LONG)
    assert smallest(whole, lambda program: program == whole, 60) == whole


def test_without_time_nothing_is_done() -> None:
    assert smallest(parse(LONG), lambda _program: True, 0.0) == parse(LONG)


def test_every_program_shrinks_to_one_that_disagrees_and_cannot_lose_a_call() -> None:
    """Half of the null stream's barrier turned round."""
    truth, turned = strengths(), strengths("blocking-waits-for-null")

    def disagrees(program: Program) -> bool:
        return observed(program, truth) != observed(program, turned)

    found = {
        smallest(gated, disagrees, 60)
        for program in itertools.islice(programs(3), 500)
        for gate in program.gates()
        if disagrees(gated := program.gated(gate))
    }
    assert len(found) > 10
    assert parse("T0 launch @null <gate\nT0 launch @b1") in found
    for program in found:
        assert disagrees(program)
        less = [without(program, number) for number in range(len(program.calls))]
        assert not any(disagrees(other) for other in less if other is not None), program
        assert len(program.calls) <= 3, program


# Kinds ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "expected", "seen", "kind"),
    [
        ("T0 launch @null <gate\nT0 launch @b1", "h0 h1", "h0 h1 d1", "+ d launch@b while gate launch@null"),
        ("T0 launch @n2 <hostgate\nT0 launch @b1", "h0 h1 d1", "h0 h1", "- d launch@b while hostgate launch@n"),
        ("T0 launch @n1 <gate\nT0 malloc", "h0 h1", "h0", "- h malloc while gate launch@n"),
        ("T0 launch @n1 <gate\nT0 free\nT1 launch @n2", "h0", "h0 h2", "+ h launch@n while gate launch@n, free waits"),
        ("T0 launch @n1 <gate\nT0 eventQuery #0", "h0 h1 r1", "h0 h1", "- r eventQuery while gate launch@n"),
        ("T0 launch @n1 <gate\nT0 graphLaunch @b1", "h0 h1", "h0 h1 x1:900", "+ x graphLaunch@b while gate launch@n"),
        # what is missing names the kind, whatever else is seen; of several, the first call
        ("T0 launch @n1 <gate\nT0 malloc\nT1 free\nT2 hostAlloc", "h0 h2 h3", "h0 h1", "- h free while gate launch@n"),
    ],
)
def test_a_kind_says_what_was_held_and_who_did_otherwise(program: str, expected: str, seen: str, kind: str) -> None:
    assert kind_of(parse(program), frozenset(expected.split()), frozenset(seen.split())) == kind


def test_streams_of_one_kind_are_one_kind() -> None:
    texts = [f"T0 launch @null <gate\nT1 launch @{blocking}" for blocking in ("b1", "b2")]
    assert {kind_of(parse(text), frozenset({"h0", "h1"}), frozenset({"h0", "h1", "d1"})) for text in texts} == {
        "+ d launch@b while gate launch@null"
    }
