"""What is asked of a copy and of an allocation: does the host wait in it, and how surely."""

from __future__ import annotations

from streamlint.cuda_model.effects import EFFECTS, Scope, Waits
from streamlint.cuda_model.facts import FACTS
from streamlint.cuda_model.memory import Direction, Memory
from streamlint.cuda_model.strength import Strength
from streamlint.record import record


@record(frozen=True, slots=True)
class HostWait:
    """Whether a call returns only after what ``scope`` names has ended, how surely, and why we say so."""

    strength: Strength
    source: str
    scope: Scope = Scope.ITSELF


def _of(waits: tuple[Waits, ...]) -> HostWait:
    fact = FACTS[waits[0].fact]
    return HostWait(fact.strength, fact.source, waits[0].scope)


_COPIES: dict[tuple[Direction, Memory, bool, bool], HostWait] = {
    (row.direction, row.memory, row.asynchronous, row.big): _of(row.waits)
    for row in EFFECTS.values()
    if row.api.startswith("cudaMemcpy") and row.waits
}
_SYNCHRONOUS = HostWait(Strength.GUARANTEED, "API synchronization behavior: synchronous forms")


def copy_wait(direction: Direction, memory: Memory, asynchronous: bool, nbytes: int | None = None) -> HostWait:
    """Whether the host waits in a copy. ``nbytes`` sizes a pageable upload; unknown, it counts as one that is staged.

    Device-to-device copies never make the host wait. Memory of unknown kind gets what pinned and pageable memory share.
    """
    if direction is Direction.H2H:
        return _COPIES[Direction.H2H, Memory.PAGEABLE, True, False]
    if direction is Direction.D2D:
        return _COPIES[Direction.D2D, Memory.DEVICE, True, False]
    if direction is Direction.PEER:
        return _COPIES[Direction.PEER, Memory.UNKNOWN, asynchronous, False]
    big = nbytes is not None and nbytes > BIG_BYTES
    for size in (big, False):
        if found := _COPIES.get((direction, memory, asynchronous, size)):
            return found
    if not asynchronous and direction in (Direction.H2D, Direction.D2H):
        return _SYNCHRONOUS
    return HostWait(Strength.MAY, "memory of unknown kind")


_ALLOCATIONS = {Memory.DEVICE: "malloc", Memory.PINNED: "hostAlloc", Memory.MANAGED: "mallocManaged"}


def alloc_wait(memory: Memory) -> HostWait:
    """Whether the host waits for the device where the driver makes memory of this kind."""
    call = _ALLOCATIONS.get(memory)
    return _of(EFFECTS[call].waits) if call is not None else HostWait(Strength.MAY, "memory of unknown kind")


# Pageable uploads of more than this many bytes waited for their stream (H200: the line lies between 1 and 16 MB).
BIG_BYTES = 1 << 20
