"""What several ranks, each with a device of its own, may rely on. One process cannot show it: `streamlint verify` does, on two GPUs."""

from __future__ import annotations

from streamlint.cuda_model.strength import Fact, Strength

NEVER, MAY, OBSERVED, GUARANTEED = Strength

RANKS: tuple[Fact, ...] = (
    Fact(
        "collectives-need-one-order",
        "Collectives of several communicators end whatever order ranks start them in.",
        NEVER,
        "NCCL User Guide, Using multiple NCCL communicators concurrently: without one order on all ranks deadlocks could ensue;"
        " PyTorch, new_group: an asynchronous operation is waited for before another process group is used",
        "two H100s, NCCL of torch 2.11: 12 groups of 32 CTAs hang if ranks enter them crosswise, and end in one order; two of 16 CTAs end",
    ),
    Fact(
        "symmetric-memory-is-unordered",
        "What a rank writes to symmetric memory is there for its peers without a barrier or signal.",
        NEVER,
        "PyTorch, symmetric memory: barrier, put_signal and wait_signal synchronize ranks; OpenSHMEM and NVSHMEM, memory model",
        "two H100s: the old value in 20 of 20 runs",
    ),
)
