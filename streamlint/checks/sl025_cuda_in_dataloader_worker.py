"""SL025 cuda-in-dataloader-worker."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.facts import FileFacts
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import (
    Alloc,
    Beside,
    Copy,
    Create,
    Evidence,
    Launch,
    Memory,
    Opaque,
    Operation,
    Record,
    Synchronize,
    Touch,
    Wait,
    beside_of,
)


class CudaInDataloaderWorker(Check):
    """CUDA work in the workers of a ``DataLoader``.

    ## What it does
    Reports CUDA operations in a dataset's ``__getitem__`` or ``__iter__``, a ``collate_fn`` or a ``worker_init_fn``, also through
    calls, if a ``DataLoader`` with ``num_workers`` above 0 runs them in forked processes.

    ## Why is this bad
    A forked process cannot use CUDA after its parent has used it: the first call raises "Cannot re-initialize CUDA in forked
    subprocess". If the parent has not used CUDA, each worker creates a separate context, and tensors return through CUDA IPC.

    ## Example
    ```python
    class Frames(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return torch.ones(256).cuda()

    model.cuda()
    loader = DataLoader(Frames(), batch_size=32, num_workers=4)
    ```

    ## Use instead
    ```python
    class Frames(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return torch.ones(256)

    model.cuda()
    loader = DataLoader(Frames(), batch_size=32, num_workers=4, pin_memory=True)
    for batch in loader:
        train(model, batch.cuda(non_blocking=True))
    ```

    ## When it is fine
    No workers; datasets that stay on the host; ``pin_memory=True``, which pins in a thread of the main process; spawned workers
    (``multiprocessing_context="spawn"``, ``set_start_method("spawn")``), which are slow but work.

    ## Verify
    The parent has a CUDA context; the worker's first CUDA call raises.

    ## References
    - PyTorch, ``torch.utils.data``: multi-process data loading
    - PyTorch #13775
    """

    code = "SL025"
    name = "cuda-in-dataloader-worker"
    category = Category.ERROR
    default = "on"
    signs = ("oader",)

    def begins_with(self, operation: Operation) -> bool:
        beside = beside_of(operation)
        return beside is not None and beside.kind == "worker"

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        worker = operation.context.beside
        if worker is None or worker.kind != "worker" or worker.method not in ("fork", "default") or not _uses_cuda(operation):
            return
        if _is_consequence(operation, worker, path):
            return
        yield self.told(operation, worker.started.span, worker.method)

    def told(self, operation: Operation, started: Span, method: str) -> Finding:
        """Work in the workers of a loader that stands at a place, as a finding."""
        name = operation.name.rpartition(".")[2]
        work = f"CUDA work ({name})" if name else "CUDA work"
        message = f"{work} in a DataLoader worker; a forked process cannot initialize CUDA again"
        if name == "default_collate":
            message = "collation of device tensors in DataLoader workers; a forked process cannot initialize CUDA again"
        begun = Step("workers of this loader run it", started)
        return self.finding(
            operation,
            message,
            trail=(begun, *(s for s in call_trail(operation, "reached through this call") if s.span != started)),
            help="keep the worker on the host, and move the batch in the training loop with pin_memory=True and non_blocking=True",
            facts={"api": operation.api, "method": method},
        )

    def fold(self, findings: list[Finding], facts: FileFacts) -> list[Finding]:
        """One finding a function, however many loaders run it: what follows in the same body is a consequence."""
        below = [finding for finding in findings if finding.trail[0].span != finding.span]
        first: dict[tuple[str, str], Finding] = {}
        for finding in below:
            first.setdefault((finding.span.file, finding.qualname), finding)
        known = {finding.trail[0].span for finding in below}
        return [*first.values(), *(f for f in findings if f.trail[0].span == f.span and f.span not in known)]


def _is_consequence(operation: Operation, worker: Beside, path: Trace) -> bool:
    """Whether an operation only works on what the same worker has brought to the device, or stands in the loader itself behind such."""
    earlier = [o for o in path.before(operation) if o.context.beside is not None and o.context.beside.key == worker.key and _uses_cuda(o)]
    if operation.span == worker.started.span:
        return bool(earlier)
    if not isinstance(operation, Launch):
        return False
    made = {id(b.storage) for o in earlier for b in (o.writes if isinstance(o, Launch) else (o.dst,) if isinstance(o, Copy) else ()) if b}
    given = [buffer.storage for buffer in operation.reads if buffer.storage.on_device]
    return bool(given) and all(id(storage) in made for storage in given)


def _uses_cuda(operation: Operation) -> bool:
    """Whether an operation needs a CUDA context for sure."""
    if isinstance(operation, Copy | Touch):
        return operation.evidence <= Evidence.DEFAULT
    if isinstance(operation, Opaque):
        return operation.works <= Evidence.DEFAULT
    if isinstance(operation, Launch):
        buffers = (*operation.reads, *operation.writes)
        return operation.kind == "kernel" or any(buffer.storage.evidence <= Evidence.DEFAULT for buffer in buffers)
    if isinstance(operation, Alloc):
        return operation.memory is Memory.PINNED or (operation.memory is Memory.DEVICE and not operation.cached)
    return isinstance(operation, Create | Record | Synchronize | Wait)
