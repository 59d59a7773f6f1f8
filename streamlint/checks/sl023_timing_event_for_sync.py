"""SL023 timing-event-for-sync."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Operation


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
    fixes = ("safe", "unsafe")

    def report(self, operation: Operation, use: Operation) -> Finding:
        """An event whose time nobody asks for, as a finding."""
        return self.finding(
            operation,
            "creation of a timing event used only for synchronization; each record costs more",
            trail=(Step("used for synchronization here", use.span),),
            help=_HELP.get(operation.api, "create it with cudaEventCreateWithFlags and cudaEventDisableTiming"),
            facts={"api": operation.api},
        )


_HELP = {
    "torch": "create it without enable_timing",
    "cupy": "create it with cupy.cuda.Event(disable_timing=True) and record that",
    "numba": "create it with cuda.event(timing=False)",
}
