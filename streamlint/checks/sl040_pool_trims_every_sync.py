"""SL040 pool-trims-every-sync."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Alloc, LoopFrame
from streamlint.support.records import replace


class PoolTrimsEverySync(Check):
    """A loop allocates from the default pool and synchronizes on every iteration, and the pool keeps nothing.

    ## What it does
    Reports a stream-ordered allocation from the device's default pool (``cudaMallocAsync``, ``cuMemAllocAsync``) that every iteration of
    a loop makes and frees before it synchronizes, in a program that never sets a release threshold.

    ## Why is this bad
    The release threshold of a pool is 0 until the program sets it: the next synchronization of a stream, an event or the device returns
    the pool's unused memory to the driver. The next iteration's allocation maps new memory, which costs far
    more than the reuse of a block. Without the synchronization, or with a threshold, the pool hands out the same block again.

    ## Example
    ```cuda
    for (int i = 0; i < rounds; ++i) {
      float* scratch = nullptr;
      cudaMallocAsync(&scratch, nbytes, stream);
      reduce<<<128, 256, 0, stream>>>(rows[i], scratch);
      cudaFreeAsync(scratch, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## Use instead
    ```cuda
    cudaMemPool_t pool;
    cudaDeviceGetDefaultMemPool(&pool, 0);
    uint64_t threshold = UINT64_MAX;
    cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);
    for (int i = 0; i < rounds; ++i) {
      float* scratch = nullptr;
      cudaMallocAsync(&scratch, nbytes, stream);
      reduce<<<128, 256, 0, stream>>>(rows[i], scratch);
      cudaFreeAsync(scratch, stream);
      cudaStreamSynchronize(stream);
    }
    ```

    ## When it is fine
    A program that has to leave the memory to others between two iterations. No finding: memory that is still in use when the iteration
    synchronizes, other allocations that may keep the pool's memory, pools of the program's own, a synchronization after the loop, and
    the pools of PyTorch and RMM, which set a threshold themselves.

    ## Verify
    The pool says how much memory it holds (``cudaMemPoolAttrReservedMemCurrent``): none after the loop, and all of it with a threshold.

    ## References
    - CUDA Programming Guide, stream-ordered memory allocator, physical page caching
    - CUDA Runtime API, cudaMemPoolAttrReleaseThreshold
    """

    code = "SL040"
    name = "pool-trims-every-sync"
    category = Category.STALL
    rests_on = ("pool-keeps-unused-memory", "stream-synchronize-waits", "event-synchronize-waits", "device-synchronize-waits")

    def report(self, allocated: Alloc, freed: Span, waits: Span, loop: LoopFrame, shown: bool) -> Finding:
        """Memory that each round of a loop takes from the pool, and has the pool give back, as a finding."""
        found = self.finding(
            allocated,
            "allocation from a pool that each iteration's synchronization empties; the next one maps new memory",
            trail=(
                Step("on every iteration of this loop", loop.span),
                Step("freed here, in the same iteration", freed),
                Step("this synchronization returns the pool's unused memory to the driver", waits),
            ),
            help="set the pool's cudaMemPoolAttrReleaseThreshold to UINT64_MAX once, or allocate before the loop",
            facts={"memory": "device", "api": allocated.api, "bytes": allocated.nbytes},
        )
        return replace(found, shown=shown)
