"""SL024 event-spin."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Operation, Query, Spin


class EventSpin(Check):
    """A loop that does nothing but ask whether the device is done.

    ## What it does
    Reports loops whose only calls are queries of an event or a stream: no sleep, no other work between two questions.

    ## Why is this bad
    The loop takes a core, and in Python the GIL again and again, from the threads that feed the device. While a stream is captured a query
    is refused.

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
    Loops that sleep, yield or do other work between two questions. Where a few microseconds matter more than a core: without
    ``cudaEventBlockingSync`` ``cudaEventSynchronize`` spins too, but it lets go of the GIL.

    ## Verify
    A second thread counts while the first one waits behind a gate, once in the loop and once in ``synchronize``.

    ## References
    - CUDA Runtime API, cudaEventQuery, cudaEventBlockingSync
    """

    code = "SL024"
    name = "event-spin"
    category = Category.STALL
    default = "off"
    rests_on = ("event-synchronize-waits",)
    needs = ((("query(", "Query", ".done"),),)
    signs = needs[0][0]
    looks_at = (Spin,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Spin | Query)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Spin) or operation.query is None:
            return
        yield self.finding(
            operation,
            f"a loop that only asks ({operation.name.rpartition('.')[2]}) until the device is done: it takes a core from the other threads",
            trail=(Step("asked again and again here", operation.query), *call_trail(operation)),
            help="synchronize with an event made for blocking (blocking=True, cudaEventBlockingSync), or sleep between the questions",
            facts={"api": operation.api},
        )
