"""SL009 gil-held-across-cuda-call."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace
from streamlint.operations import (
    Alloc,
    Callback,
    Collective,
    Copy,
    Destroy,
    Direction,
    Evidence,
    Free,
    Holding,
    Launch,
    Memory,
    Opaque,
    Operation,
    Synchronize,
)

_PYTHON_LIBRARIES = ("torch", "cupy", "numba", "cuda_python", "numpy", "python")
_OF_PYTHON = (".pyx", ".pxd", ".pxi", ".py")


class GilHeldAcrossCudaCall(Check):
    """A function called from Python waits for the GPU without releasing the GIL.

    ## What it does
    Reports functions bound by pybind11 or nanobind, methods and type slots of the C API, and Cython functions that wait for the device,
    or for a lock of the driver, while they hold Python's GIL: synchronize calls, blocking copies, ``.item()`` of a tensor, driver
    frees, the registration of host functions, the destruction of events, and the creation of NCCL communicators.

    With ``evidence = "possible"``, these are reported too: allocations, which did not wait on the measured GPUs; functions that repeat
    the same work between two clock reads, which are benchmarks; copies around a collective that exchanges host numbers between ranks
    during set-up; and functions of a test module, whose doc strings say so.

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
    rests_on = ("stream-synchronize-waits", "device-synchronize-waits", "d2h-sync-waits", "free-waits", "malloc-waits")
    from_python = True
    signs = (
        "ynchronize",
        "emcpy",
        "alloc",
        "Alloc",
        "ree",
        "item",
        "cpu(",
        "to(",
        "::tensor(",
        "copy",
        "delete",
        "reset",
        "EventDestroy",
        "CommInit",
        "CommSplit",
        "LaunchHostFunc",
        "AddCallback",
        "thrust",
        "_vector",
        "egister",
        "new ",
        "del ",
    )

    def begins_with(self, operation: Operation) -> bool:
        return operation.gil is not None and bool(_waits(operation))

    def on_operation(self, operation: Operation, path: Trace) -> Iterator[Finding]:
        holding = operation.gil
        if holding is None or operation.context.callback is not None or operation.context.beside is not None:
            return
        if operation.api in _PYTHON_LIBRARIES and operation.span.file.endswith(_OF_PYTHON):
            return  # called as Python would: the library sees to the GIL itself
        why = _waits(operation)
        if not why:
            return
        calls = operation.context.calls
        if holding.kind == "binding":
            place, trail = holding.place, calls
        else:
            own = calls[holding.depth : holding.depth + 1]
            place, trail = (own[0], calls[holding.depth + 1 :]) if own else (operation.span, ())
        needing = _awaited_that_needs_it(operation, path)
        shown = (
            (not isinstance(operation, Alloc) or operation.seen_to_wait)
            and not holding.for_tests
            and not path.times_repeated_work()
            and not (isinstance(operation, Copy) and _is_agreed_on(operation, path))
        )
        yield self.told(operation, why, holding, place, trail, shown, needing.span if needing is not None else None)

    def told(
        self, operation: Operation, why: str, holding: Holding, place: Span, calls: tuple[Span, ...], shown: bool, needing: Span | None
    ) -> Finding:
        """The finding of an operation that waits; ``needing`` is the host function before it that acquires the GIL."""
        help = "release the GIL around the call"
        if holding.kind == "binding":
            help = "add a call guard that releases the GIL to the binding, or release the GIL around the call"
            if holding.handles_objects:
                help = "release the GIL around the call only; the function uses Python objects, which rules out a call guard"
        return self.finding(
            operation,
            self._message(operation, why, needing is not None),
            span=place,
            category=Category.STALL if needing is None else Category.DEADLOCK,
            shown=shown,
            trail=(
                *((Step("called from Python with the GIL held", holding.place),) if holding.kind == "function" else ()),
                *(Step("called from here", span) for span in calls if span != place),
                *((Step("this host function acquires the GIL", needing),) if needing is not None else ()),
                *((Step(f"{why} here", operation.span),) if operation.span != place else ()),
            ),
            help=help,
            facts={"api": operation.api},
        )

    def _message(self, operation: Operation, why: str, hangs: bool) -> str:
        call = _called(operation)
        if hangs:
            return f"{call} holds the GIL and waits for a host function that needs it; deadlock"
        return f"{call} {why} while holding the GIL; other Python threads are blocked"


def _called(operation: Operation) -> str:
    """What stands for an operation in a sentence: the call's name, or, where no call is written, what happens."""
    if isinstance(operation, Free) and operation.kind == "drop":
        return "memory release"
    name = operation.callee if isinstance(operation, Opaque) else operation.name
    return name.rpartition(".")[2]


def _awaited_that_needs_it(operation: Operation, path: Trace) -> Callback | None:
    """The host function in front of a wait that takes the GIL, and that nobody has waited for without it: the wait never ends."""
    if isinstance(operation, Synchronize):
        awaited = operation.of.key if operation.of is not None else None  # (the device)
    elif isinstance(operation, Copy | Launch) and operation.stream is not None:
        awaited = operation.stream.key
    else:
        return None
    for earlier in reversed(list(path.before(operation))):
        if isinstance(earlier, Synchronize) and earlier.gil is None and earlier.context.callback is None:
            return None
        if isinstance(earlier, Callback) and earlier.takes_gil and earlier.stream is not None and awaited in (None, earlier.stream.key):
            return earlier
    return None


def _waits(operation: Operation) -> str:
    """What an operation may wait for; empty if nothing."""
    if isinstance(operation, Synchronize):
        return "waits for the GPU"
    if isinstance(operation, Copy):
        return "waits for the GPU" if _copy_waits(operation) else ""
    if isinstance(operation, Launch):
        return "waits for the GPU" if operation.host_waits else ""
    if isinstance(operation, Free):
        return (
            "waits for the GPU" if not operation.cached and operation.memory is not Memory.PAGEABLE and operation.kind != "collect" else ""
        )
    if isinstance(operation, Opaque):
        return f"waits for {operation.awaits}" if operation.awaits else ""
    if isinstance(operation, Alloc):
        return "" if operation.cached else "may wait for the driver"
    if isinstance(operation, Callback) or (isinstance(operation, Destroy) and operation.what == "event"):
        return "may wait for the driver"
    return ""


def _is_agreed_on(copy: Copy, path: Trace) -> bool:
    """Whether the copy is a part of what ranks agree on: numbers of the host go up into a collective, and what comes of it down."""
    if copy.direction is Direction.H2D:
        following = next((o for o in path.after(copy) if isinstance(o, Launch | Copy | Collective)), None)
        return isinstance(following, Collective)
    if copy.src is None or copy.src.storage.made_in is None:
        return False
    earlier = path.operations[: copy.index]
    if any(isinstance(o, Launch) and any(b.storage is copy.src.storage for b in o.writes) for o in earlier):
        return False
    return isinstance(next((o for o in reversed(earlier) if isinstance(o, Launch | Collective)), None), Collective)


def _copy_waits(copy: Copy) -> bool:
    """Copies that the host sees end, and asynchronous ones to pageable memory."""
    if copy.evidence > Evidence.SCOPE and copy.api == "torch":
        return False
    if copy.direction is Direction.D2H:
        return not copy.asked_async or copy.host_memory is Memory.PAGEABLE
    if copy.api == "torch" and copy.src is not None and copy.host_memory is Memory.UNKNOWN:
        return False  # a tensor that is on the device already stays as it is, and who calls may give one
    return not copy.asked_async and copy.direction is Direction.H2D
