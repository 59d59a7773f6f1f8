"""SL042 symmetric-memory-without-barrier."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class SymmetricMemoryWithoutBarrier(Check):
    """A peer's symmetric memory is read before the peer has written it, or rewritten before the peer has read it.

    ## What it does
    Reports a read of a peer's symmetric buffer after a write of the own one with no barrier or signal of the ranks between, and a write of
    the own buffer after a read of the peer's. The same holds for a rank that writes into its peer's buffer. A barrier on another stream
    than the read or the write, with no event between, counts as none.

    ## Why is this bad
    All ranks run the same program, but not at the same time. Without a barrier a rank reads the old values of its peer's buffer, or the
    peer still reads while the rank fills its buffer again. Nothing fails; the values are wrong. Barriers and signals work on the current
    stream: ``torch.cuda.synchronize()`` waits for no other rank.

    ## Example
    ```python
    mine = torch.distributed._symmetric_memory.empty(1024, device="cuda")
    handle = torch.distributed._symmetric_memory.rendezvous(mine, group)
    theirs = handle.get_buffer(1 - handle.rank, mine.shape, mine.dtype)
    mine.fill_(1.0)
    total = theirs.sum()
    ```

    ## Use instead
    ```python
    mine = torch.distributed._symmetric_memory.empty(1024, device="cuda")
    handle = torch.distributed._symmetric_memory.rendezvous(mine, group)
    theirs = handle.get_buffer(1 - handle.rank, mine.shape, mine.dtype)
    mine.fill_(1.0)
    handle.barrier()
    total = theirs.sum()
    ```

    ## When it is fine
    Other code orders the ranks: a kernel that uses the signal pads, a store, a queue between processes. Two buffers in turns need one
    barrier for each iteration.

    ## Verify
    The peer begins once a gate is open: a read without a barrier gives the old values of its buffer. If a gate holds the read, it gives
    the values of the next iteration, which the peer has filled in by then.

    ## References
    - PyTorch, torch.distributed._symmetric_memory, SymmetricMemory.hpp
    - pytorch #137171, #188005
    - OpenSHMEM specification, memory model
    """

    code = "SL042"
    name = "symmetric-memory-without-barrier"
    category = Category.RACE
    languages = ("Python",)
    rests_on = ("stream-order", "event-order", "symmetric-memory-is-unordered")

    def report(self, second: Operation, first: Span, writes: bool, is_peer: bool, barrier: Span | None) -> Finding:
        """An access that nothing orders with what the peers do, as a finding."""
        whose = "its own" if is_peer else "a peer's"
        steps = [Step(f"each rank {'reads' if writes else 'writes'} {whose} symmetric memory here", first)]
        if barrier is not None:
            steps.append(Step("barrier on another stream here; no event leads from it to the access", barrier))
        done = "may still read it" if writes else "may not have written it"
        if is_peer:
            message = f"peer's symmetric memory {'written' if writes else 'read'} without a barrier; the peer {done}"
        else:
            message = f"symmetric memory {'rewritten' if writes else 'read'} without a barrier; a peer {done}"
        return self.finding(
            second,
            message,
            trail=(*steps, *call_trail(second)),
            help="call the handle's barrier() between the two, on the stream of both",
            facts={"api": second.api},
        )
