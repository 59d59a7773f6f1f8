"""SL029 stream-churn."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Copy, Create, Destroy, Launch, LoopFrame, Operation, Record, Synchronize, Wait

_POOL = 32  # torch's streams per priority and device
_QUIET = ("devices", "setup", "teardown", "tuning", "retry")


class StreamChurn(Check):
    """A stream is created for each piece of work.

    ## What it does
    Reports streams that are created in a loop and used in the same iteration, so that each iteration has a new stream.

    ## Why is this bad
    Creating a stream is a driver call that takes a lock and may wait. PyTorch instead cycles through a pool of 32 streams: the 33rd is
    the first one again, and work that should run concurrently is serialized.

    ## Example
    ```python
    for batch in batches:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            results.append(net(batch.to("cuda", non_blocking=True)))
    ```

    ## Use instead
    ```python
    stream = torch.cuda.Stream()
    for batch in batches:
        with torch.cuda.stream(stream):
            results.append(net(batch.to("cuda", non_blocking=True)))
    ```

    ## When it is fine
    Loops that fill a list of streams for later, one stream for each device, and loops with a few iterations of known number.

    ## Verify
    An iteration with a new stream is timed against one with a reused stream, in pairs; for PyTorch, the handle of the 33rd stream is
    compared with the first one's handle.

    ## References
    - PyTorch, CUDAStream.h, stream pool note
    """

    code = "SL029"
    name = "stream-churn"
    category = Category.STALL
    default = "off"
    rests_on = ("stream-create-waits", "stream-destroy-waits")
    signs = ("tream(", "StreamCreate", "create_stream", "streamCreate")
    looks_at = (Create,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Create)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Create) or operation.what != "stream" or operation.value is None or not operation.context.loops:
            return
        loops = operation.context.loops
        if operation.context.setup or all(_few(loop) for loop in loops):
            return
        uses = [op for op in path.after(operation) if _on(op, operation.value)]
        loop = _churning([loop for loop in reversed(loops) if not _few(loop)], uses, path)
        if loop is None:
            return  # made for later, and kept
        yield self.told(operation, loop, uses[0])

    def told(self, operation: Create, loop: LoopFrame, use: Operation) -> Finding:
        """A stream that each round of a loop makes, as a finding."""
        return self.finding(
            operation,
            "stream created on every iteration; "
            + ("PyTorch's 33rd stream is its first one again" if operation.api == "torch" else "each creation is a driver call"),
            trail=(Step("the loop", loop.span), Step("used in the same iteration here", use.span), *call_trail(operation)),
            help="create the streams once, before the loop",
            facts={"api": operation.api},
        )


def _churning(loops: list[LoopFrame], uses: list[Operation], path: Trace) -> LoopFrame | None:
    """The loop in whose round a stream is made and used up: the innermost one, or one around it that destroys streams as well."""
    if not uses:
        return None
    for number, loop in enumerate(loops):
        if all(loop in use.context.loops for use in uses) and (number == 0 or _destroys(loop, path)):
            return loop
    return None


def _destroys(loop: LoopFrame, path: Trace) -> bool:
    return any(isinstance(o, Destroy) and o.what != "event" and loop in o.context.loops for o in path.operations)


def _few(loop: LoopFrame) -> bool:
    return loop.kind in _QUIET or (loop.length is not None and loop.length <= _POOL)


def _on(operation: Operation, stream: object) -> bool:
    if isinstance(operation, Copy | Launch | Record | Wait):
        return operation.stream is not None and operation.stream.key == getattr(stream, "key", None)
    return isinstance(operation, Synchronize) and operation.of is stream
