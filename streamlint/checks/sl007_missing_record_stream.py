"""SL007 missing-record-stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import ENTERED, Conflict, Drop, Operation, Work, on_other_stream


class MissingRecordStream(Check):
    """Memory goes back to its stream's pool while another stream may still be using it.

    ## What it does
    Reports tensors that are allocated on one stream, used on another, and whose last reference goes while nothing makes the first stream
    wait for that use: no ``wait_stream``, no event, no synchronization, no ``record_stream``. It reports only what is shown to be given out
    again: by an allocation on the first stream behind the drop, or by the caller, whose stream it is.

    ## Why is this bad
    PyTorch's caching allocator and CuPy's memory pool keep a free list for each stream. A block whose last reference goes is free at once,
    in the order of the stream that it was allocated on, and is handed to that stream's next allocation of its size. What is written there
    appears under the feet of the other stream's kernel or copy. No error is raised, and whether it goes wrong depends on how busy the GPU
    is.

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
    Where the allocating stream waits for the other one before its next allocation, where a reference is kept until an event says that the
    other stream is done, and where the tensor is allocated on the stream that uses it. Any one of these or ``record_stream`` is enough.

    ## Verify
    The second stream is held shut by a gate before its read, the tensor is dropped, and a new one of the same size is allocated and filled
    on the first stream: the read sees the new one's values.

    ## References
    - PyTorch, ``torch.Tensor.record_stream``
    - PyTorch, CUDA semantics, "CUDA streams"
    - CuPy, memory management, memory pool operations
    """

    code = "SL007"
    name = "missing-record-stream"
    category = Category.RACE
    default = "preview"
    rests_on = ("stream-order", "event-order")
    needs = ((("tream",),), (("cupy", "cp."), (ENTERED,)))
    signs = (*needs[0][0], *needs[1][0])
    on_lifetimes = True

    def begins_with(self, operation: Operation) -> bool:
        return on_other_stream(operation)

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        use, again, drop = conflict.first, conflict.second, conflict.drop
        if drop is None or drop.allocated is None or conflict.buffer is None:
            return
        if conflict.buffer.storage.on_host or use.context.callback or again.context.callback:
            return
        yield self.finding(
            use,
            "the block goes back to the pool of the stream that it was allocated on while another stream may still be using it",
            span=drop.allocated,
            trail=self._trail(use, drop, again),
            help=self._help(drop),
            conflict=conflict,
            facts={"api": drop.api, "stream": drop.stream.kind if drop.stream is not None else "unknown"},
        )

    def _trail(self, use: Operation, drop: Drop, again: Operation) -> tuple[Step, ...]:
        steps = [Step(f"the allocating stream: {step.message}", step.span) for step in drop.stream.trail[:1]] if drop.stream else []
        steps.append(Step("used on another stream here; the allocating stream does not wait for it", use.span))
        if isinstance(use, Work) and use.stream is not None:
            steps.extend(Step(f"the other stream: {step.message}", step.span) for step in use.stream.trail[:1])
        steps.append(Step("the last reference goes here", drop.span))
        if again is not drop:
            steps.append(Step("the allocating stream may be given the block again here", again.span))
        else:
            steps.append(Step("the caller allocates next on that stream, and may be given the block", drop.span))
        return (*steps, *(step for step in call_trail(use, "the use is reached from here") if step.span not in drop.calls))

    def _help(self, drop: Drop) -> str:
        if drop.api == "cupy":
            return (
                "make the allocating stream wait for the other one before the array goes, or keep a reference until the other one is done"
            )
        return "call record_stream() of the other stream on it, or make the allocating stream wait for the other one before it goes"
