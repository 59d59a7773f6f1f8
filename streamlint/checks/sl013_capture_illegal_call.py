"""SL013 capture-illegal-call."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Copy, Direction, Launch, Operation, Refusal

# What happens, and what to do, by the kind of a refusal.
_MESSAGES = {
    "synchronize": "{operation} during stream capture; it invalidates the capture (status {status})",
    "query": "{operation} during stream capture; it invalidates the capture (status {status})",
    "copy": "{operation} on a captured stream; the host wait invalidates the capture (status {status})",
    "unpinned": "{operation} with pageable memory during stream capture; PyTorch raises an error",
    "allocate": "{operation} during stream capture; it fails (status {status}) unless the capture is relaxed",
    "pin": "{operation} during stream capture; its event queries fail with status {status}",
    "register": "{operation} during stream capture; it fails (status {status}) unless the capture is relaxed",
    "free": "{operation} during stream capture; it fails (status {status}) unless the capture is relaxed",
    "callback": "{operation} on a captured stream; it invalidates the capture (status {status})",
    "graph-launch": "{operation} on a captured stream; it invalidates the capture (status {status})",
    "null-stream": "{operation} on the null stream during a blocking stream's capture; error status {status}",
    "outside": "{operation} on a stream outside the capture; it runs once, never in replays",
    "outside-wait": "captured stream waits for work outside the capture; it fails with status {status}",
    "unjoined": "{operation} on an unjoined forked stream; the capture ends with status {status}",
    "pinning-thread": "stream capture while a loader's thread pins memory; its calls invalidate the capture (status {status})",
    "dead-event": "{operation} on an event recorded in a capture; it fails with status {status}",
}
_HELP = {
    "synchronize": "synchronize before the capture begins, or after the replay",
    "query": "query before the capture begins, or after the replay",
    "copy": "keep the value on the device during the capture, and read it after the replay",
    "unpinned": "copy before the capture, or from a pinned buffer with non_blocking=True",
    "allocate": "allocate before the capture begins",
    "pin": "pin the buffer before the capture begins",
    "register": "register the memory before the capture begins",
    "free": "free it after the capture has ended",
    "callback": "use cudaLaunchHostFunc (launch_host_func), which can be captured",
    "graph-launch": "launch the graph after the capture, or add it as a child graph",
    "null-stream": "pass the captured stream, or capture a non-blocking stream",
    "outside": "fork the stream from the captured one first (wait_stream), and join it before the capture ends",
    "outside-wait": "wait for that work before the capture begins",
    "unjoined": "make the captured stream wait for the forked one before the capture ends",
    "pinning-thread": 'capture before the loop over the loader, or with capture_error_mode="thread_local"',
    "dead-event": "record another event outside the capture",
}


class CaptureIllegalCall(Check):
    """A call that stream capture rejects, or work that the captured graph does not contain.

    ## What it does
    Reports operations during a known CUDA graph capture that CUDA rejects: synchronizing or querying, reads of device values
    (``item()``, ``cpu()``, ``print``, a branch on a tensor), unpinned copies, allocations and frees that reach the driver, null-stream
    work while a blocking stream is captured, and waits for work from before the capture. Also reports work on a side stream that was
    not forked from the captured stream, or is not joined to it, and captures in the loop over a ``DataLoader`` whose thread pins memory.

    ## Why is this bad
    The call returns ``cudaErrorStreamCaptureUnsupported`` (900) or a similar error, and the capture is invalidated; every later call in
    it fails too, so the visible message rarely names the cause. Work on a stream outside of the capture is worse: it raises no error,
    but runs once, during the capture, and never in a replay.

    ## Example
    ```python
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        norm = torch.linalg.vector_norm(weights.cuda())
        torch.cuda.synchronize()
    ```

    ## Use instead
    ```python
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        norm = torch.linalg.vector_norm(weights.cuda())
    graph.replay()
    torch.cuda.synchronize()
    ```

    ## When it is fine
    Warm-up before the capture and reads after a replay. ``cudaMalloc`` and waits for other streams in a relaxed capture (CuPy's
    default). Null-stream calls during the capture of a non-blocking stream raise no error. A fork without launches need not be joined.

    ## Verify
    The snippet captures a graph on the GPU; the status code is the verdict.

    ## References
    - CUDA Programming Guide, CUDA Graphs, prohibited and unhandled operations
    - ``cudaThreadExchangeStreamCaptureMode``
    - PyTorch, CUDA semantics, CUDA graphs, constraints
    """

    code = "SL013"
    name = "capture-illegal-call"
    category = Category.ERROR
    default = "on"
    rests_on = (
        "capture-refuses-unsafe-calls",
        "capture-refuses-the-null-stream",
        "capture-refuses-synchronization",
        "capture-must-be-joined",
    )

    def report(self, operation: Operation) -> Finding:
        """The finding of an operation that a capture refuses."""
        refusal = operation.refused
        assert refusal is not None
        return self.finding(
            operation,
            _MESSAGES[refusal.kind].format(operation=self._named(operation), status=f"{refusal.status}"),
            span=self._place(operation, refusal),
            trail=self._trail(operation, refusal),
            help=_HELP[refusal.kind],
            facts={"kind": refusal.kind, "status": int(refusal.status), "api": operation.api},
        )

    def _place(self, operation: Operation, refusal: Refusal) -> Span:
        """The operation, or the call in the region that reaches it; a fork that is not joined is wrong where it launches."""
        calls = operation.context.calls
        return calls[0] if calls and refusal.kind != "unjoined" else operation.span

    def _trail(self, operation: Operation, refusal: Refusal) -> tuple[Step, ...]:
        place = self._place(operation, refusal)
        if refusal.kind == "pinning-thread":
            return refusal.trail
        steps = [Step("reached through this call", span) for span in operation.context.calls if span != place]
        there = (Step("rejected here", operation.span),) if place != operation.span else ()
        return (refusal.capture, *steps, *there, *refusal.trail)

    def _named(self, operation: Operation) -> str:
        last = operation.name.rpartition(".")[2].rpartition("::")[2]
        if isinstance(operation, Launch):
            return "device work" if operation.kind == "compute" else f"launch of {last}"
        if isinstance(operation, Copy):
            words = {Direction.D2H: "device read", Direction.H2D: "host-to-device copy"}
            return f"{words.get(operation.direction, 'copy')} ({last})"
        return f"call of {last}" if last else "this call"
