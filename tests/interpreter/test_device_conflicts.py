"""Two streams and one buffer, and the host that fills a buffer in flight: the machine by itself."""

from __future__ import annotations

import pytest
from litmus_machine import Litmus, conflicts, without_order

# --- device against device --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("kernel a dev; use b dev", [(1, 2)], id="read after write"),
        pytest.param("use a dev; kernel b dev", [(1, 2)], id="write after read"),
        pytest.param("kernel a dev; kernel b dev", [(1, 2)], id="write after write"),
        pytest.param("use a dev; use b dev", [], id="two reads"),
        pytest.param("kernel a dev; use a dev", [], id="one stream"),
        pytest.param("upload a; use b dev", [(1, 2)], id="an upload, and work that reads it"),
        pytest.param("kernel a dev; copy b", [(1, 2)], id="work, and a download of what it writes"),
        pytest.param("kernel a dev; copy! b", [(1, 2)], id="a download that waits for its own stream alone"),
        pytest.param("kernel a dev; use p dev", [(1, 2)], id="a parameter is another stream"),
        pytest.param("kernel a dev[0]; use b dev[1]", [], id="parts apart"),
        pytest.param("kernel a dev[0]; use b dev", [(1, 2)], id="a part and the whole"),
        pytest.param("guess a dev; use b dev", [], id="a kernel not at hand may only have read"),
        pytest.param("use a dev; guess b dev", [], id="a kernel not at hand may only read"),
        pytest.param("kernel a dev; guess b dev", [(1, 2)], id="but read it does"),
    ],
)
def test_conflicts(program: str, expected: list[tuple[int, int]]) -> None:
    assert conflicts(program) == expected


@pytest.mark.parametrize(
    "program",
    [
        pytest.param("kernel a dev; *wait b a; use b dev", id="wait for the stream"),
        pytest.param("kernel a dev; record e a; *wait b e; use b dev", id="wait for an event"),
        pytest.param("kernel a dev; *sync a; use b dev", id="the host synchronized the stream"),
        pytest.param("kernel a dev; *sync device; use b dev", id="the host synchronized the device"),
        pytest.param("kernel a dev; *wait b u; use b dev", id="wait for an event from out of view"),
        pytest.param("kernel x dev; *kernel null other; use y dev", id="the barrier of null-stream work between"),
        pytest.param("kernel a dev; record e a; *wait null e; kernel null other; use x dev", id="the null stream waited, and holds x"),
    ],
)
def test_ordered_until_the_one_operation_is_removed(program: str) -> None:
    assert conflicts(program) == []
    assert len(conflicts(without_order(program))) == 1


@pytest.mark.parametrize("program", ["kernel x dev; use null dev", "kernel null dev; use x dev", "kernel null dev; use ptds dev"])
def test_blocking_streams_are_ordered_with_the_null_stream(program: str) -> None:
    assert conflicts(program) == []


def test_an_event_recorded_too_early_orders_nothing() -> None:
    assert conflicts("record e a; kernel a dev; wait b e; use b dev") == [(2, 4)]


def test_the_nearest_producer_is_told_and_what_follows_is_its_consequence() -> None:
    assert conflicts("kernel a dev; kernel a dev; use b dev; use b dev") == [(2, 3)]


def test_a_slot_that_is_filled_again_while_it_is_read() -> None:
    once = "upload a; wait b a; use b dev"
    assert conflicts(f"{once}; {once}") == [(3, 4)]
    assert conflicts(f"{once}; wait a b; {once}") == []


def test_a_conflict_says_which_of_the_two_writes() -> None:
    [read] = Litmus("use a dev; kernel b dev").machine.conflicts
    [write] = Litmus("kernel a dev; use b dev").machine.conflicts
    assert (read.missing, read.first_writes) == ("stream-wait", False)
    assert (write.missing, write.first_writes) == ("stream-wait", True)


# --- the host fills a buffer in flight --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param("upload a; write", [(1, 2)], id="while it is read"),
        pytest.param("copy a; write", [(1, 2)], id="while it is filled"),
        pytest.param("upload a; sync a; write", [], id="behind a synchronization"),
        pytest.param("upload a; record e a; sync e; write", [], id="behind an event"),
        pytest.param("upload a; wait b a; write", [(1, 3)], id="a stream's wait is not the host's"),
        pytest.param("upload a; write other", [], id="another buffer"),
        pytest.param("upload! a; write", [], id="behind a copy that waits"),
        pytest.param("upload a host[0]; write host[1]", [], id="another part"),
        pytest.param("upload a; call host; write", [], id="code out of view had it, and may have waited"),
        pytest.param("upload a; write; write", [(1, 2)], id="told once"),
    ],
)
def test_host_writes(program: str, expected: list[tuple[int, int]]) -> None:
    assert conflicts(program) == expected
