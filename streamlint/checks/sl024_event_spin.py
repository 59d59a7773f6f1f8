"""SL024 event-spin."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class EventSpin(Check):
    """A loop that only polls the device until it finishes.

    ## What it does
    Reports loops whose only calls are queries of an event or a stream, with no sleep or other work between two queries.

    ## Why is this bad
    The loop occupies a core, and in Python repeatedly acquires the GIL, at the expense of the threads that feed the device. CUDA
    rejects queries during stream capture.

    ## Example
    ```python
    done = torch.cuda.Event()
    done.record()
    while not done.query():
        pass
    ```

    ## Use instead
    ```python
    done = torch.cuda.Event(blocking=True)
    done.record()
    done.synchronize()
    ```

    ## When it is fine
    Loops that sleep, yield or do other work between two queries. A few microseconds may matter more than a core: without
    ``cudaEventBlockingSync``, ``cudaEventSynchronize`` spins too, but it releases the GIL.

    ## Verify
    A second thread counts while a gate blocks the first one, once in the loop and once in ``synchronize``.

    ## References
    - CUDA Runtime API, cudaEventQuery, cudaEventBlockingSync
    """

    code = "SL024"
    name = "event-spin"
    category = Category.STALL
    default = "off"
    rests_on = ("event-synchronize-waits",)

    def report(self, operation: Operation, query: Span) -> Finding:
        """A loop that only asks, as a finding."""
        return self.finding(
            operation,
            f"busy-wait loop on {operation.name.rpartition('.')[2]} until the device finishes; it occupies a CPU core",
            trail=(Step("queried repeatedly here", query), *call_trail(operation)),
            help="synchronize with a blocking event (blocking=True, cudaEventBlockingSync), or sleep between the queries",
            facts={"api": operation.api},
        )
