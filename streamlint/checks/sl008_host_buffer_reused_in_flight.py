"""SL008 host-buffer-reused-in-flight."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Conflict, Copy, Direction, Evidence, Free, HostWrite, Memory, Operation

# What is pinned is made so by one of these: as words, `pin` stands in `mapping` and `typing` too.
_PINNED = (
    "pin_mem", "pinned", "Pinned", "HostAlloc", "hostAlloc", "AllocHost", "MallocHost", "HostMalloc", "HostRegister", "hostRegister",
    "memhostalloc", "mempin", "mapped_array", "mapped(",
)  # fmt: skip


class HostBufferReusedInFlight(Check):
    """The host refills a pinned buffer while an asynchronous copy may still be using it.

    ## What it does
    Reports host writes to a pinned buffer that an asynchronous copy reads (or fills), where no synchronization makes the host wait for
    that copy first. The typical case is a loop that refills one staging buffer on every iteration.

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
    rests_on = ("h2d-pinned-async-waits", "event-synchronize-waits")
    signs = (
        "non_blocking",
        "Async",
        "tream",
        ".set(",
        "asarray",
        *_PINNED,
        "cuda",
    )

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Copy) and operation.asked_async  # of the others the host sees the end

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        copy, write = conflict.first, conflict.second
        if not isinstance(copy, Copy) or not self._fills(conflict):
            return
        if copy.host_memory is not Memory.PINNED or copy.evidence > Evidence.SCOPE or write.context.callback is not None:
            return
        yield self.told(conflict)

    def told(self, conflict: Conflict) -> Finding:
        """A write that nothing orders behind a copy, as a finding."""
        copy, write = conflict.first, conflict.second
        assert isinstance(copy, Copy)
        download = copy.direction is Direction.D2H
        access = "free of pinned memory" if isinstance(write, Free) else "host write to a pinned buffer"
        return self.finding(
            write,
            f"{access} that an asynchronous copy may still be {'filling' if download else 'reading'}",
            trail=(
                Step("copied asynchronously here; the host does not wait for it before the write", copy.span),
                *copy.trail[:1],
                *(step for step in call_trail(write, "the write is reached from here") if step.span not in copy.context.calls),
            ),
            help="synchronize an event recorded after the copy before refilling the buffer, or alternate two buffers with an event each",
            conflict=conflict,
            facts={
                "memory": copy.host_memory.value,
                "direction": copy.direction.value,
                "bytes": copy.nbytes,
                "stream": copy.stream.kind if copy.stream else "unknown",
                "api": copy.api,
            },
        )

    def _fills(self, conflict: Conflict) -> bool:
        """Whether the second access is the host filling the copy's buffer of its own: by itself, or by a copy that it waits for."""
        if isinstance(conflict.second, HostWrite | Free):
            return _is_host_side(conflict)
        second, buffer = conflict.second, conflict.buffer
        waits = isinstance(second, Copy) and not second.asked_async and second.dst is buffer
        return waits and buffer is not None and buffer.storage.on_host


def _is_host_side(conflict: Conflict) -> bool:
    """Whether the conflict is over the host's side of the copy: of the other side nothing may be known, but on the host it is not."""
    copy, buffer = conflict.first, conflict.buffer
    host = (copy.dst if copy.direction is Direction.D2H else copy.src) if isinstance(copy, Copy) else None
    return buffer is None or host is None or buffer.storage is host.storage
