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
    ),
    Fact(
        "symmetric-memory-is-unordered",
        "What a rank writes to symmetric memory is there for its peers without a barrier or signal.",
        NEVER,
        "PyTorch, symmetric memory: barrier, put_signal and wait_signal synchronize ranks; OpenSHMEM and NVSHMEM, memory model",
    ),
)
