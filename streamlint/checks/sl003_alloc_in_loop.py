"""SL003 alloc-in-loop."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Free, LoopFrame, Memory, Operation
from streamlint.support.records import replace


class AllocInLoop(Check):
    """Driver allocations and frees on every iteration of a loop.

    ## What it does
    Reports memory that the driver allocates and frees in the same iteration of a loop (``cudaMalloc`` and ``cudaFree``, pinned memory,
    ``cudaHostRegister``, numba's device arrays, which have no pool, ``thrust::device_vector``), also through helpers, constructors and
    destructors, and ``torch.cuda.empty_cache()`` on every iteration.

    ## Why is this bad
    ``cudaFree`` and ``cudaFreeHost`` may wait for all work of the device before they return: every iteration ends with a device-wide
    stall, and the free waits for a persistent kernel or a collective. Page-locking costs milliseconds. ``cudaMalloc`` itself did
    not wait on the measured GPUs. Where each iteration waits anyway the calls into the driver still cost: with numba on an H100, a
    loop that allocates an array, launches and fetches it took 2.2 times as long as one that reuses the array with 4 KB, 1.9 times
    with 1 MB, and as long with 64 MB.

    ## Example
    ```python
    for block in blocks:
        scratch = cp.cuda.runtime.malloc(nbytes)
        kernel((grid,), (256,), (block, scratch))
        cp.cuda.runtime.free(scratch)
    ```

    ## Use instead
    ```python
    scratch = cp.cuda.runtime.malloc(nbytes)
    for block in blocks:
        kernel((grid,), (256,), (block, scratch))
    cp.cuda.runtime.free(scratch)
    ```

    ## When it is fine
    Buffers that only grow, memory that only some iterations need (its condition changes between iterations and does not guard the other
    work), set-up loops that keep their allocations, loops over devices, retries, tuning, benchmarks, error paths and teardown, and pools:
    ``cudaMallocAsync``, RMM, the caching allocators of PyTorch and CuPy.

    Some waits cost little, and are reported with ``evidence = "possible"`` only: in a loop with long iterations (a thrust sort, a
    collective, an inner loop of device work), in a loop with an inner loop that synchronizes, where the iteration fetches a result, or
    waits for the only stream that it uses, right before or after the free and queues nothing in between (numba frees later, but only
    where an array is dropped), right after a thrust call that has synchronized, and ``empty_cache()`` outside of training loops and
    module methods. So is a numba kernel whose arrays may be on the device already.

    After a wait for the only stream ``cudaMalloc`` and ``cudaFree`` add 3 to 5 µs to an iteration with up to 1 MB, 0.1 ms with 64 MB and
    0.6 to 1.3 ms with 1 GB (H200, driver 580.159.04, 2026-11-28, ``benchmarks/frees_behind_waits.cu``): a cost, and no stall.

    ## Verify
    A gate blocks a stream: ``cudaFree`` of unrelated memory returns only after the gate opens; ``cudaFreeAsync`` returns at once.

    ## References
    - ``cuda_runtime_api.h``: cudaFree "may perform implicit synchronization"
    - CUDA Programming Guide, stream-ordered memory allocator
    """

    code = "SL003"
    name = "alloc-in-loop"
    category = Category.STALL
    default = "on"
    fixes = ("safe", "unsafe")
    rests_on = ("free-waits", "free-holds-all", "free-host-waits", "malloc-waits")

    def report(self, allocated: Operation, free: Free, loop: LoopFrame, place: Span | None, shown: bool) -> Finding:
        """Memory that each round of a loop allocates and frees, as a finding."""
        found = self.finding(
            allocated,
            self._message(free),
            span=place,
            trail=self._steps(allocated, free, loop),
            help=self._help(free),
            facts={"memory": free.memory.value, "api": allocated.api or "cuda-runtime", "bytes": getattr(allocated, "nbytes", None)},
        )
        return replace(found, shown=shown)

    def report_of_cache(self, trim: Free, loop: LoopFrame, place: Span | None, shown: bool) -> Finding:
        """A cache that each round of a loop empties, as a finding."""
        found = self.finding(
            trim,
            "allocator cache emptied on every iteration; it synchronizes the device and slows later allocations",
            span=place,
            trail=(Step("on every iteration of this loop", loop.span),),
            help="let the caching allocator keep its blocks; empty it once after the loop if another process needs the memory",
            facts={"memory": "device", "api": trim.api, "what": "cache"},
        )
        return replace(found, shown=shown)

    def _message(self, free: Free) -> str:
        if free.kind == "unregister":
            return "host memory registered and unregistered on every iteration; each unregistration may synchronize the device"
        kind = {Memory.PINNED: "pinned host", Memory.MANAGED: "managed"}.get(free.memory, "device")
        if free.is_idle:
            return f"{kind} memory allocated and freed on every iteration; the host has already waited"
        return f"{kind} memory allocated and freed on every iteration; each free may synchronize the device"

    def _steps(self, allocated: Operation, free: Free, loop: LoopFrame) -> tuple[Step, ...]:
        word = "page-locked here" if free.kind == "unregister" else "allocated here"
        steps = [Step("on every iteration of this loop", loop.span), Step(word, allocated.span)]
        if free.span.row and free.span != allocated.span:
            steps.append(Step("freed here, in the same iteration", free.span))
        return tuple(steps)

    def _help(self, free: Free) -> str:
        if free.kind == "unregister":
            return "register the whole buffer once before the loop and unregister it after the loop"
        if free.memory is Memory.PINNED:
            return "allocate the pinned buffer once before the loop and reuse it; wait for its last copy before refilling it"
        return "allocate once before the loop, keep a buffer that only grows, or use the stream-ordered cudaMallocAsync and cudaFreeAsync"
