"""What ways from a wait come to, and within what they are followed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from streamlint.ir import Instruction
from streamlint.waits.known import Fact
from streamlint.waits.wait import Wait

MOST_BRIEF = 8
"""Brief operations that are no work: the device is done with them as soon as the host has started the last one."""


class Reach(NamedTuple):
    """What the ways from a place come to first: waits; whether one comes to the end of the round or call; whether one may queue work; and
    how many brief operations one of them queues at most."""

    waits: tuple[Wait, ...] = ()
    passes: bool = False
    queues: bool = False
    brief: int = 0


QUEUES = Reach(queues=True)


class Limits(NamedTuple):
    """Within what ways are followed: the loop's first block, the blocks of a round, edges that are left out, and what holds."""

    head: int
    within: frozenset[int] | None
    without: frozenset[tuple[int, int]]
    facts: Mapping[Fact, bool]
    later: Mapping[Fact, bool]
    """What holds in the round that follows too."""


class Way(NamedTuple):
    """A block that is come to, with what computes a value that was not read yet; ``is_next``: in the round that follows;
    ``begins``: from before the loop whose head it is."""

    block: int
    pending: frozenset[Instruction]
    is_next: bool
    begins: bool
