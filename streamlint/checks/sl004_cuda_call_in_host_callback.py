"""SL004 cuda-call-in-host-callback."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import (
    Alloc,
    Block,
    Callback,
    Copy,
    Create,
    Destroy,
    Free,
    Launch,
    Memory,
    Operation,
    Query,
    Record,
    Register,
    Synchronize,
    Wait,
)

_CUDA = (Alloc, Copy, Create, Destroy, Free, Launch, Query, Record, Register, Synchronize, Wait)


class CudaCallInHostCallback(Check):
    """CUDA work in a host callback.

    ## What it does
    Reports CUDA calls, launches, device array operations and frees that a host callback reaches, also through helpers, lambdas, bound
    methods and destructors. Host callbacks are functions given to ``cudaLaunchHostFunc``, ``cudaStreamAddCallback``, graph host nodes,
    CuPy's ``launch_host_func`` and numba's ``add_callback``.

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
    signs = (
        "LaunchHostFunc",
        "AddCallback",
        "HostNode",
        "launch_host_func",
        "add_callback",
    )

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Callback) or operation.context.callback is not None

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        registration = operation.context.callback
        if registration is not None and isinstance(operation, Block):
            yield from self._blocks(operation, registration, path)
            return
        if registration is None or not isinstance(operation, _CUDA) or not self._touches_cuda(operation):
            return
        # Only the first one of a callback: the rest is a consequence.
        yield self.told(operation, self._place(operation, registration), (registration, *self._steps(operation, registration)))

    def told(self, operation: Operation, place: Span, trail: tuple[Step, ...]) -> Finding:
        """The finding of an operation in a callback, at a statement of its body."""
        if isinstance(operation, Block):
            return self._told_block(operation, place, trail)
        return self.finding(
            operation,
            f"{self._what(operation)} in a host callback; CUDA returns cudaErrorNotPermitted or deadlocks",
            span=place,
            trail=trail,
            help="signal one of your own threads from the callback (queue, event) and make the CUDA call there",
            facts={"api": operation.api, "kind": "refused call"},
        )

    def _blocks(self, operation: Block, registration: Step, path: Trace) -> Iterator[Finding]:
        """The callback waits for a thread that makes CUDA calls itself: neither may ever go on."""
        facts = path.facts
        waits = {
            "join": facts.threads.work,
            "result": facts.threads.work,
            "condition": facts.threads.wakers_work,
            "queue": facts.threads.wakers_work,
            "lock": facts.is_held_over_a_wait(operation.on),
        }
        if not waits.get(operation.what):
            return
        yield self._told_block(operation, self._place(operation, registration), (registration, *self._steps(operation, registration)))

    def _told_block(self, operation: Block, place: Span, trail: tuple[Step, ...]) -> Finding:
        awaited = "a lock held across synchronization" if operation.what == "lock" else "a thread with CUDA calls"
        return self.finding(
            operation,
            f"host callback blocks on {awaited}; the stream stalls and may deadlock",
            span=place,
            trail=trail,
            help="only signal in the callback, and wait on one of your own threads",
            facts={"api": operation.api, "kind": "lock inversion"},
        )

    def fold(self, findings: list[Finding], facts: FileFacts) -> list[Finding]:
        """One finding a statement: its further operations are consequences."""
        first: dict[tuple[object, ...], Finding] = {}
        for finding in findings:
            first.setdefault((finding.span.file, *facts.statement_at(finding.span)), finding)
        return list(first.values())

    def _touches_cuda(self, operation: Operation) -> bool:
        if isinstance(operation, Free | Alloc):
            return operation.memory is not Memory.PAGEABLE
        return True

    def _what(self, operation: Operation) -> str:
        if isinstance(operation, Launch):
            return "device work" if operation.kind == "compute" else f"launch of {operation.name}"
        if isinstance(operation, Free) and operation.kind == "drop":
            return "free of device memory"
        if isinstance(operation, Copy) and operation.api in ("torch", "cupy", "numba"):
            return f"copy ({operation.name.rpartition('.')[2]})"
        return f"call of {operation.name.rpartition('.')[2]}"

    def _place(self, operation: Operation, registration: Step) -> Span:
        """The statement in the callback's own body: the operation, or the first call behind the registration that leads to it.

        A callback that calls what it was handed is no more than the way there: the body is that of the function which was handed.
        """
        calls = operation.context.calls
        if operation.context.handed > 0:
            return (*calls[operation.context.handed :], operation.span)[0]
        inner = [span for span in calls if span != registration.span]
        behind = calls[calls.index(registration.span) + 1 :] if registration.span in calls else tuple(inner)
        return behind[0] if behind else operation.span

    def _steps(self, operation: Operation, registration: Step) -> tuple[Step, ...]:
        steps = [step for step in call_trail(operation, "reached through this call") if step.span != registration.span]
        return (*steps, Step("the blocking call" if isinstance(operation, Block) else "the CUDA operation", operation.span))
