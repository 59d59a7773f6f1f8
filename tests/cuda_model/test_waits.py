"""What the interpreter asks of a copy: does the host wait, for what, and how surely."""

from __future__ import annotations

import itertools

import pytest

from streamlint.cuda_model import EFFECTS, FACTS, STAGED_BYTES, Effect, Scope, Strength, copy_wait
from streamlint.cuda_model.waits import BIG_BYTES
from streamlint.operations import Direction, Memory

NEVER, MAY, OBSERVED, GUARANTEED = Strength
ITSELF, BEFORE = Scope.ITSELF, Scope.BEFORE

MEMORIES = (Memory.PINNED, Memory.PAGEABLE, Memory.UNKNOWN, Memory.MANAGED, Memory.DEVICE)
# direction, asynchronous: strength for the memory of the host's side
COPIES = {
    (Direction.H2D, True): (NEVER, MAY, MAY, MAY, MAY),
    (Direction.H2D, False): (GUARANTEED, GUARANTEED, GUARANTEED, OBSERVED, GUARANTEED),
    (Direction.D2H, True): (NEVER, OBSERVED, MAY, MAY, MAY),
    (Direction.D2H, False): (GUARANTEED, GUARANTEED, GUARANTEED, OBSERVED, GUARANTEED),
    (Direction.D2D, True): (NEVER,) * 5,
    (Direction.D2D, False): (NEVER,) * 5,
    (Direction.PEER, True): (NEVER,) * 5,
    (Direction.PEER, False): (NEVER,) * 5,
    (Direction.H2H, True): (GUARANTEED,) * 5,
    (Direction.H2H, False): (GUARANTEED,) * 5,
    (Direction.UNKNOWN, True): (MAY,) * 5,
    (Direction.UNKNOWN, False): (MAY,) * 5,
}
CASES = [(*key, memory, strength) for key, row in COPIES.items() for memory, strength in zip(MEMORIES, row, strict=True)]
SIZES = (None, 0, 1, STAGED_BYTES, BIG_BYTES, BIG_BYTES + 1, 1 << 30)
# A pageable upload waits for what is before it, and is over before its bytes have arrived; all other copies that wait, wait for themselves.
STAGED = {(Direction.H2D, Memory.PAGEABLE)}


@pytest.mark.parametrize(("direction", "asynchronous", "memory", "strength"), CASES)
def test_strength_and_scope_of_a_copy(direction: Direction, asynchronous: bool, memory: Memory, strength: Strength) -> None:
    wait = copy_wait(direction, memory, asynchronous)
    assert wait.strength is strength
    assert wait.scope is (BEFORE if (direction, memory) in STAGED else ITSELF)
    assert wait.source


def test_the_table_is_whole() -> None:
    assert set(COPIES) == set(itertools.product(Direction, (True, False)))
    assert set(MEMORIES) == set(Memory)


@pytest.mark.parametrize(
    ("nbytes", "strength"),
    [(None, MAY), (0, MAY), (STAGED_BYTES, MAY), (BIG_BYTES, MAY), (BIG_BYTES + 1, OBSERVED), (1 << 30, OBSERVED)],
)
def test_a_pageable_upload_was_seen_to_wait_when_it_is_big(nbytes: int | None, strength: Strength) -> None:
    assert copy_wait(Direction.H2D, Memory.PAGEABLE, True, nbytes).strength is strength


@pytest.mark.parametrize(("direction", "asynchronous", "memory"), [case[:3] for case in CASES])
def test_the_size_of_any_other_copy_does_not_matter(direction: Direction, asynchronous: bool, memory: Memory) -> None:
    if (direction, memory, asynchronous) == (Direction.H2D, Memory.PAGEABLE, True):
        return
    assert len({copy_wait(direction, memory, asynchronous, nbytes) for nbytes in SIZES}) == 1


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("memory", Memory)
def test_a_synchronous_form_waits_no_less_than_the_asynchronous_one(direction: Direction, memory: Memory) -> None:
    for nbytes in SIZES:
        assert copy_wait(direction, memory, False, nbytes).strength >= copy_wait(direction, memory, True, nbytes).strength


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("asynchronous", [True, False])
def test_of_unknown_memory_nothing_is_said_that_its_kinds_do_not_share(direction: Direction, asynchronous: bool) -> None:
    unknown, pinned, pageable = (copy_wait(direction, memory, asynchronous).strength for memory in (Memory.UNKNOWN, *MEMORIES[:2]))
    guaranteed = pinned is pageable is GUARANTEED
    assert (unknown is GUARANTEED) is guaranteed
    assert (unknown is NEVER) is (pinned is pageable is NEVER)


# Rows against the question ----------------------------------------------------------------------------------------------------

ROWS = [row for row in EFFECTS.values() if row.call.startswith("memcpy")]


@pytest.mark.parametrize("row", ROWS, ids=[row.call for row in ROWS])
def test_the_answer_is_that_of_the_row(row: Effect) -> None:
    (wait,) = row.waits
    asked = copy_wait(row.direction, row.memory, row.asynchronous, 1 << 30 if row.big else 64)
    assert (asked.strength, asked.source, asked.scope) == (FACTS[wait.fact].strength, FACTS[wait.fact].source, wait.scope)


def test_nothing_about_allocations_and_frees_is_guaranteed() -> None:
    """No race may be excused by an allocation or a free: documents only say that these may synchronize."""
    objects = [
        row for row in EFFECTS.values() if row.stream == "" and row.call.lower().startswith(("malloc", "free", "host", "unregister"))
    ]
    strengths = {row.call: FACTS[row.waits[0].fact].strength for row in objects}
    assert {call for call, strength in strengths.items() if strength is OBSERVED} == {"free", "freeHost", "freeManaged", "hostUnregister"}
    assert {call for call, strength in strengths.items() if strength is NEVER} == {"freeOrdered"}
    assert {call for call, strength in strengths.items() if strength is MAY} == {"malloc", "hostAlloc", "hostRegister", "mallocManaged"}
    assert GUARANTEED not in strengths.values()
