"""SL021 device-sync-in-hot-loop."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import HostWait


class DeviceSyncInHotLoop(Check):
    """The host synchronizes the whole device on every step of a training loop.

    ## What it does
    Reports ``torch.cuda.synchronize()`` and ``torch.cuda.empty_cache()`` on every iteration of a training loop: one whose body, through
    known calls, runs a backward pass or steps an optimizer.

    ## Why is this bad
    PyTorch queues work ahead of the GPU, and the queue hides the time that Python takes. A device synchronization drains it on every
    step: the GPU idles until the host has issued the next work. ``empty_cache()`` waits too, and slows the next allocations.

    ## Example
    ```python
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
    ```

    ## Use instead
    ```python
    for inputs, targets in loader:
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.cuda.synchronize()
    ```

    ## When it is fine
    Code that measures time, benchmarks and tests, waits under a condition that is rarely true (every hundredth step, before a
    checkpoint, after an out-of-memory error), waits for a stream or an event, loops over epochs, and a wait right after another one of
    the current stream, if no other stream is known: no work was queued in between.

    ## Verify
    A gate blocks a kernel: the step returns only after the gate opens, and without the call it returns at once.

    ## References
    - PyTorch notes, "CUDA semantics": asynchronous execution
    - PyTorch performance tuning guide, "Avoid unnecessary CPU-GPU synchronization"
    """

    code = "SL021"
    name = "device-sync-in-hot-loop"
    category = Category.STALL
    default = "on"
    rests_on = ("device-synchronize-waits", "free-waits")

    def report(self, operation: HostWait, trail: tuple[Step, ...]) -> Finding:
        """A wait as a finding."""
        return self.finding(
            operation,
            self._message(operation),
            trail=trail,
            help=self._help(operation),
            facts={"api": operation.name, "what": operation.what},
        )

    def _message(self, wait: HostWait) -> str:
        if wait.what == "cache":
            return f"allocator cache emptied each {wait.round}; the host waits for the device and reallocates"
        return f"device synchronization each {wait.round}; the GPU idles until new work is issued"

    def _help(self, wait: HostWait) -> str:
        if wait.what == "cache":
            return "let the caching allocator keep its blocks; empty it once after the loop if another process needs the memory"
        return "remove the call, because reading a value waits for it; to wait for other streams, use wait_stream or an event"
