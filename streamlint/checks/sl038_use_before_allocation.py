"""SL038 use-before-allocation."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Launch, Operation, call_trail


class UseBeforeAllocation(Check):
    """Memory of a stream-ordered allocation is used first on another stream that does not wait for the allocation.

    ## What it does
    Reports device work that is the first use of memory from ``cudaMallocAsync`` or another stream-ordered allocation, on another stream
    than that of the allocation, where no event and no synchronization puts the allocation first.

    ## Why is this bad
    The pointer is known at once, but the allocation takes place when its stream reaches it. Until then the block may belong to earlier
    work of that stream, whose writes then overwrite the new contents. The behavior is undefined, and no error is raised.

    ## Example
    ```cuda
    float* rows = nullptr;
    cudaMallocAsync(&rows, nbytes, loading);
    normalize<<<128, 256, 0, computing>>>(rows);
    ```

    ## Use instead
    ```cuda
    float* rows = nullptr;
    cudaMallocAsync(&rows, nbytes, loading);
    cudaEventRecord(allocated, loading);
    cudaStreamWaitEvent(computing, allocated, 0);
    normalize<<<128, 256, 0, computing>>>(rows);
    ```

    ## When it is fine
    The allocation and the use are on the same stream, the null stream orders the two (blocking streams), the second stream waits for an
    event recorded after the allocation, or the host synchronizes first. Work of the allocating stream that fills the memory before
    another stream uses it is a matter of SL006. So are the caching allocators of PyTorch and CuPy, whose blocks are safe to use anywhere
    unless their stream still works on them.

    ## Verify
    Work of the first stream on a block that it has freed waits for a gate. The second stream fills the memory at once, and the old
    work overwrites it when the gate opens.

    ## References
    - CUDA Programming Guide, stream-ordered memory allocator, allocating memory
    - Compute Sanitizer, ``--track-stream-ordered-races``
    """

    code = "SL038"
    name = "use-before-allocation"
    category = Category.RACE
    rests_on = ("ordered-memory-is-there-at-once", "stream-order", "event-order", "null-barrier-holds-nonblocking")

    def report(self, allocated: Operation, use: Launch, streams: tuple[Step, ...]) -> Finding:
        """The first use of memory that may not be allocated yet, as a finding; ``streams`` are where the streams were made."""
        calls = (step for step in call_trail(use, "the use is reached from here") if step.span not in allocated.context.calls)
        return self.finding(
            use,
            "access to memory that another stream may not have allocated yet; nothing orders them",
            trail=(Step("allocated in the order of another stream here", allocated.span), *streams, *calls),
            help=self._help(use),
            facts={"api": use.api},
        )

    def _help(self, use: Launch) -> str:
        if use.api == "cupy":
            return "call wait_event() on this stream, with an event recorded after the allocation, or allocate on this stream"
        return "make this stream wait for an event recorded after the allocation, or allocate on the stream that uses the memory first"
