"""SL033 callback-needs-gil."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Operation


class CallbackNeedsGil(Check):
    """The host waits with the GIL held for a stream whose callback needs the GIL.

    ## What it does
    Reports a wait for a stream, an event on it or the device that keeps Python's GIL, after a Python function was queued on that stream
    as a host callback: CuPy's ``launch_host_func`` and ``add_callback``, numba's ``add_callback``, ``cudaLaunchHostFunc`` with a
    ``ctypes.CFUNCTYPE`` or with a C++ function that acquires the GIL. These keep the GIL: a function that pybind11, nanobind, the C
    API or Cython exposes without releasing it, any function called through ``ctypes.PyDLL``, and ``torch.save`` of a device tensor.

    ## Why is this bad
    A thread of the driver runs the callback, and first waits for the GIL. The thread that owns the GIL waits for the stream, and the
    stream waits for the callback: a deadlock. It appears only if the callback has not run before the wait begins.

    ## Example
    ```python
    import ctypes

    driver = ctypes.PyDLL("libcuda.so.1")
    stream = cp.cuda.Stream(non_blocking=True)
    stream.launch_host_func(finished.append, "batch")
    driver.cuStreamSynchronize(ctypes.c_void_p(stream.ptr))
    ```

    ## Use instead
    ```python
    import ctypes

    driver = ctypes.CDLL("libcuda.so.1")
    stream = cp.cuda.Stream(non_blocking=True)
    stream.launch_host_func(finished.append, "batch")
    driver.cuStreamSynchronize(ctypes.c_void_p(stream.ptr))
    ```

    ## When it is fine
    The synchronize calls, reads and copies of PyTorch, CuPy, numba and cuda-python release the GIL, and so does ``ctypes.CDLL``. A
    callback of native code that takes no GIL runs in any case. A wait that releases the GIL, before the one that keeps it, lets the
    callback run. Launches wait only once about a thousand of them are queued on the callback's stream; they are not reported.

    ## Verify
    A gate blocks the stream in front of the callback. The child process does not terminate after the gate opens.

    ## References
    - TensorRT-LLM #15855, LMCache #2952, numba-cuda #317
    - ``cuda_runtime_api.h``, cudaLaunchHostFunc
    """

    code = "SL033"
    name = "callback-needs-gil"
    category = Category.DEADLOCK
    languages = ("Python",)
    rests_on = ("stream-order", "stream-synchronize-waits")
    from_python = True

    def report(self, operation: Operation, registered: Span, bound: Span | None, wait: Span) -> Finding:
        """A wait that never returns, at the call of Python's that leads to it, as a finding."""
        call = operation.name.rpartition("::")[2].rpartition(".")[2]
        return self.finding(
            operation,
            f"{call} holds the GIL and waits for a stream whose callback needs it; deadlock",
            trail=(
                Step("a callback that acquires the GIL is queued here", registered),
                *((Step("bound here without a guard that releases the GIL", bound),) if bound is not None else ()),
                *((Step("waits for the GPU here", wait),) if wait != operation.span else ()),
            ),
            help="release the GIL around the wait, or queue native code that does not acquire the GIL",
            facts={"api": operation.api},
        )
