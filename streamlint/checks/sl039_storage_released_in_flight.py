"""SL039 storage-released-in-flight."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Conflict, Drop, Operation

_MESSAGES = {
    "resize": "storage freed while another stream may still access it; the allocator may reuse the block",
    "replace": "storage replaced while another stream may still access it; the allocator may reuse the block",
}


class StorageReleasedInFlight(Check):
    """The storage of a tensor is released while another stream may still be using it.

    ## What it does
    Reports ``x.untyped_storage().resize_(0)``, ``x.set_(…)`` and ``x.data = …`` where another stream than the one that allocated the
    storage has used it, and the allocating stream does not wait for that use: no ``wait_stream``, event, synchronization or
    ``record_stream`` comes between. A finding requires evidence that the block is reused: a later allocation on the same stream, or a
    return to a caller that runs on it. A tensor from an unknown caller counts as allocated on the stream that is current there.
    Where the last reference goes instead, SL007 reports it; ``cudaFreeAsync`` on the wrong stream is reported by SL006.

    ## Why is this bad
    The tensor object lives on, but its block returns to the caching allocator at once, in the order of the stream that allocated it.
    The next allocation of that size on that stream gets it and overwrites memory that the other stream is still using. Code that
    offloads or shards parameters does this for each layer in each step: the values are wrong now and then, and no error is raised.

    ## Example
    ```python
    side = torch.cuda.Stream()
    for shard in shards:
        full = torch.rand(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            shard.copy_(full, non_blocking=True)
        full.untyped_storage().resize_(0)
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    for shard in shards:
        full = torch.rand(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            shard.copy_(full, non_blocking=True)
        full.record_stream(side)
        full.untyped_storage().resize_(0)
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## When it is fine
    The allocating stream waits for the other one before the release or before its next allocation, the host has synchronized with the
    other stream, ``record_stream`` was called, another tensor keeps the old storage (``set_`` and ``data``
    only), or the storage was allocated on the stream that uses it.

    ## Verify
    A gate blocks the second stream before its read, the storage is released, and a new tensor of the same size is allocated and filled
    on the first stream: the read sees the values of the new tensor.

    ## References
    - PyTorch, ``torch.Tensor.record_stream``
    - PyTorch, ``torch.UntypedStorage.resize_``
    - PyTorch, CUDA semantics, "CUDA streams"
    """

    code = "SL039"
    name = "storage-released-in-flight"
    category = Category.RACE
    languages = ("Python", "C++")
    fixes = ("unsafe",)
    rests_on = ("stream-order", "event-order")

    def report(self, use: Operation, drop: Drop, kind: str, reuse: Span | None, other: tuple[Step, ...]) -> Finding:
        """A release that nothing orders behind a use, as a finding. ``reuse`` is the next allocation, None where that is the caller's
        affair; ``other`` is where the stream of the use was made."""
        trail = [Step("allocated here", drop.allocated)] if drop.allocated is not None else []
        trail.append(Step("used on another stream here; the allocating stream does not wait for it", use.span))
        trail += [Step(f"the other stream: {step.message}", step.span) for step in other]
        if reuse is not None:
            trail.append(Step("this allocation may reuse the block", reuse))
        else:
            trail.append(Step("the caller's next allocation on that stream may reuse the block", drop.span))
        return self.finding(
            use,
            _MESSAGES[kind],
            span=drop.span,
            trail=tuple(trail),
            help="call record_stream(other) on the tensor, or make the allocating stream wait for the other stream before the release",
            conflict=Conflict(use, drop),
            facts={"kind": kind, "api": drop.api},
        )
