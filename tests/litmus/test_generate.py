"""Random programs, pairs and the warm-up: the same every time, whole, and fit to run."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from streamlint.cuda_model import EFFECTS, FACTS, Strength
from streamlint.litmus import generate
from streamlint.litmus.generate import pairs, programs, warm_up, works_on_second_device
from streamlint.litmus.program import CAPTURES, PEER_STREAMS, STREAMS, THREADS, Program, device_of, needs_peers, parse

ROOM = 16  # the most calls that the lab has flags, buffers and graphs for


def drawn(count: int, seed: int = 1, *, peers: bool = False) -> list[Program]:
    return list(itertools.islice(programs(seed, peers=generate.PEERS if peers else 0.0), count))


ALONE, TWO = drawn(3000), drawn(3000, peers=True)
BOTH = pytest.mark.parametrize("found", [ALONE, TWO], ids=["one device", "two"])


def test_the_same_seed_gives_the_same_programs() -> None:
    assert drawn(300, 7) == drawn(300, 7)
    assert drawn(300, 7, peers=True) == drawn(300, 7, peers=True)


def test_different_seeds_give_different_programs() -> None:
    firsts = [drawn(20, seed) for seed in range(20)]
    assert len({program for found in firsts for program in found}) == 400


def test_every_call_is_drawn() -> None:
    assert {call.call for program in TWO for call in program.calls} == {*EFFECTS, *CAPTURES}


def test_without_a_second_device_nothing_is_drawn_that_needs_it() -> None:
    calls = {call for program in ALONE for call in program.calls}
    assert {call.call for call in calls} == {*(name for name, effect in EFFECTS.items() if not effect.peer), *CAPTURES}
    assert {call.stream for call in calls} == {*STREAMS, ""}
    assert not any(program.access for program in ALONE)


def test_with_a_second_device_some_programs_are_about_it() -> None:
    about = [program for program in TWO if any(call.stream == "q1" for call in program.calls)]
    assert 0.1 < len(about) / len(TWO) < 0.5
    assert {call.stream for program in about for call in program.calls} == {*PEER_STREAMS, ""}
    assert {program.access for program in about} == {True, False}
    assert not any(program.access for program in TWO if not needs_peers(program) and any(call.stream == "ptds" for call in program.calls))


def test_the_second_device_is_given_only_what_it_can_do() -> None:
    there = {call.call for program in TWO for call in program.calls if call.stream == "q1"}
    assert there == {name for name in EFFECTS if works_on_second_device(name)}
    assert there > {
        "launch",
        "launchHostFunc",
        "eventRecord",
        "mallocAsync",
        "freeAsync",
        "memcpyPeerAsync",
        "memcpyAsync.peer",
        "launch.peer",
    }
    assert not there & {"malloc", "memcpy.peer", "memcpyPeer", "memcpyAsync.d2h.pinned.small", "graphLaunch"}


def test_few_events_are_recorded_on_both_devices() -> None:
    """CUDA refuses the second of such records."""
    both = 0
    for program in TWO:
        devices: dict[int, set[int]] = {}
        for call in program.calls:
            if call.call == "eventRecord" and call.event is not None:
                devices.setdefault(call.event, set()).add(device_of(call.stream))
        both += any(len(found) > 1 for found in devices.values())
    assert 0 < both < len(TWO) // 50


def test_programs_on_two_devices_alone() -> None:
    found = list(itertools.islice(programs(3, peers=1.0), 400))
    assert sum(any(call.device for call in program.calls) for program in found) > len(found) // 2
    assert not any(call.stream == "ptds" or call.captures for program in found for call in program.calls)


@BOTH
def test_an_event_is_used_behind_a_record_of_it(found: list[Program]) -> None:
    for program in found:
        recorded = set()
        for call in program.calls:
            if call.call == "eventRecord":
                recorded.add(call.event)
            assert call.event is None or call.event in recorded, program


@BOTH
def test_programs_can_be_read_and_run(found: list[Program]) -> None:
    for program in found:
        assert program.gates(), "a program without a gate is drawn again"
        assert parse(str(program.gated(program.gates()[0]))) == program.gated(program.gates()[0])
        assert 4 <= len(program.calls) <= ROOM


@BOTH
def test_programs_are_of_many_kinds(found: list[Program]) -> None:
    """Each kind often enough that an hour of them is not an hour of one."""
    count = Counter()
    for program in found:
        count[f"{len({call.thread for call in program.calls})} threads"] += 1
        count[program.kind] += 1
        count["capture"] += any(call.captures for call in program.calls)
        count["event"] += any(call.call == "streamWaitEvent" for call in program.calls)
    for kind in ("1 threads", "2 threads", "3 threads", "gate", "hostgate", "capture", "event"):
        assert 0.04 < count[kind] / len(found) < 0.97, kind


def test_a_capture_begins_and_ends_once_in_one_thread() -> None:
    captures = [program for program in ALONE if any(call.captures for call in program.calls)]
    assert 0.05 < len(captures) / len(ALONE) < 0.3
    for program in captures:
        begin, end = (call for call in program.calls if call.captures)
        assert begin.call.startswith("beginCapture.")
        assert end.call == "endCapture"
        assert (begin.thread, begin.stream) == (end.thread, end.stream)
        assert begin.stream != "null"
        assert program.calls.index(end) - program.calls.index(begin) > 1, "there is something in it"


# Pairs and warm-up ------------------------------------------------------------------------------------------------------------


def test_pairs_can_be_read_and_are_all_different() -> None:
    found = list(pairs())
    assert len(set(found)) == len(found)
    for program in found[:: len(found) // 500]:
        assert parse(str(program)) == program


def test_pairs_put_every_call_beside_every_call_that_may_wait() -> None:
    found = list(pairs())
    here = {name for name, effect in EFFECTS.items() if not effect.peer}
    waiting = {name for name in here if any(FACTS[wait.fact].strength > Strength.NEVER for wait in EFFECTS[name].waits)} - {
        "eventSynchronize"
    }
    assert {(program.calls[-2].call, program.calls[-1].call) for program in found} == set(itertools.product(waiting, here))
    for program in found:
        assert {call.thread for call in program.calls[:-1]} == {0}
        assert program.calls[-1].thread == 1
        assert program.gate == 0
        assert len(program.calls) in (2, 3)


@pytest.mark.parametrize("peers", [False, True])
def test_the_warm_up_makes_each_call_on_each_stream_from_each_thread(peers: bool) -> None:
    seen = {(call.thread, call.call, call.stream) for program in warm_up(peers=peers) for call in program.calls}
    for name, effect in EFFECTS.items():
        streams = STREAMS if effect.stream == "own" else ("",)
        wanted = set(itertools.product(range(THREADS), [name], streams))
        assert wanted <= seen or (effect.peer and not peers)
    there = {name for thread, name, stream in seen if stream == "q1"}
    assert there == ({name for name in EFFECTS if works_on_second_device(name)} if peers else set())
    assert any(EFFECTS[call].peer for _, call, _ in seen) is peers


@pytest.mark.parametrize("peers", [False, True])
def test_the_warm_up_can_be_read_and_run(peers: bool) -> None:
    found = list(warm_up(peers=peers))
    for program in found:
        assert len(program.calls) <= ROOM
        gated = program.gated(program.gates()[0])
        assert parse(str(gated)) == gated
    assert {program.access for program in found} == ({True, False} if peers else {False})


def test_calls_are_made_often_or_seldom_by_names_that_exist() -> None:
    assert {*generate._OFTEN, *generate._SELDOM} <= set(EFFECTS)
