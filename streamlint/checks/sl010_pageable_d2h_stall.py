"""SL010 pageable-d2h-stall."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Beside, Block, Copy, Direction, Evidence, Launch, Memory, Opaque, Operation, Touch, beside_of


class PageableD2hStall(Check):
    """A copy to pageable memory on the default stream blocks the launches of another thread.

    ## What it does
    Reports copies from the device to pageable host memory on the default stream (``.cpu()``, ``.to("cpu")``, ``.tolist()``, CuPy's
    ``get()`` and ``asnumpy``, numba's ``copy_to_host``, ``cudaMemcpy``) while another thread of the program works on the device.

    ## Why is this bad
    While a thread waits in such a copy, it holds the driver's lock of the context: every launch, copy and allocation of every other
    thread blocks until the copy completes, on any stream. On a separate stream the copy blocks only work on that stream.

    ## Example
    ```python
    def save(frame):
        frames.append(frame.cpu())

    state = torch.zeros(4096, 4096, device="cuda")
    for step in range(100):
        state = state.mul(0.5).add(1.0)
        threading.Thread(target=save, args=(state,)).start()
    ```

    ## Use instead
    ```python
    def save(frame, copied):
        copied.synchronize()
        frames.append(frame)

    state = torch.zeros(4096, 4096, device="cuda")
    for step in range(100):
        state = state.mul(0.5).add(1.0)
        frame = state.to("cpu", non_blocking=True)
        copied = torch.cuda.Event()
        copied.record()
        threading.Thread(target=save, args=(frame, copied)).start()
    ```

    ## When it is fine
    Programs with a single thread that uses the device; threads with a device each, because a copy blocks launches on its own GPU only;
    copies on a stream other than the default one; pinned destinations; ``.item()``, whose number PyTorch fetches through pinned memory;
    a thread that is joined before anything else is launched.

    ## Verify
    A gate on the null stream blocks one thread inside the copy; another thread launches on a separate stream. The launch does not
    return.

    ## References
    - PyTorch #143825, #119202
    - docs/cuda-model.md, "Who is held while one thread waits"
    """

    code = "SL010"
    name = "pageable-d2h-stall"
    category = Category.STALL
    default = "on"
    rests_on = ("d2h-pageable-async-waits", "pageable-copy-on-null-holds-all", "sync-copy-holds-all", "pageable-copy-holds-its-stream")
    signs = (
        "Thread",
        "submit(",
        ".map(",
        "to_thread(",
        "run_in_executor(",
        ".start()",
        "std::async",
        "std::thread",
        "jthread",
        "pthread_create",
    )
    looks_at = (Copy,)

    def begins_with(self, operation: Operation) -> bool:
        beside = beside_of(operation)
        return beside is not None and beside.kind == "thread" and not beside.awaited

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        if not isinstance(operation, Copy) or not self._holds_all(operation):
            return
        other = _work_beside(operation, path)
        if other is None:
            return
        own = operation.context.beside
        yield self.told(
            operation,
            (
                *((own.started,) if own is not None else ()),
                *((other.context.beside.started,) if other.context.beside is not None and other.context.beside != own else ()),
                Step("work of another thread, blocked by the copy", other.span),
                *(step for step in call_trail(operation, "the copy is reached from here") if own is None or step.span != own.started.span),
            ),
        )

    def told(self, copy: Copy, trail: tuple[Step, ...]) -> Finding:
        """A copy that holds up the work of another thread, as a finding."""
        return self.finding(
            copy,
            "copy to pageable memory on the default stream; it blocks launches from another thread",
            trail=trail,
            help="copy into pinned memory without blocking and synchronize an event, or copy on a separate stream",
            facts={"memory": "pageable", "direction": "d2h", "stream": "null", "api": copy.api, "bytes": copy.nbytes},
        )

    def _holds_all(self, copy: Copy) -> bool:
        """A pageable copy from the device on the default stream."""
        if copy.direction is not Direction.D2H or copy.host_memory is not Memory.PAGEABLE or copy.evidence > Evidence.DEFAULT:
            return False
        return copy.stream is not None and copy.stream.kind in ("null", "ambient") and copy.context.callback is None


def _work_beside(copy: Copy, path: Trace) -> Operation | None:
    """Work that another thread of the same process may launch on the same device while the copy is in progress."""
    own = copy.context.beside
    if own is not None and (own.kind != "thread" or own.awaited):
        return None
    earlier = _first_work(reversed(path.operations[: copy.index]), own, path, False)  # of threads that were started before
    if own is None or earlier is not None:
        return earlier
    return _first_work(path.after(copy), own, path, True) or (_own_twin(copy, path) if own.several else None)


def _first_work(operations: Iterable[Operation], own: Beside | None, path: Trace, main: bool) -> Operation | None:
    """The nearest work of a thread that is not ``own``, before threads are joined; the main thread's too where ``main`` says so."""
    chosen = _chooses_device(own, path)
    for operation in operations:
        who = operation.context.beside
        if who is None and isinstance(operation, Block) and operation.what in ("join", "result"):
            return None
        if not _works(operation) or _same(who, own) or (chosen and _chooses_device(who, path)):
            continue
        if main if who is None else who.kind == "thread" and not who.awaited:
            return operation
    return None


def _same(one: Beside | None, two: Beside | None) -> bool:
    if one is None or two is None:
        return one is two
    return one.key == two.key or (bool(one.lane) and one.lane == two.lane)


def _own_twin(copy: Copy, path: Trace) -> Operation | None:
    """The function runs several times over at once, on one device: its own work is another thread's too."""
    own = copy.context.beside
    if own is None or _chooses_device(own, path):
        return None
    return next((o for o in _body(own, path) if _works(o)), None)


def _chooses_device(who: Beside | None, path: Trace) -> bool:
    """Whether a thread makes a device current: of two that do, each has its own."""
    return who is not None and any(
        isinstance(o, Touch) and o.name.rpartition(".")[2] in ("set_device", "device", "use") for o in _body(who, path)
    )


def _body(who: Beside, path: Trace) -> Iterator[Operation]:
    return (o for o in path.operations if o.context.beside is not None and o.context.beside.key == who.key)


def _works(operation: Operation) -> bool:
    """Work that is issued to a device for sure: a launch, an upload, a copy that is not waited for on a stream that somebody made."""
    if isinstance(operation, Opaque):
        return operation.works <= Evidence.DEFAULT
    if isinstance(operation, Copy):
        lane = operation.stream is not None and operation.stream.kind == "created" and operation.direction is not Direction.H2H
        return (lane and operation.asked_async) or (operation.direction is not Direction.D2H and operation.evidence <= Evidence.DEFAULT)
    if not isinstance(operation, Launch):
        return False
    buffers = (*operation.reads, *operation.writes)
    return operation.kind in ("kernel", "thrust") or any(buffer.storage.evidence <= Evidence.DEFAULT for buffer in buffers)
