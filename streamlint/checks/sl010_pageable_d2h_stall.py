"""SL010 pageable-d2h-stall."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.findings.operations import Copy


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
    a thread that is joined before anything else is launched; threads of a pool that queue at most eight passes over tensors each.

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

    def report(self, copy: Copy, trail: tuple[Step, ...]) -> Finding:
        """A copy that holds up the work of another thread, as a finding."""
        return self.finding(
            copy,
            "copy to pageable memory on the default stream; it blocks launches from another thread",
            trail=trail,
            help="copy into pinned memory without blocking and synchronize an event, or copy on a separate stream",
            facts={"memory": "pageable", "direction": "d2h", "stream": "null", "api": copy.api, "bytes": copy.nbytes},
        )
