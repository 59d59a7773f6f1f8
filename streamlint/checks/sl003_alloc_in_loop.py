"""SL003 alloc-in-loop."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_in_loop, is_inside
from streamlint.operations import (
    Alloc,
    Callback,
    Collective,
    Copy,
    Direction,
    Evidence,
    Free,
    Launch,
    LoopFrame,
    Memory,
    Opaque,
    Operation,
    Register,
    Synchronize,
)


def _uploads(operation: Operation) -> bool:
    return isinstance(operation, Copy) and operation.direction is Direction.H2D


def _is_long(inside: list[Operation]) -> bool:
    """Whether a round has work in it that takes long by what it does."""
    return any(isinstance(o, Collective) or (isinstance(o, Launch) and o.long) for o in inside)


def _works_deeper(inside: list[Operation], loop: LoopFrame) -> bool:
    """Whether a round has a loop of device work of its own, maybe in a body that it calls: it decodes, or goes through layers."""
    working = (o for o in inside if isinstance(o, Launch) or (isinstance(o, Opaque) and o.on_device))
    return any(o.context.loops[-1].key != loop.key for o in working if o.context.loops)


def _host_waits(operation: Operation) -> bool:
    """Whether the host may wait in the round anyway, for a result that it fetches."""
    if isinstance(operation, Copy):
        return operation.direction is Direction.D2H and not operation.asked_async
    return isinstance(operation, Synchronize) and not operation.empty


def _waits_deeper(inside: list[Operation], loop: LoopFrame) -> bool:
    """Whether the host waits in each round of a loop inside: next to those waits, one more behind that loop is nothing."""
    inner = (o.context.loops[-1] for o in inside if o.context.loops and _host_waits(o))
    return any(frame.key != loop.key and not _is_tiny(frame) for frame in inner)


def _is_tiny(loop: LoopFrame) -> bool:
    return loop.length is not None and loop.length <= _TINY


def _has_waited(free: Free, path: Trace) -> bool:
    """Whether the last work before a free is an algorithm that ends with a wait, and makes and frees scratch memory of its own."""
    for earlier in reversed(path.operations[: free.index]):
        if isinstance(earlier, Launch):
            return earlier.host_waits
        works = isinstance(earlier, Opaque) and (earlier.on_device or earlier.works is not Evidence.NONE)
        if works or isinstance(earlier, Copy | Collective | Callback):
            return False
    return False


# Guards under which an allocation is not made in every round.
_SILENT_GUARDS = frozenset({"growth", "first", "rare", "error", "device"})
_SILENT_LOOPS = frozenset({"devices", "layers", "levels", "retry", "tuning", "teardown"})
_TINY = 4


class AllocInLoop(Check):
    """Driver allocations and frees on every iteration of a loop.

    ## What it does
    Reports memory that the driver allocates and frees in the same iteration of a loop (``cudaMalloc`` and ``cudaFree``, pinned memory,
    ``cudaHostRegister``, numba's device arrays, which have no pool, ``thrust::device_vector``), also through helpers, constructors and
    destructors, and ``torch.cuda.empty_cache()`` on every iteration.

    ## Why is this bad
    ``cudaFree`` and ``cudaFreeHost`` may wait for all work of the device before they return: every iteration ends with a device-wide
    stall, and the free waits for a persistent kernel or a collective. Page-locking costs milliseconds. ``cudaMalloc`` itself did
    not wait on the measured GPUs.

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
    work), set-up loops that keep their allocations, loops over devices, retries, tuning, error paths and teardown, and pools:
    ``cudaMallocAsync``, RMM, the caching allocators of PyTorch and CuPy.

    Some waits cost little, and are reported with ``evidence = "possible"`` only: in a loop with long iterations (a thrust sort, a
    collective, an inner loop of device work, a result that is fetched anyway), in a loop with an inner loop that synchronizes, right
    after a thrust call that has synchronized, and ``empty_cache()`` outside of training loops and module methods.

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
    rests_on = ("free-waits", "free-holds-all", "free-host-waits", "malloc-waits")
    signs = (
        "alloc",
        "Alloc",
        "ree(",
        "empty",
        "pinned",
        "HostRegister",
        "hostRegister",
        "collect",
        "device_",
        "Memory(",
        "mapped_array",
        "cp.",
        "cupy",
        "](",
        "del ",
    )
    looks_at = (Free,)

    def begins_with(self, operation: Operation) -> bool:
        if not isinstance(operation, Free) or operation.cached or operation.context.callback is not None:
            return False
        return bool(operation.context.loops) and (operation.kind == "trim" or operation.buffer is not None)

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Free) or operation.cached or operation.context.callback is not None:
            return
        if operation.kind == "trim":
            yield from self._trim(operation, path)
        elif operation.buffer is not None:
            yield from self._pair(operation, path)

    def _pair(self, free: Free, path: Trace) -> Iterator[Finding]:
        assert free.buffer is not None
        allocated = free.buffer.storage.allocated
        if free.kind == "unregister":
            self_made = next(
                (
                    o
                    for o in path.before(free)
                    if isinstance(o, Register) and o.buffer is not None and o.buffer.storage is free.buffer.storage
                ),
                None,
            )
            allocated = self_made or allocated
        if allocated is None or free.memory is Memory.PAGEABLE or (isinstance(allocated, Alloc) and allocated.cached):
            return
        loop = self._shared_loop(allocated, free)
        if loop is None or not self._every_round(allocated, loop) or not self._every_round(free, loop) or self._keeps(loop, path):
            return
        place = call_in_loop(allocated, loop)
        inside = path.within(loop)[0]
        if self._in_some_rounds(allocated, loop, inside, path):
            return
        yield self.told(
            allocated, free, loop, place, not _is_long(inside) and not _waits_deeper(inside, loop) and not _has_waited(free, path)
        )

    def told(self, allocated: Operation, free: Free, loop: LoopFrame, place: Span | None, shown: bool) -> Finding:
        """Memory that each round of a loop allocates and frees, as a finding."""
        return self.finding(
            allocated,
            self._message(free),
            span=place,
            shown=shown,
            trail=self._steps(allocated, free, loop),
            help=self._help(free),
            facts={"memory": free.memory.value, "api": allocated.api or "cuda-runtime", "bytes": getattr(allocated, "nbytes", None)},
        )

    def _keeps(self, loop: LoopFrame, path: Trace) -> bool:
        """Whether the loop's rounds allocate what outlives them: it sets things up, and its scratch memory is part of that."""
        made = (o for o in path.operations if isinstance(o, Alloc) and any(frame.key == loop.key for frame in o.context.loops))
        return any(not o.cached and o.memory is Memory.DEVICE and o.buffer is not None and not o.buffer.storage.freed for o in made)

    def _shared_loop(self, first: Operation, second: Operation) -> LoopFrame | None:
        """The innermost loop that holds both, where that is the innermost of either."""
        keys = {loop.key for loop in second.context.loops}
        return next((loop for loop in reversed(first.context.loops) if loop.key in keys), None)

    def _every_round(self, operation: Operation, loop: LoopFrame, silent: frozenset[str] = _SILENT_GUARDS) -> bool:
        context = operation.context
        if loop.kind in _SILENT_LOOPS or context.handles_error or _is_tiny(loop):
            return False
        # Guards of helpers that were called from inside the loop count as well; those around the loop do not.
        return not any(g.kind in silent for g in context.guards if g.span is None or not is_inside(loop.span, g.span))

    def _in_some_rounds(self, operation: Operation, loop: LoopFrame, inside: list[Operation], path: Trace) -> bool:
        """Whether a condition on what differs from round to round guards it, and the loop's own work goes on without it."""
        guards = [g for g in operation.context.guards if g.span is not None and not is_inside(loop.span, g.span)]
        changing = {g.span for g in guards if g.span is not None and path.facts.asks_for_changing(g.span, loop.span)}
        work = [o for o in inside if isinstance(o, Launch | Copy)]
        return bool(changing) and any(not changing & {g.span for g in o.context.guards} for o in work)

    def _trim(self, trim: Free, path: Trace) -> Iterator[Finding]:
        """``empty_cache()`` in each round of a loop that works on the device."""
        loop = trim.context.loops[-1] if trim.context.loops else None
        if loop is None or not self._every_round(trim, loop, _SILENT_GUARDS | {"switch"}):  # behind a switch it is the callers' choice
            return
        inside, loops = path.within(loop)
        # A loop that only brings data to the host makes room, and means to.
        works = any(isinstance(o, Launch) or (isinstance(o, Opaque) and o.on_device) or _uploads(o) for o in inside)
        # Behind an inner loop it is called once an epoch.
        nested = any(f.key != loop.key and is_inside(f.span, loop.span) for f in loops)
        if not works or nested or self._makes_room(trim, inside):
            return
        is_slow = _is_long(inside) or _works_deeper(inside, loop) or any(map(_host_waits, inside))
        yield self.told_of_cache(trim, loop, call_in_loop(trim, loop), self._comes_often(trim, path) and not is_slow)

    def told_of_cache(self, trim: Free, loop: LoopFrame, place: Span | None, shown: bool) -> Finding:
        """A cache that each round of a loop empties, as a finding."""
        return self.finding(
            trim,
            "allocator cache emptied on every iteration; it synchronizes the device and slows later allocations",
            span=place,
            shown=shown,
            trail=(Step("on every iteration of this loop", loop.span),),
            help="let the caching allocator keep its blocks; empty it once after the loop if another process needs the memory",
            facts={"memory": "device", "api": trim.api, "what": "cache"},
        )

    def _comes_often(self, trim: Free, path: Trace) -> bool:
        """Whether the loop comes in each step of a training, or of a module: elsewhere the rounds may be few and long."""
        return any(path.facts.is_stepwise(function) for function in trim.context.functions)

    def _makes_room(self, trim: Free, inside: list[Operation]) -> bool:
        """The garbage is collected in the same loop, and the loop brings no new data: memory is to be let go between heavy rounds."""
        collects = any(isinstance(o, Free) and o.kind == "collect" and o.context.loops == trim.context.loops for o in inside)
        return collects and not any(_uploads(o) for o in inside)

    def _message(self, free: Free) -> str:
        if free.kind == "unregister":
            return "host memory registered and unregistered on every iteration; each unregistration may synchronize the device"
        kind = {Memory.PINNED: "pinned host", Memory.MANAGED: "managed"}.get(free.memory, "device")
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
