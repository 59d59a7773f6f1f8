"""SL025 cuda-in-dataloader-worker."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import (
    Operation,
    call_trail,
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
    languages = ("Python",)

    def report(self, operation: Operation, started: Span, method: str) -> Finding:
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
