"""SL037 collectives-unordered."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation, call_trail
from streamlint.support.records import replace


class CollectivesUnordered(Check):
    """Collectives of two communicators start in an order that nothing fixes; ranks that start them crosswise hang.

    ## What it does
    Reports a collective of one process group or NCCL communicator while one of another group has not ended: on two streams without an
    event between them, after ``async_op=True`` without ``wait()``, or in another thread that nothing waits for. It also reports a branch
    on the rank whose two ways enter the collectives of two groups in opposite order.

    ## Why is this bad
    A collective waits on the device until all ranks have entered it. Streams run in any order, so one rank may start the first
    collective and another rank the second one. If the device has no room for both, each rank waits for the other and never
    ends. NCCL requires one order on all ranks: by stream dependencies, or by ``NCCL_LAUNCH_ORDER_IMPLICIT`` and one order of calls on the
    host.

    ## Example
    ```python
    rows = torch.distributed.new_group(backend="nccl")
    columns = torch.distributed.new_group(backend="nccl")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.distributed.all_reduce(total, group=rows)
    torch.distributed.all_reduce(count, group=columns)
    ```

    ## Use instead
    ```python
    rows = torch.distributed.new_group(backend="nccl")
    columns = torch.distributed.new_group(backend="nccl")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        torch.distributed.all_reduce(total, group=rows)
    torch.cuda.current_stream().wait_stream(side)
    torch.distributed.all_reduce(count, group=columns)
    ```

    ## When it is fine
    ``NCCL_LAUNCH_ORDER_IMPLICIT=1`` is set, one thread issues all collectives, and each rank issues them in the same order. Groups that
    have no rank in common, and collectives between ``ncclGroupStart`` and ``ncclGroupEnd``, need no order either.

    ## Verify
    Two ranks take the two ways of such a branch: the program does not end. A gate holds the first collective on one rank: the second one
    runs before it there.
    On two H100s 12 groups of 32 CTAs each hang if the ranks start them crosswise; two groups of 16 CTAs have room side by side, and end.

    ## References
    - NCCL User Guide, Using multiple NCCL communicators concurrently
    - PyTorch, torch.distributed.new_group, "Safe concurrent usage"
    - huggingface/trl #6798, ROCm/rccl #2191
    """

    code = "SL037"
    name = "collectives-unordered"
    category = Category.DEADLOCK
    rests_on = ("stream-order", "event-order", "collectives-need-one-order")

    def report(self, second: Operation, first: Span, is_asynchronous: bool) -> Finding:
        """A collective that may start before an earlier one, as a finding."""
        kind = "asynchronous collective" if is_asynchronous else "collective on another stream"
        help = "call wait() on its handle first" if is_asynchronous else "make one stream wait for the other one between the two"
        found = self.finding(
            second,
            "collective of another group, unordered with an earlier one; ranks may hang",
            trail=(Step(f"earlier {kind} here; nothing waits for it in between", first), *call_trail(second)),
            help=help,
            facts={"api": second.api},
        )
        return replace(found, shown=not is_asynchronous)

    def threaded(self, second: Operation, first: Span, started: Span) -> Finding:
        """A collective that another thread may start before or after one of another group, as a finding."""
        return self.finding(
            second,
            "collective of another group, unordered with that of a thread; ranks may hang",
            trail=(Step("thread started here; nothing waits for its end in between", started), Step("its collective", first)),
            help="join the thread first, or issue all collectives from one thread",
            facts={"api": second.api},
        )

    def crossed(self, second: Operation, first: Span, other: Span) -> Finding:
        """Two collectives that other ranks enter the other way round, as a finding."""
        return self.finding(
            second,
            "collectives of two groups in opposite order on other ranks; each waits for the other",
            trail=(
                Step("these ranks enter the other group's collective first", first),
                Step("other ranks begin with this one", other),
                *call_trail(second),
            ),
            help="enter the collectives in one order on all ranks",
            facts={"api": second.api},
        )
