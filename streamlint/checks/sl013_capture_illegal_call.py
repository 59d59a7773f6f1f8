"""SL013 capture-illegal-call."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, is_inside
from streamlint.operations import Copy, Direction, Launch, Opaque, Operation, Refusal

_MOST_GUARDS = 1  # undecided branches between the beginning of the capture and the call: more are guesses

# What happens, and what to do, by the kind of a refusal.
_MESSAGES = {
    "synchronize": "{what} while a stream is captured: refused with status {status}, and the capture is lost",
    "query": "{what} while a stream is captured: refused with status {status}, and the capture is lost",
    "copy": "{what} on a captured stream: the host waits for it, which is refused with status {status}, and the capture is lost",
    "unpinned": "{what} between pageable memory and a captured stream: PyTorch raises an error",
    "allocate": "{what} while a stream is captured: refused with status {status} unless the capture is relaxed",
    "pin": "{what} while a stream is captured: the cache of pinned blocks queries events, which is refused with status {status}",
    "register": "{what} while a stream is captured: refused with status {status} unless the capture is relaxed",
    "free": "{what} while a stream is captured: refused with status {status} unless the capture is relaxed",
    "callback": "{what} on a captured stream: refused with status {status}, and the capture is lost",
    "graph-launch": "{what} on a captured stream: refused with status {status}, and the capture is lost",
    "null-stream": "{what} uses the null stream while a blocking stream is captured: refused with status {status}",
    "outside": "{what} goes to a stream that is not in the capture: it runs once now, and no replay runs it",
    "outside-wait": "a captured stream waits for work from outside of the capture: refused with status {status}",
    "unjoined": "{what} is on a forked stream that the captured one never waits for: the capture ends with status {status}",
    "dead-event": "{what} of an event that was recorded in a capture: refused with status {status}",
}
_HELP = {
    "synchronize": "wait before the capture begins, or after the replay",
    "query": "ask before the capture begins, or after the replay",
    "copy": "keep the value on the device during the capture, and read it after the replay",
    "unpinned": "copy before the capture, or from a pinned buffer with non_blocking=True",
    "allocate": "allocate before the capture begins",
    "pin": "pin the buffer before the capture begins",
    "register": "register the memory before the capture begins",
    "free": "free it after the capture has ended",
    "callback": "use cudaLaunchHostFunc (launch_host_func), which can be captured",
    "graph-launch": "launch the graph after the capture, or add it as a child graph",
    "null-stream": "pass the captured stream, or capture a non-blocking stream",
    "outside": "let the stream wait for the captured one first (wait_stream), and the captured one for it at the end",
    "outside-wait": "wait before the capture begins",
    "unjoined": "let the captured stream wait for the forked one before the capture ends",
    "dead-event": "record another event outside of the capture",
}


class CaptureIllegalCall(Check):
    """A call that a stream capture refuses, or that it does not contain.

    ## What it does
    Reports calls that a CUDA graph capture in view refuses: synchronizing or querying, reads of device values (``item()``, ``cpu()``,
    ``print``, a branch on a tensor), unpinned copies, allocations and frees that reach the driver, null-stream work beside a blocking
    stream's capture, waits for work from before the capture, and work of a side stream that was not forked from the captured stream or is
    not joined to it.

    ## Why is this bad
    The call returns ``cudaErrorStreamCaptureUnsupported`` (900) or one of its kin and the whole capture is lost; every later call in it
    fails too, so the message that is seen rarely names the culprit. Work on a stream outside of the capture is worse: no error, but it runs
    once, while the graph is being recorded, and never in a replay.

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
    Warm-up before the capture and reads after a replay. ``cudaMalloc`` and waits for other streams in a relaxed capture (CuPy's default).
    Null-stream calls beside the capture of a non-blocking stream raise no error. A fork on which nothing was launched need not be joined.

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
    needs = ((("cuda.graph", "CUDAGraph", "graph(", "capture_begin", "begin_capture", "BeginCapture", "begin_building"),),)
    signs = needs[0][0]

    def begins_with(self, operation: Operation) -> bool:
        return operation.refused is not None or operation.context.capture is not None

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        refusal = operation.refused
        if refusal is None or operation.context.callback is not None or self._guessed(operation, refusal):
            return
        what = self._what(operation)
        yield self.finding(
            operation,
            _MESSAGES[refusal.kind].format(what=what, status=f"{refusal.status}"),
            span=self._place(operation, refusal),
            trail=self._trail(operation, refusal),
            help=_HELP[refusal.kind],
            facts={"kind": refusal.kind, "status": int(refusal.status), "api": operation.api},
        )

    def _guessed(self, operation: Operation, refusal: Refusal) -> bool:
        """Whether the call rests on more than one branch that nobody decided."""
        begin = refusal.capture.span
        guards = [g for g in operation.context.guards if g.span is None or not is_inside(begin, g.span)]
        return len(guards) > _MOST_GUARDS or any(guard.kind == "error" for guard in guards)

    def _place(self, operation: Operation, refusal: Refusal) -> Span:
        """The operation, or the call in the region that reaches it; a fork that is not joined is wrong where it launches."""
        calls = self._within(operation, refusal)
        return calls[0] if calls and refusal.kind != "unjoined" else operation.span

    def _within(self, operation: Operation, refusal: Refusal) -> tuple[Span, ...]:
        """Of the calls that led here, those in the region: where it runs a lambda that it was handed, that body is what is captured."""
        calls = operation.context.calls[refusal.depth :]
        entered = operation.context.functions[len(operation.context.functions) - len(calls) :]
        handed = next((number for number, name in enumerate(entered) if not name.endswith("<lambda>")), len(calls))
        return calls[handed:]

    def _trail(self, operation: Operation, refusal: Refusal) -> tuple[Step, ...]:
        place = self._place(operation, refusal)
        steps = [Step("reached through this call", span) for span in self._within(operation, refusal) if span != place]
        there = (Step("refused here", operation.span),) if place != operation.span else ()
        return (refusal.capture, *steps, *there, *refusal.trail)

    def _what(self, operation: Operation) -> str:
        last = operation.name.rpartition(".")[2].rpartition("::")[2] or "the call"
        if isinstance(operation, Opaque):
            return "device work"
        if isinstance(operation, Launch):
            return "device work" if operation.kind == "compute" else f"the work of {last}"
        if isinstance(operation, Copy):
            words = {Direction.D2H: "a read of a device value", Direction.H2D: "a copy to the device"}
            return f"{words.get(operation.direction, 'a copy')} ({last})"
        return f"the call of {last}"
