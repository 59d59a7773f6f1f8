"""SL009 gil-held-across-cuda-call."""

from __future__ import annotations

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.findings.operations import Holding, Operation
from streamlint.support.records import replace

_HELD = {"function": "called from Python with the GIL held", "scope": "the GIL is acquired here"}


class GilHeldAcrossCudaCall(Check):
    """A function called from Python waits for the GPU without releasing the GIL.

    ## What it does
    Reports functions bound by pybind11 or nanobind, methods and type slots of the C API, and Cython functions that wait for the device,
    or for a lock of the driver, while they hold Python's GIL: synchronize calls, blocking copies, ``.item()`` of a tensor, driver
    frees, the registration of host functions, the destruction of events, and the creation of NCCL communicators. The destructor of a
    class that is bound runs with the GIL as well, unless ``py::release_gil_before_calling_cpp_dtor()`` is given to the class.

    With ``evidence = "possible"``, these are reported too: frees in such destructors; allocations, which did not wait on the measured
    GPUs; functions that repeat
    the same work between two clock reads, which are benchmarks; copies around a collective that exchanges host numbers between ranks
    during set-up; functions of a test module, whose doc strings say so; and waits in a branch that runs only for memory of the host or
    for other devices than CUDA's, or for an option that begins as false and that no analyzed code turns on. So are functions that analyzed
    Python code calls, but only once (in constructors, when a program starts, the first time) or where nothing leads to.

    ## Why is this bad
    No other Python thread runs until the call returns: data loaders, servers and the threads of other devices are blocked. That is a
    stall. If the GPU waits on this path for a host function that acquires the GIL itself, the program hangs, and the finding is a
    deadlock. pybind11 and nanobind never release the GIL by themselves.

    ## Example
    ```cuda
    #include <pybind11/pybind11.h>
    #include <cuda_runtime.h>
    namespace py = pybind11;

    void finish(uintptr_t stream) { cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)); }

    PYBIND11_MODULE(pipeline, m) {
      m.def("finish", &finish);
    }
    ```

    ## Use instead
    ```cuda
    #include <pybind11/pybind11.h>
    #include <cuda_runtime.h>
    namespace py = pybind11;

    void finish(uintptr_t stream) { cudaStreamSynchronize(reinterpret_cast<cudaStream_t>(stream)); }

    PYBIND11_MODULE(pipeline, m) {
      m.def("finish", &finish, py::call_guard<py::gil_scoped_release>());
    }
    ```

    ## When it is fine
    Operators of ``TORCH_LIBRARY`` (PyTorch releases the GIL around them), functions called through ``ctypes.CDLL`` and cffi (both
    release it), functions that only launch, query or record. A function that needs Python objects before and after the wait can release
    the GIL in a block: ``py::gil_scoped_release``, ``Py_BEGIN_ALLOW_THREADS``, ``with nogil:``. In Cython, ``nogil`` in a declaration
    does not release the GIL: it only allows the call within such a block.

    ## Verify
    One Python thread is inside the call, blocked by a gate; another thread counts. If the GIL is held, it does not count until the gate
    opens.

    ## References
    - pybind11, "Global Interpreter Lock (GIL)"
    - PyTorch #104103, #119393
    - Cython, "Interaction between Python and the GIL"
    """

    code = "SL009"
    name = "gil-held-across-cuda-call"
    category = Category.STALL
    default = "on"
    languages = ("Cython", "C++")
    fixes = ("safe", "unsafe")
    rests_on = ("stream-synchronize-waits", "device-synchronize-waits", "d2h-sync-waits", "free-waits", "malloc-waits")
    from_python = True

    def report(
        self, operation: Operation, why: str, holding: Holding, place: Span, calls: tuple[Span, ...], shown: bool, needing: Span | None
    ) -> Finding:
        """The finding of an operation that waits; ``needing`` is the host function before it that acquires the GIL."""
        help = "release the GIL around the call"
        if holding.kind == "binding":
            help = "add a call guard that releases the GIL to the binding, or release the GIL around the call"
            if holding.handles_objects:
                help = "release the GIL around the call only; the function uses Python objects, which rules out a call guard"
        elif holding.kind == "scope":
            help = "end the scope that acquires the GIL before the call"
        found = self.finding(
            operation,
            self._message(operation, why, needing is not None),
            span=place,
            trail=(
                *((Step(_HELD[holding.kind], holding.place),) if holding.kind in _HELD else ()),
                *(Step("called from here", span) for span in calls if span != place),
                *((Step("this host function acquires the GIL", needing),) if needing is not None else ()),
                *((Step(f"{why} here", operation.span),) if operation.span != place else ()),
            ),
            help=help,
            facts={"api": operation.api},
        )
        return replace(found, category=Category.STALL if needing is None else Category.DEADLOCK, shown=shown)

    def _message(self, operation: Operation, why: str, hangs: bool) -> str:
        call = operation.name.rpartition(".")[2]
        if hangs:
            return f"{call} holds the GIL and waits for a host function that needs it; deadlock"
        return f"{call} {why} while holding the GIL; other Python threads are blocked"
