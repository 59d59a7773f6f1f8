"""What pools of stream-ordered memory do. Litmus programs tell orders, not blocks and bytes: templates of the rules show these."""

from __future__ import annotations

from streamlint.cuda_model.strength import Fact, Strength

NEVER, MAY, OBSERVED, GUARANTEED = Strength
_GUIDE = "Programming Guide, Stream-Ordered Memory Allocator"

POOLS: tuple[Fact, ...] = (
    Fact(
        "ordered-memory-is-there-at-once",
        "Memory from cudaMallocAsync can be used on any stream as soon as the call has returned.",
        NEVER,
        f"{_GUIDE}: the access on another stream must be ordered after the allocation, otherwise the behavior is undefined",
        "H100: what the stream of the allocation still does with the block overwrites what another stream has written, in 20 of 20 runs",
    ),
    Fact(
        "pool-keeps-unused-memory",
        "The default pool keeps the memory that nobody uses when the host synchronizes.",
        NEVER,
        f"{_GUIDE}, physical page caching: what exceeds the release threshold, 0 by default, goes back at the next synchronization",
        "H100: the pool holds 0 bytes after the synchronization of each round, and all of them with a threshold",
    ),
)
