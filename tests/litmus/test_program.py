"""Programs as text: what is read, what is refused and how, where a gate can stand."""

from __future__ import annotations

import itertools

import pytest

from streamlint.litmus.generate import programs
from streamlint.litmus.program import Call, LitmusError, Program, needs_peers, outcome_text, parse, without

BOTH = [
    alone.gated(gate, kind)
    for peers in (False, True)
    for alone in itertools.islice(programs(5, peers=peers), 250)
    for gate, kind in itertools.product(alone.gates()[:2], ("gate", "hostgate"))
]


def test_what_is_printed_is_read_as_the_same() -> None:
    assert len(BOTH) > 500
    for program in BOTH:
        assert parse(str(program)) == program


def test_reading_a_text() -> None:
    text = """
        # a comment
        access

        T0   eventRecord   @n1   #3
        T2 launch @q1 <hostgate
        T1 free
    """
    calls = (Call(0, "eventRecord", "n1", 3), Call(2, "launch", "q1"), Call(1, "free"))
    assert parse(text) == Program(calls, gate=1, kind="hostgate", access=True)
    assert str(parse(text)) == "access\nT0 eventRecord @n1 #3\nT2 launch @q1 <hostgate\nT1 free"


STREAM = "a stream: @null, @ptds, @b1, @b2, @n1, @n2"
NO_CALL = "is no call; it should read like 'T0 launch @n1'"
NOWHERE = "it puts no work on a stream, or stands within a capture"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("launch @n1", f"'launch @n1' {NO_CALL}"),
        ("T0 launch n1", f"'T0 launch n1' {NO_CALL}"),
        ("T0 launch @n1 # no comment here", f"'T0 launch @n1 # no comment here' {NO_CALL}"),
        ("T0 lunch @n1", "unknown call 'lunch'; did you mean 'launch'?"),
        ("T0 beginCapture.globl @n1", "unknown call 'beginCapture.globl'; did you mean 'beginCapture.global'?"),
        ("T0 qwxyz @n1", "unknown call 'qwxyz'"),
        ("T3 launch @n1", "there are threads T0 to T2"),
        ("T0 launch", f"launch takes {STREAM}"),
        ("T0 launch @n3", f"launch takes {STREAM}"),
        ("T0 endCapture", f"endCapture takes {STREAM}"),
        ("T0 malloc @n1", "malloc takes no stream"),
        ("T0 memcpy.d2d @n1", "memcpy.d2d takes no stream"),
        ("T0 eventRecord @n1", "eventRecord takes an event, as in #0"),
        ("T0 eventSynchronize", "eventSynchronize takes an event, as in #0"),
        ("T0 launch @n1 #0", "launch takes no event"),
        ("T0 launch @n1 <gate", "one call may end in '<gate' or '<hostgate'"),
    ],
)
def test_what_cannot_be_read(line: str, message: str) -> None:
    with pytest.raises(LitmusError) as problem:
        parse(f"# counted too\nT0 launch @b1 <gate\n{line}")
    assert str(problem.value) == f"line 3: {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no call ends in '<gate': nothing is held shut"),
        ("# only a comment", "no call ends in '<gate': nothing is held shut"),
        ("T0 launch @n1", "no call ends in '<gate': nothing is held shut"),
        ("T0 launch @n1 <door", "line 1: one call may end in '<gate' or '<hostgate'"),
        ("T0 malloc <gate", f"a gate cannot stand before 'T0 malloc': {NOWHERE}"),
        ("T0 eventRecord @n1 #0 <gate", f"a gate cannot stand before 'T0 eventRecord @n1 #0': {NOWHERE}"),
        ("T0 endCapture @n1 <gate", f"a gate cannot stand before 'T0 endCapture @n1': {NOWHERE}"),
        ("T0 beginCapture.global @n1\nT0 launch @n2 <gate", f"a gate cannot stand before 'T0 launch @n2': {NOWHERE}"),
    ],
)
def test_a_gate_must_stand_somewhere(text: str, message: str) -> None:
    with pytest.raises(LitmusError) as problem:
        parse(text)
    assert str(problem.value) == message


