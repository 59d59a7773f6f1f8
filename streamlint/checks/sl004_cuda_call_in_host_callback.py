"""SL004 cuda-call-in-host-callback."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Block, Copy, Launch, Operation

_AWAITED = {"lock": "a lock held across synchronization", "late": "a wait for its stream"}


class CudaCallInHostCallback(Check):
    """CUDA work in a host callback.

    ## What it does
    Reports CUDA calls, launches, device array operations and frees that a host callback reaches, also through helpers, lambdas, bound
    methods and destructors, and waits for a thread that does such work, for a lock that is held while the host waits for the device, and
    for a signal that the host gives only after it has waited for the stream. Host callbacks are functions given to ``cudaLaunchHostFunc``,
    ``cudaStreamAddCallback``, graph host nodes, CuPy's ``launch_host_func`` and numba's ``add_callback``.

    ## Why is this bad
    "The host function must not make any CUDA API calls." The runtime rejects most of them with ``cudaErrorNotPermitted`` (800), an
    error that callbacks rarely check. Otherwise the driver thread may wait for a lock whose owner waits for the callback: a deadlock.

    ## Example
    ```python
    def publish(result):
        totals.append(float(result.sum()))

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        result = cp.sqrt(cp.arange(count))
    stream.launch_host_func(publish, result)
    ```

    ## Use instead
    ```python
    ready = queue.SimpleQueue()

    stream = cp.cuda.Stream(non_blocking=True)
    with stream:
        result = cp.sqrt(cp.arange(count))
    stream.launch_host_func(ready.put_nowait, result)
    ...
    totals.append(float(ready.get().sum()))
    ```

    ## When it is fine
    Callbacks that only signal: setting an event, ``put_nowait``, ``call_soon_threadsafe``, numpy on host memory whose copy has
    completed.

    ## Verify
    The callback makes the call. The verdict is the status code (800), a failure, or a child process that does not terminate.

    ## References
    - ``cuda_runtime_api.h``, cudaLaunchHostFunc
    - numba-cuda #317, #321
    """

    code = "SL004"
    name = "cuda-call-in-host-callback"
    category = Category.DEADLOCK
    default = "on"
    rests_on = ("host-function-takes-the-object-lock", "host-functions-are-serialised")

    def report(self, operation: Operation, place: Span, trail: tuple[Step, ...]) -> Finding:
        """The finding of an operation in a callback, at a statement of its body."""
        if isinstance(operation, Block):
            return self._report_block(operation, place, trail)
        return self.finding(
            operation,
            f"{self._what(operation)} in a host callback; CUDA returns cudaErrorNotPermitted or deadlocks",
            span=place,
            trail=trail,
            help="signal one of your own threads from the callback (queue, event) and make the CUDA call there",
            facts={"api": operation.api, "kind": "refused call"},
        )

    def _report_block(self, operation: Block, place: Span, trail: tuple[Step, ...]) -> Finding:
        awaited = _AWAITED.get(operation.what, "a thread with CUDA calls")
        return self.finding(
            operation,
            f"host callback blocks on {awaited}; the stream stalls and may deadlock",
            span=place,
            trail=trail,
            help="only signal in the callback, and wait on one of your own threads",
            facts={"api": operation.api, "kind": "lock inversion"},
        )

    def _what(self, operation: Operation) -> str:
        if isinstance(operation, Launch):
            return "device work" if operation.kind == "compute" else f"launch of {operation.name}"
        if isinstance(operation, Copy) and operation.api in ("torch", "cupy", "numba"):
            return f"copy ({operation.name.rpartition('.')[2]})"
        return f"call of {operation.name.rpartition('.')[2]}"
