"""SL036 ipc-event-too-short-lived."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation


class IpcEventTooShortLived(Check):
    """An event is destroyed before another process can open the handle that it was exported by.

    ## What it does
    Reports the export of an event (``Event.ipc_handle``, ``cudaIpcGetEventHandle``) whose handle outlives the event: the handle is
    returned, stored, or put into a queue or pipe, and the event is destroyed at the end of its function, with no wait for another
    process in between. A Python event is destroyed with its last reference, an event of C++ by ``cudaEventDestroy``.

    ## Why is this bad
    A handle names an event of the exporting process and does not keep it alive. Once the event is destroyed, "performing operations on
    the imported event … will result in undefined behavior". On an H100 (driver 580.159) the next event takes the place of a destroyed
    one whose work is done: the old handle is that event's too, and the importing process waits for work that it does not know, or
    forever. Elsewhere opening the handle failed with ``cudaErrorInvalidValue`` (LMCache #3236) or blocked (on ROCm, LMCache #4419).

    ## Example
    ```python
    def publish(box):
        done = torch.cuda.Event(interprocess=True)
        done.record()
        box.put(done.ipc_handle())

    box = torch.multiprocessing.SimpleQueue()
    publish(box)
    ```

    ## Use instead
    ```python
    def publish(box):
        done = torch.cuda.Event(interprocess=True)
        done.record()
        box.put(done.ipc_handle())
        return done

    box = torch.multiprocessing.SimpleQueue()
    pending.append(publish(box))
    ```

    ## When it is fine
    The exporting process keeps the event until the other one has answered that it no longer needs it: in an attribute, in a table of
    pending requests, or in a local variable of a function that waits for the answer. An event that is recorded again keeps its handle,
    which then means the later record.

    ## Verify
    Two processes: one exports an event, destroys it and records others after a gate; the other one opens the handle and queries the
    event, which was complete when its handle was sent.

    ## References
    - ``cuda_runtime_api.h``, cudaIpcGetEventHandle: using the imported event after the exported one was destroyed is undefined
    - LMCache #3236, #4419, #4640, rtx6kpro #45
    """

    code = "SL036"
    name = "ipc-event-too-short-lived"
    category = Category.ERROR
    rests_on = ("event-order",)

    def report(self, export: Operation, made: Span, given: Span, how: str, ended: Span | None) -> Finding:
        """A handle that outlives its event, as a finding. ``how``: returned, kept or sent."""
        call = export.name.rpartition("::")[2].rpartition(".")[2]
        return self.finding(
            export,
            f"{call} exports an event that is destroyed too early; another process opens an invalid handle",
            trail=(
                Step("event created here", made),
                *((Step(f"the handle is {_WORDS[how]} here", given),) if given != export.span else ()),
                *((Step("destroyed here", ended),) if ended is not None else ()),
            ),
            help="keep the event until the other process has answered that it is done with it",
            facts={"api": export.api},
        )


_WORDS = {"returned": "returned", "kept": "stored", "sent": "sent"}
