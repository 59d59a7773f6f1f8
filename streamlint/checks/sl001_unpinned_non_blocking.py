"""SL001 unpinned-non-blocking."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail, is_inside
from streamlint.operations import (
    BY_PLACE,
    Callback,
    Collective,
    Copy,
    Direction,
    Evidence,
    HostRead,
    Launch,
    Memory,
    Opaque,
    Operation,
    Query,
    Record,
    Synchronize,
    Wait,
    Work,
)

_FEW = 4
_ONCE = frozenset({"first", "growth"})  # guards behind which something is made once, and kept
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
    Small copies (up to 64 KB) are staged without a wait and are not reported. Memory of unknown kind is not reported, nor is a copy
    whose stream is synchronized right after it. ``non_blocking=True`` itself is never wrong here: pin the memory and keep the flag.

    Some copies may cost nothing, and are reported with ``evidence = "possible"`` only: a C++ copy of unknown size outside of loops,
    index data of unknown length (a ``std::vector`` of offsets; in Python lengths, indices, masks and requested ``int32`` or ``int64``
    tensors outside of a loop over data), the second of two consecutive copies of one batch, a copy right after a blocking copy to the
    host, a copy of a value that an unknown function computed from one, and a copy whose result is cached.

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
    rests_on = ("h2d-pageable-big-async-waits", "h2d-pageable-small-async-waits", "d2h-pageable-async-waits", "h2d-pinned-async-waits")
    signs = ("non_blocking", "Async", "copy_to_", "to_device(", "pin", "Pin", "cuda", "cpu(", "blocking", ".set(", "numpy", BY_PLACE)
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Copy) and operation.asked_async

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy) or not self._stalls(operation, path):
            return
        yield self.told(operation, self._costs(operation, path) and not self._follows(operation, path))

    def told(self, copy: Copy, shown: bool) -> Finding:
        """A copy that may make the host wait, as a finding."""
        return self.finding(
            copy,
            self._message(copy),
            shown=shown,
            span=self._place(copy),
            trail=self._trail(copy),
            help=self._help(copy),
            facts={
                "bytes": copy.nbytes,
                "memory": "pageable",
                "direction": copy.direction.value,
                "stream": copy.stream.kind if copy.stream else "unknown",
                "api": copy.api,
            },
        )

    def _stalls(self, copy: Copy, path: Trace) -> bool:
        if not copy.asked_async or copy.host_memory is not Memory.PAGEABLE or copy.known_small or copy.pinning_asked:
            return False
        if copy.direction not in (Direction.H2D, Direction.D2H) or copy.evidence > Evidence.ASKED:
            return False
        place = copy.span, copy.context.calls
        if place in path.pinned_elsewhere or copy.context.callback is not None:
            return False
        following = path.next(copy)
        waited = isinstance(following, Synchronize) and (
            following.of is None or following.of is copy.stream or getattr(following.of, "key", "") == _stream(copy)
        )
        ended = place in path.waited_elsewhere and not any(isinstance(o, Copy | Launch) for o in path.after(copy))
        return not waited and not ended

    def _costs(self, copy: Copy, path: Trace) -> bool:
        """Whether the copy is shown to be large or to come again and again. In Python memory without a size holds data, as a rule."""
        if copy.counted or _is_wanted(copy, path) or _is_idle(copy, path) or any(guard.kind in _ONCE for guard in copy.context.guards):
            return False
        if any(map(path.facts.is_stand_in, (copy.span, *copy.context.calls, *(step.span for step in copy.trail)))):
            return False
        if copy.nbytes is not None or copy.of_array or copy.api in _ARRAYS:
            return True
        context, place = copy.context, self._place(copy)
        if (copy.span, context.calls) in path.waited_elsewhere:
            return False
        around = (loop for loop in context.loops if is_inside(place, loop.span) and loop.kind == "data")
        repeated = any(loop.length is None or loop.length > _FEW for loop in around)
        return repeated and not (context.setup or context.teardown or context.handles_error)

    def _follows(self, copy: Copy, path: Trace) -> bool:
        """Whether it comes right behind another copy of what was made at the same place, say of a batch: the host has waited there."""
        for earlier in reversed(path.operations[: copy.index]):
            if isinstance(earlier, Copy) and _stream(earlier) == _stream(copy) and self._stalls(earlier, path):
                if earlier.span != copy.span and earlier.trail[:1] == copy.trail[:1] and self._costs(earlier, path):
                    return True
            elif isinstance(earlier, Copy | Launch | Opaque | Collective | Callback):
                return False
        return False

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
        if not steps and copy.context.loops:
            steps = [Step("on every iteration of this loop, with pageable memory of unknown origin", copy.context.loops[-1].span)]
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


def _stream(copy: Copy) -> str | None:
    return copy.stream.key if copy.stream is not None else None


def _is_idle(copy: Copy, path: Trace) -> bool:
    """Whether the host has waited for the stream already, and nothing may have been put there since.

    A call out of view may put work there, but not where it fills what is copied now: then the host has computed it from what it fetched.
    Where the copy is told "if the device is CUDA", so is it that a fetch is one.
    """
    called = filled = False
    for earlier in reversed(path.operations[: copy.index]):
        if isinstance(earlier, Copy):
            if earlier.direction is Direction.H2D and earlier.host_memory is Memory.PAGEABLE and _stream(earlier) == _stream(copy):
                continue  # little is left of it when its call returns
            known = copy.evidence > Evidence.DERIVED or earlier.evidence <= Evidence.DERIVED
            fetched = earlier.direction is Direction.D2H and not earlier.asked_async and known
            same = _stream(earlier) == _stream(copy) and earlier.context.loops == copy.context.loops
            return fetched and same and (filled or not called)
        if isinstance(earlier, Opaque) and earlier.works is Evidence.NONE and earlier.context.callback is None:
            called = True
            filled = filled or any(copy.src is not None and buffer.storage is copy.src.storage for buffer in earlier.on_host)
        elif isinstance(earlier, Launch | Opaque | Collective | Callback):
            return False
    return False


def _is_wanted(copy: Copy, path: Trace) -> bool:
    """Whether what comes from the device is wanted at once: the host reads it next, or nothing is left to do meanwhile."""
    if copy.direction is not Direction.D2H or copy.dst is None:
        return False
    for following in path.after(copy):
        if isinstance(following, HostRead) and following.buffer is not None:
            return following.buffer.storage is copy.dst.storage
        if isinstance(following, Work | Collective | Synchronize | Wait | Record | Query):
            return False
    return True
