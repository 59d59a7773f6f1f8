"""SL008 host-buffer-reused-in-flight."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Conflict, Copy, Direction, Free, call_trail

_COPY = "an asynchronous copy", "copied asynchronously", "copy"
_KERNEL = "a kernel", "read by the kernel", "launch"
"""What uses the buffer, how a step says it, and what an event has to come behind."""


class HostBufferReusedInFlight(Check):
    """The host refills a pinned buffer while an asynchronous copy may still be using it.

    ## What it does
    Reports host writes to a pinned buffer that an asynchronous copy reads (or fills), where no synchronization makes the host wait for
    that copy first. The typical case is a loop that refills one staging buffer on every iteration. In C++ a kernel that reads page-locked
    memory itself counts as such a copy, unless it watches that memory.

    With ``evidence = "possible"``, a write by the next call of a method is reported too, where no caller in the program says that it waits.

    ## Why is this bad
    A copy from pinned memory returns at once and reads the buffer later. The host's new data then arrives on the device, in whole or in
    part. Pageable memory is staged at the call and hides the error: pinning a buffer that is refilled turns a slow program into a wrong
    one.

    ## Example
    ```python
    staging = torch.empty(1 << 20, pin_memory=True)
    on_gpu = torch.empty(1 << 20, device="cuda")
    for block in blocks:
        staging.copy_(torch.from_numpy(block))
        on_gpu.copy_(staging, non_blocking=True)
        consume(on_gpu.sum())
    ```

    ## Use instead
    ```python
    staging = torch.empty(1 << 20, pin_memory=True)
    on_gpu = torch.empty(1 << 20, device="cuda")
    copied = torch.cuda.Event()
    for block in blocks:
        copied.synchronize()
        staging.copy_(torch.from_numpy(block))
        on_gpu.copy_(staging, non_blocking=True)
        copied.record()
        consume(on_gpu.sum())
    ```

    ## When it is fine
    The write follows a synchronization of the copy's stream, or of an event recorded after the copy; several buffers, each with its own
    event, are used in turn; or the buffer is new on every iteration, because PyTorch's allocator of pinned memory reuses a block only
    after the copies in flight have completed.

    ## Verify
    A gate blocks the copy's stream, the host refills the buffer, and the device receives the second content.

    ## References
    - CUDA Runtime API, API synchronization behavior
    - PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"
    """

    code = "SL008"
    name = "host-buffer-reused-in-flight"
    category = Category.RACE
    default = "on"
    fixes = ("safe",)
    rests_on = ("h2d-pinned-async-waits", "event-synchronize-waits")

    def report(self, conflict: Conflict) -> Finding:
        """A write that nothing orders behind a copy, as a finding."""
        copy, write = conflict.first, conflict.second
        assert isinstance(copy, Copy)
        is_kernel = copy.direction is Direction.UNKNOWN
        user, begun, began = _KERNEL if is_kernel else _COPY
        use = "filling" if copy.direction is Direction.D2H else "reading"
        access = "free of pinned memory" if isinstance(write, Free) else "host write to a pinned buffer"
        return self.finding(
            write,
            f"{access} that {user} may still be {use}",
            trail=(
                Step(f"{begun} here; the host does not wait for it before the write", copy.span),
                *copy.trail[:1],
                *(step for step in call_trail(write, "the write is reached from here") if step.span not in copy.context.calls),
            ),
            help=f"synchronize an event recorded after the {began} before refilling the buffer, or alternate two buffers with an event "
            "each",
            conflict=conflict,
            facts={
                "memory": copy.host_memory.value,
                "direction": copy.direction.value,
                "bytes": copy.nbytes,
                "api": copy.api,
            },
        )
