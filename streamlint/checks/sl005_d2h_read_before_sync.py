"""SL005 d2h-read-before-sync."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Conflict, Copy, Direction, Evidence, HostRead, Memory, call_trail
from streamlint.support.records import replace


class D2hReadBeforeSync(Check):
    """The host reads a buffer while an asynchronous copy from the device may still be writing it.

    ## What it does
    Reports host reads of a buffer that an asynchronous device-to-host copy fills, where no synchronization makes the host wait for that
    copy first. Reads are ``tolist()``, ``numpy()``, ``print``, arithmetic on the CPU, ``*pointer`` and the like. In C++ a kernel that
    writes managed or page-locked memory counts as such a copy, unless a loop watches that memory.

    ## Why is this bad
    The copy returns before the data has arrived. The host reads the old contents of the buffer, and no error is raised: results are
    intermittently wrong, and correct under a debugger. ``wait_stream``, ``wait_event`` and ``Event.wait`` do not help: they block a
    stream, not the host.

    ## Example
    ```python
    tokens = logits.argmax(dim=-1).to("cpu", non_blocking=True)
    text = decode(tokens.tolist())
    ```

    ## Use instead
    ```python
    tokens = logits.argmax(dim=-1).to("cpu", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    copied.synchronize()
    text = decode(tokens.tolist())
    ```

    ## When it is fine
    Copying the buffer back to the device on the same stream, returning or storing it, and reading it after ``synchronize()`` on the
    copy's stream, on the device, or on an event recorded after the copy. A later blocking copy or ``.item()`` of a device value on the
    same stream waits as well.

    With ``evidence = "possible"``, copies to pageable memory (which current drivers complete synchronously, without guarantee) and
    methods of uncalled private classes are reported too.

    ## Verify
    The buffer is poisoned, a gate blocks the copy's stream, and the host reads the buffer: it reads the poison. For pageable memory
    CUDA guarantees neither order; the test shows the order on your GPU.

    ## References
    - CUDA Runtime API, API synchronization behavior
    - PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"
    """

    code = "SL005"
    name = "d2h-read-before-sync"
    category = Category.RACE
    default = "on"
    languages = ("Python", "Cython", "C++")
    fixes = ("safe",)
    rests_on = ("d2h-pinned-async-waits", "d2h-pageable-async-waits", "event-synchronize-waits")

    def report(self, conflict: Conflict, shown: bool) -> Finding:
        """A read that nothing orders behind a copy, as a finding."""
        copy, read = conflict.first, conflict.second
        assert isinstance(copy, Copy)
        assert isinstance(read, HostRead)
        found = self.finding(
            read,
            self._message(copy),
            span=read.asked or read.span,
            trail=self._trail(copy, read),
            help=self._help(copy),
            conflict=conflict,
            facts={
                "memory": copy.host_memory.value,
                "direction": "d2h",
                "bytes": copy.nbytes,
                "api": copy.api,
            },
        )
        return replace(found, shown=shown)

    def _message(self, copy: Copy) -> str:
        if copy.host_memory is Memory.PAGEABLE:
            return "host read of pageable memory during an asynchronous copy; current drivers wait, but without guarantee"
        if copy.direction is not Direction.D2H:
            return "host read of memory that a kernel may still be writing; data may be stale"
        condition = " (if on CUDA)" if copy.evidence > Evidence.DEFAULT else ""
        return f"host read before the asynchronous device-to-host copy completes{condition}; data may be stale"

    def _trail(self, copy: Copy, read: HostRead) -> tuple[Step, ...]:
        written = "written by the kernel here" if copy.direction is not Direction.D2H else "copied asynchronously from the device here"
        return (
            Step(f"{written}; the host does not wait for it before the read", copy.span),
            *call_trail(copy, "the copy is reached from here"),
            *((Step("the accessor reads it here", read.span),) if read.asked is not None else ()),
            *(
                step
                for step in call_trail(read, "the read is reached from here")
                if step.span not in copy.context.calls and step.span != read.asked
            ),
        )

    def _help(self, copy: Copy) -> str:
        if copy.api == "torch":
            return "record an event after the copy and synchronize() it before the read, or copy without non_blocking"
        if copy.api == "cupy":
            return "synchronize the copy's stream, or an event recorded after the copy, before the read"
        return (
            "call cudaStreamSynchronize on the copy's stream, or cudaEventSynchronize on an event recorded after the copy, before the read"
        )
