"""SL026 stream-context-not-inherited."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Copy, Evidence, Launch, Opaque, Operation, Spawn, Synchronize, Wait, starts


class StreamContextNotInherited(Check):
    """A thread is started under a stream, but its work runs on the default stream.

    ## What it does
    Reports the start of a thread (``threading.Thread``, ``submit`` and ``map`` of a pool, ``asyncio.to_thread``, ``run_in_executor``)
    while a stream other than the default one is current, if the thread's function works on the thread's default stream.

    ## Why is this bad
    The current stream of PyTorch and CuPy is thread-local. A new thread starts on the default stream, whichever stream is current at
    the start: its work is not ordered with the work of that stream, reads data before it is written, and its own results are read too
    early.

    ## Example
    ```python
    stream = torch.cuda.Stream()

    def score(tokens):
        sums.append(tokens.sum())

    with torch.cuda.stream(stream):
        tokens = ids.to("cuda", non_blocking=True).float()
        worker = threading.Thread(target=score, args=(tokens,))
        worker.start()
    ```

    ## Use instead
    ```python
    stream = torch.cuda.Stream()

    def score(tokens):
        with torch.cuda.stream(stream):
            sums.append(tokens.sum())

    with torch.cuda.stream(stream):
        tokens = ids.to("cuda", non_blocking=True).float()
        worker = threading.Thread(target=score, args=(tokens,))
        worker.start()
    ```

    ## When it is fine
    The function enters a stream itself, waits for the stream first, or only computes on the CPU; or the stream has been synchronized
    and the function waits for its own work before it returns.

    ## Verify
    A gate blocks the stream before the input is written; the thread reads the input. It reads the old values.

    ## References
    - PyTorch, ``c10/cuda/CUDAStream.cpp``: the current streams are thread-local
    - CuPy, "Current stream": per thread and per device
    """

    code = "SL026"
    name = "stream-context-not-inherited"
    category = Category.RACE
    default = "on"
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")
    signs = (
        "Thread(",
        "submit(",
        ".map(",
        "to_thread(",
        "run_in_executor(",
        ".start()",
        "::thread",
        "jthread",
        "thread(",
        "async(",
        "pthread_create",
    )
    looks_at = (Spawn,)

    def begins_with(self, operation: Operation) -> bool:
        return starts(operation, "thread")

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Spawn) or operation.beside is None or operation.beside.kind != "thread":
            return
        beside = operation.beside
        if not beside.currents or not (beside.busy or operation.leaves_work):
            return
        found = self._work_on_default(operation, path)
        if found is None:
            return
        work, library = found
        stream = dict(beside.currents)[library]
        if stream.kind == "foreign":
            return  # a value from out of view that was entered: nothing shows that it is a stream
        made = next((step.span for step in stream.trail[:1]), None)
        yield self.told(operation, made, work.span, stream.kind, library)

    def told(self, start: Operation, made: Span | None, work: Span, kind: str, library: str = "") -> Finding:
        """The start of a thread whose work runs on its default stream, as a finding."""
        return self.finding(
            start,
            "thread started under a stream does not inherit it; it works on the default stream",
            trail=(
                *((Step("stream that is current at the start", made),) if made is not None else ()),
                Step("runs on the new thread's default stream", work),
                *call_trail(start, "the start is reached from here"),
            ),
            help="enter the stream in the function that the thread runs",
            facts={"api": library or start.api, "stream": kind},
        )

    def _work_on_default(self, spawn: Spawn, path: Trace) -> tuple[Operation, str] | None:
        """The first work of the thread on its own default stream, and the library whose stream it should have been on."""
        assert spawn.beside is not None
        currents = dict(spawn.beside.currents)
        for operation in path.after(spawn):
            if operation.context.beside is None or operation.context.beside.key != spawn.beside.key:
                return None
            if isinstance(operation, Wait | Synchronize) and not _is_default(operation.of if isinstance(operation, Synchronize) else None):
                return None  # the thread orders its work itself
            library = _library(operation)
            if library in currents:
                return operation, library
        return None


def _library(operation: Operation) -> str:
    """Whose default stream an operation works on; empty where it does not."""
    if not isinstance(operation, Launch | Copy | Opaque) or operation.stream is None or not _is_default(operation.stream):
        return ""
    if isinstance(operation, Opaque):
        return "torch" if operation.works <= Evidence.SCOPE else ""
    if isinstance(operation, Copy):
        return operation.api if operation.evidence <= Evidence.SCOPE else ""
    buffers = (*operation.reads, *operation.writes)
    sure = not buffers or any(buffer.storage.evidence <= Evidence.SCOPE for buffer in buffers)
    # A kernel of a torch extension is launched by the runtime, on the stream that is torch's current one.
    return (operation.stream.library if operation.stream.kind == "ambient" else operation.api) if sure else ""


def _is_default(stream: object) -> bool:
    """The default stream because no other was chosen."""
    kind = getattr(stream, "kind", "")
    return kind == "ambient" or (kind == "null" and getattr(stream, "how", "") in ("", "omitted"))
