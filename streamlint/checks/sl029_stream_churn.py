"""SL029 stream-churn."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import LoopFrame, Operation, call_trail


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

    def report(self, operation: Operation, loop: LoopFrame, use: Operation) -> Finding:
        """A stream that each round of a loop makes, as a finding."""
        return self.finding(
            operation,
            "stream created on every iteration; "
            + ("PyTorch's 33rd stream is its first one again" if operation.api == "torch" else "each creation is a driver call"),
            trail=(Step("the loop", loop.span), Step("used in the same iteration here", use.span), *call_trail(operation)),
            help="create the streams once, before the loop",
            facts={"api": operation.api},
        )