def test_no_more_calls_than_the_lab_has_room_for() -> None:
    """Flags, landing places and graphs are made for 16 calls."""
    line = "T0 launch @n1"
    assert len(parse("\n".join([f"{line} <gate", *[line] * 15])).calls) == 16
    with pytest.raises(LitmusError, match="16"):
        parse("\n".join([f"{line} <gate", *[line] * 16]))


# Gates ------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "gates"),
    [
        ("launch @n1; memset.device; memcpyAsync.d2d @b1; launchHostFunc @null; memcpyPeerAsync @q1; memcpyPeer", [0, 1, 2, 3, 4, 5]),
        ("eventRecord @n1 #0; streamWaitEvent @n1 #0; streamQuery @n1; mallocAsync @n1; freeAsync @n1; free; launch @n1", [6]),
        ("launch @n1; beginCapture.global @n1; launch @n1; launch @n2; endCapture @n1; launch @n1", [0, 5]),
        ("beginCapture.global @n1; beginCapture.global @n2; endCapture @n1; launch @b1; endCapture @n2; launch @b1", [5]),
        ("launch @b1; endCapture @n1; launch @b1; beginCapture.global @n1; launch @b1; endCapture @n1; launch @b1", [0, 2, 6]),
    ],
)
def test_gates_stand_before_work_outside_of_captures(text: str, gates: list[int]) -> None:
    assert program(text).gates() == gates


def program(text: str) -> Program:
    """A program of one thread; where its gate would stand is not looked at."""
    return Program(tuple(call(line) for line in text.split("; ")))


def call(line: str) -> Call:
    name, *rest = line.split()
    stream = next((word[1:] for word in rest if word[0] == "@"), "")
    event = next((int(word[1:]) for word in rest if word[0] == "#"), None)
    return Call(0, name, stream, event)


# Less of a program ------------------------------------------------------------------------------------------------------------


def test_without_a_call_the_gate_stays_where_it_was() -> None:
    whole = parse("T0 free\nT0 launch @n1 <hostgate\nT1 launch @n2")
    assert str(without(whole, 0)) == "T0 launch @n1 <hostgate\nT1 launch @n2"
    assert str(without(whole, 2)) == "T0 free\nT0 launch @n1 <hostgate"
    assert without(whole, 1) is None, "the gated one"
    assert str(whole) == "T0 free\nT0 launch @n1 <hostgate\nT1 launch @n2"


def test_a_gate_does_not_come_to_stand_in_a_capture() -> None:
    whole = parse("T0 beginCapture.global @n1\nT0 endCapture @n1\nT0 launch @n1 <gate")
    assert without(whole, 1) is None
    assert str(without(whole, 0)) == "T0 endCapture @n1\nT0 launch @n1 <gate"


def test_the_only_call_stays() -> None:
    assert without(parse("T0 launch @n1 <gate"), 0) is None


# Words ------------------------------------------------------------------------------------------------------------------------


def test_each_thread_has_a_per_thread_stream() -> None:
    calls = parse("T0 launch @ptds <gate\nT1 launch @ptds\nT0 memcpy.d2d\nT0 launch @n1").calls
    assert [call.clock for call in calls] == ["ptds0", "ptds1", "null", "n1"]


@pytest.mark.parametrize(
    ("text", "needs"),
    [("T0 launch @q1 <gate", True), ("T0 memcpyPeer <gate", True), ("T0 memcpyPeerAsync @n1 <gate", True), ("T0 launch @n1 <gate", False)],
)
def test_which_programs_need_two_devices(text: str, needs: bool) -> None:
    assert needs_peers(parse(text)) is needs


def test_outcomes_are_told_in_the_order_of_the_calls() -> None:
    assert outcome_text({"h10", "x2:900", "d2", "h2", "h0"}) == "h0 d2 h2 x2:900 h10"
    assert outcome_text(set()) == "nothing"
