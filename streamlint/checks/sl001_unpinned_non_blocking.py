"""SL001 unpinned-non-blocking."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Copy, Direction, Evidence, call_trail
from streamlint.support.records import replace

# Of tensors and arrays a size that is not known is data, as a rule.
_ARRAYS = frozenset({"torch", "cupy", "numba", "python"})


class UnpinnedNonBlocking(Check):
    """An asynchronous copy whose host side is pageable memory.

    ## What it does
    Reports copies between host and device that request asynchronous execution (``non_blocking=True``, ``cudaMemcpyAsync``, a stream
    argument) from or to host memory that is known to be pageable: allocated without ``pin_memory=True``, by ``malloc``, ``new`` or
    ``std::vector``, or by a ``DataLoader`` without pinning. A strided view of pinned memory (``pinned[::2]``) counts as well, because
    it is staged through pageable memory.

    ## Why is this bad
    CUDA copies asynchronously only from and to page-locked memory. The driver stages pageable memory, and the call may block until the
    earlier work of its stream has completed: the host stalls, copy and compute do not overlap, and on the default stream the launches
    of other threads are delayed too. The results are correct; only time is lost.

    ## Example
    ```python
    loader = DataLoader(dataset, batch_size=64)
    for images, labels in loader:
        images = images.to("cuda", non_blocking=True)
    ```

    ## Use instead
    ```python
    loader = DataLoader(dataset, batch_size=64, pin_memory=True)
    for images, labels in loader:
        images = images.to("cuda", non_blocking=True)
    ```

    ## When it is fine
    Small copies (up to 64 KB) are staged without a wait and are not reported. A larger upload waits for its stream from 2 MiB on, or
    once two uploads before it have not run yet, as in a loop whose host runs ahead (measured on an H100). Memory of unknown kind is not
    reported; a comment (``# streamlint: pageable``) or a type (``Annotated[torch.Tensor, "pinned"]``) declares it. Nor is a copy reported
    whose stream is synchronized right after it. ``non_blocking=True`` itself is never wrong here: pin the memory and keep the flag.

    Some copies may cost nothing, and are reported with ``evidence = "possible"`` only. An upload of unknown size that no known loop
    repeats is one, unless work was put on a device before it, a framework calls its function in each step or layer (``forward``), its
    known axes make it larger than 64 KB, or its memory was allocated by a call that could pin it (``torch.empty``), by a constructor or
    from pinned memory. So are index data of unknown length (a ``std::vector`` of offsets; in Python lengths, indices, masks and requested
    ``int32`` or ``int64`` tensors outside of a loop over data), a copy that the host reads next without a synchronization (with pinned
    memory that read would be a race), the second of two consecutive copies of one batch, a copy right after a
    blocking copy to the host, a copy of a value that an unknown function computed from one, and a copy whose result is cached. So is one
    of unknown size whose tensor may as well have been computed on the device. At most eight passes over the elements of tensors around a
    copy count as no work: the device is done with them as soon as the host has started them.

    ## Verify
    A gate blocks the copy's stream. The call on pageable memory returns only after the gate opens; the call on pinned memory returns at
    once.

    ## References
    - CUDA Runtime API, API synchronization behavior
    - PyTorch tutorial "A guide on good usage of non_blocking and pin_memory()"
    """

    code = "SL001"
    name = "unpinned-non-blocking"
    category = Category.STALL
    default = "on"
    fixes = ("safe", "unsafe")
    rests_on = ("h2d-pageable-big-async-waits", "h2d-pageable-small-async-waits", "d2h-pageable-async-waits", "h2d-pinned-async-waits")

    def report(self, copy: Copy, shown: bool) -> Finding:
        """A copy that may make the host wait, as a finding."""
        found = self.finding(
            copy,
            self._message(copy),
            span=self._place(copy),
            trail=self._trail(copy),
            help=self._help(copy),
            facts={
                "bytes": copy.nbytes,
                "memory": "pageable",
                "direction": copy.direction.value,
                "api": copy.api,
            },
        )
        return replace(found, shown=shown)

    def _place(self, copy: Copy) -> Span:
        """The copy; where a caller made the memory and passed it in, the call that passes it."""
        return copy.host_passed_at if copy.host_passed_at is not None and not copy.host_gapped else copy.span

    def _message(self, copy: Copy) -> str:
        way = "from" if copy.direction is Direction.H2D else "to"
        memory = "strided pinned memory" if copy.host_gapped else "pageable memory"
        condition = " (if the device is CUDA)" if copy.evidence > Evidence.DERIVED else ""
        return f"asynchronous copy {way} {memory}{condition}; the host may block"

    def _trail(self, copy: Copy) -> tuple[Step, ...]:
        place = self._place(copy)
        steps = [*copy.trail, *(step for step in call_trail(copy) if step.span != place)]
        return (*steps, Step("the asynchronous copy", copy.span)) if place != copy.span else tuple(steps)

    def _help(self, copy: Copy) -> str:
        if copy.host_gapped:
            return "copy the slice into a contiguous pinned buffer first, or copy the whole buffer and slice it on the device"
        if copy.api == "torch":
            return (
                "allocate the host tensor with pin_memory=True, or let the DataLoader pin its batches; keep non_blocking=True. "
                "To refill a pinned buffer, first wait for an event recorded after the copy"
            )
        if copy.api in _ARRAYS:
            return "use pinned memory (cupyx.empty_pinned, numba.cuda.pinned_array); refill it only after the copy has completed"
        return "allocate the host memory with cudaMallocHost or register it with cudaHostRegister; reuse it only after the copy completes"
