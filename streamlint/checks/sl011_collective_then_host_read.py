"""SL011 collective-then-host-read."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail


class CollectiveThenHostRead(Check):
    """The host reads the result of an asynchronous collective and blocks until every rank has arrived.

    ## What it does
    Reports the first host read (``item()``, ``float``, ``print``, ``cpu()``, a branch) of a value that derives from a collective with
    ``async_op=True``, after its handle's ``wait()``.

    ## Why is this bad
    ``work.wait()`` only makes the current stream wait. The copy to the host then waits for the stream, and so for the slowest rank; the
    advantage of the asynchronous form is lost. If the progress of the collective depends on this process (several ranks in one process,
    a first collective that still sets up its communicator), the read deadlocks.

    ## Example
    ```python
    total = loss.detach().clone().to("cuda")
    work = torch.distributed.all_reduce(total, async_op=True)
    work.wait()
    log.info("loss %.4f", total.item())
    ```

    ## Use instead
    ```python
    total = loss.detach().clone().to("cuda")
    work = torch.distributed.all_reduce(total, async_op=True)
    work.wait()
    totals.append(total)
    ```

    ## When it is fine
    The host needs the value at once, with one process for each GPU: then the read is only a wait. Collectives on the CPU (gloo), a
    ``wait`` with a time limit, which makes the host wait by itself, and reads after a synchronize are fine too.

    ## Verify
    A gate blocks the current stream ahead of the collective: the read returns only after the gate opens.

    ## References
    - PyTorch, ProcessGroupNCCL.cpp, WorkNCCL::wait
    - pytorch #104103
    """

    code = "SL011"
    name = "collective-then-host-read"
    category = Category.STALL
    default = "preview"
    languages = ("Python",)
    rests_on = ("d2h-sync-waits", "event-order")

    def report(self, read: Operation, collective: Span) -> Finding:
        """A read of what a collective makes, as a finding."""
        return self.finding(
            read,
            f"host read of a collective's result ({read.name.rpartition('.')[2]}); the host blocks until every rank arrives",
            trail=(
                Step("asynchronous collective here; wait() on its handle makes the stream wait, not the host", collective),
                *call_trail(read),
            ),
            help="keep the value on the device until it is needed, or copy it to pinned memory and check an event later",
            facts={"api": read.api},
        )
