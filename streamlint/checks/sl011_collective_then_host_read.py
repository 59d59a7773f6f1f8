"""SL011 collective-then-host-read."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Collective, Copy, Direction, Evidence, Launch, Operation, Synchronize


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
    rests_on = ("d2h-sync-waits", "event-order")
    signs = ("async_op",)
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Collective)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy) or not _host_waits(operation) or operation.evidence > Evidence.DEFAULT:
            return
        collective = self._source(operation, path)
        if collective is None:
            return
        yield self.told(operation, collective.span)

    def told(self, read: Operation, collective: Span) -> Finding:
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

    def _source(self, read: Copy, path: Trace) -> Collective | None:
        """The collective that the value derives from, if this is the first time that the host waits for it."""
        derived: dict[int, Collective] = {}
        for operation in path.before(read):
            if isinstance(operation, Collective):
                if operation.asynchronous:
                    derived.update((b.storage.serial, operation) for b in operation.writes)
            elif isinstance(operation, Synchronize):
                derived.clear()
            elif isinstance(operation, Launch):
                source = next((derived[b.storage.serial] for b in operation.reads if b.storage.serial in derived), None)
                if source is not None:
                    derived.update((b.storage.serial, source) for b in operation.writes)
            elif isinstance(operation, Copy) and operation.src is not None and operation.src.storage.serial in derived:
                if _host_waits(operation):
                    derived.clear()
                elif operation.dst is not None:
                    derived[operation.dst.storage.serial] = derived[operation.src.storage.serial]
        return derived.get(read.src.storage.serial) if read.src is not None else None


def _host_waits(copy: Copy) -> bool:
    return copy.direction is Direction.D2H and not copy.asked_async
