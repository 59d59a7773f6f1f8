"""SL007 missing-record-stream."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Conflict, Drop, Operation, call_trail


class MissingRecordStream(Check):
    """Memory returns to the pool of its stream while another stream may still be using it.

    ## What it does
    Reports tensors that are allocated on one stream and used on another, and whose last reference is released before the first stream
    waits for that use: no ``wait_stream``, event, synchronization or ``record_stream`` comes between. A finding requires evidence that
    the block is reused: a later allocation on the same stream, or a return to a caller that runs on it.

    ## Why is this bad
    PyTorch's caching allocator and CuPy's memory pool keep a free list for each stream. A block is free as soon as its last reference
    is released, in the order of the stream that allocated it, and the next allocation of that size on that stream gets it. The next
    allocation then overwrites memory that the other stream is still using. No error is raised, and the outcome depends on the load of
    the GPU.

    ## Example
    ```python
    side = torch.cuda.Stream()
    for cpu in shards:
        gradient = torch.rand(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            cpu.copy_(gradient, non_blocking=True)
        del gradient
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    for cpu in shards:
        gradient = torch.rand(1 << 22, device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            cpu.copy_(gradient, non_blocking=True)
        gradient.record_stream(side)
        del gradient
    torch.cuda.current_stream().wait_stream(side)
    ```

    ## When it is fine
    The allocating stream waits for the other one before its next allocation, a reference is kept until an event shows that the other
    stream has finished, or the tensor is allocated on the stream that uses it. Any one of these, or ``record_stream``, is enough.

    ## Verify
    A gate blocks the second stream before its read, the tensor is released, and a new tensor of the same size is allocated and filled
    on the first stream: the read sees the values of the new tensor.

    ## References
    - PyTorch, ``torch.Tensor.record_stream``
    - PyTorch, CUDA semantics, "CUDA streams"
    - CuPy, memory management, memory pool operations
    """

    code = "SL007"
    name = "missing-record-stream"
    category = Category.RACE
    default = "preview"
    fixes = ("unsafe",)
    rests_on = ("stream-order", "event-order")

    def report(self, use: Operation, drop: Drop, reuse: Span | None, streams: tuple[tuple[Step, ...], tuple[Step, ...]]) -> Finding:
        """A release that nothing orders behind a use, as a finding. ``reuse`` is the next allocation, None where that is the caller's
        affair; ``streams`` are where the stream of the pool and the other one were made."""
        home, other = streams
        trail = [Step(f"the allocating stream: {step.message}", step.span) for step in home]
        trail.append(Step("used on another stream here; the allocating stream does not wait for it", use.span))
        trail += [
            *call_trail(use, "the use is reached from here"),
            *(Step(f"the other stream: {step.message}", step.span) for step in other),
        ]
        trail.append(Step("the last reference is released here", drop.span))
        if reuse is not None:
            trail.append(Step("this allocation may reuse the block", reuse))
        else:
            trail.append(Step("the caller's next allocation on that stream may reuse the block", drop.span))
        return self.finding(
            use,
            "memory freed while another stream may still access it; the allocator may reuse the block",
            span=drop.allocated,
            trail=tuple(trail),
            help=self._help(drop),
            conflict=Conflict(use, drop),
            facts={"api": drop.api},
        )

    def _help(self, drop: Drop) -> str:
        if drop.api == "cupy":
            return "make the allocating stream wait for the other stream before the array is released, or keep a reference until then"
        return "call record_stream(other) on the tensor, or make the allocating stream wait for the other stream before the release"
