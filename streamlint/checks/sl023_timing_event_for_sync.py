"""SL023 timing-event-for-sync."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace
from streamlint.operations import Create, Operation, Query, Record, Synchronize, Wait


class TimingEventForSync(Check):
    """Timing is enabled on an event that is only used for synchronization.

    ## What it does
    Reports events that are created with timing and then only recorded, waited for, queried or synchronized, if no code in the linted
    files reads an elapsed time, or no code that does can refer to this event. Timing is the default of ``cudaEventCreate``,
    ``cupy.cuda.Event``, CuPy's ``Stream.record()`` and numba's ``cuda.event()``; torch's events measure time only with
    ``enable_timing=True``.

    ## Why is this bad
    A record with timing writes a time stamp once the earlier work has completed: it costs about three times as much as a record without
    timing. ``cudaEventDisableTiming`` "provides the best performance when used with cudaStreamWaitEvent() and cudaEventQuery()".

    ## Example
    ```python
    copied = torch.cuda.Event(enable_timing=True)
    copied.record()
    side.wait_event(copied)
    ```

    ## Use instead
    ```python
    copied = torch.cuda.Event()
    copied.record()
    side.wait_event(copied)
    ```

    ## When it is fine
    Events whose elapsed time is read, here or elsewhere.

    ## Verify
    Two thousand records with timing and without, in pairs; the ratio of the medians is the verdict.

    ## References
    - CUDA Runtime API, cudaEventCreateWithFlags
    """

    code = "SL023"
    name = "timing-event-for-sync"
    category = Category.STALL
    default = "off"
    signs = ("EventCreate", "Event(", "event(", ".record(", "eventCreate")
    looks_at = (Create,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Create) and operation.what == "event"

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Create) or operation.what != "event":
            return
        event = operation.value
        if event is None or not getattr(event, "timing", None) or getattr(event, "timed", False):
            return
        if path.facts.measures_time and not (self._others_timed(operation, path) or path.facts.only_orders(operation.span)):
            return
        uses = [op for op in path.after(operation) if _uses(op, event)]
        if not uses:
            return
        yield self.told(operation, next((op for op in uses if not isinstance(op, Record)), uses[0]))

    def told(self, operation: Create, use: Operation) -> Finding:
        """An event whose time nobody asks for, as a finding."""
        return self.finding(
            operation,
            "creation of a timing event used only for synchronization; each record costs more",
            trail=(Step("used for synchronization here", use.span),),
            help=_HELP.get(operation.api, "create it with cudaEventCreateWithFlags and cudaEventDisableTiming"),
            facts={"api": operation.api},
        )

    def _others_timed(self, create: Create, path: Trace) -> bool:
        """Whether this path asks for the time of other events: then what it does with this one is known as well."""
        made = [op.value for op in path.operations if isinstance(op, Create) and op.what == "event" and op is not create]
        return not create.context.calls and any(getattr(event, "timed", False) for event in made)


_HELP = {
    "torch": "create it without enable_timing",
    "cupy": "create it with cupy.cuda.Event(disable_timing=True) and record that",
    "numba": "create it with cuda.event(timing=False)",
}


def _uses(operation: Operation, event: object) -> bool:
    if isinstance(operation, Record):
        return operation.event is event
    if isinstance(operation, Wait):
        return operation.on is event
    return isinstance(operation, Synchronize | Query) and operation.of is event
