"""What the templates' trials share. Runs in the child process only."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from typing import Any

from streamlint.verify.cases import UnsupportedError
from streamlint.verify.lab import Lab, pool_bytes

FLOAT = 4  # bytes
POINTER, SIZE = ctypes.c_void_p, ctypes.c_size_t


def torch_module() -> Any:
    """torch, if it was built for CUDA and sees the device; its allocator is kept to the lab's share of memory.

    Its current stream is set back to the default one: a capture that failed leaves its own behind.
    """
    torch: Any = importlib.import_module("torch")
    if torch.version.cuda is None or not torch.cuda.is_available():
        raise UnsupportedError("the installed torch has no CUDA")
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(min(1.0, pool_bytes() / total))
    torch.cuda.set_stream(torch.cuda.default_stream())
    return torch


def numba_cuda() -> Any:
    """``numba.cuda``, if it sees the device."""
    supply_row_stack(importlib.import_module("numpy"))
    cuda: Any = importlib.import_module("numba.cuda")
    if not cuda.is_available():
        raise UnsupportedError("the installed numba sees no CUDA device")
    return cuda


def supply_row_stack(numpy: Any) -> None:
    """Let numba compile kernels: numba-cuda 0.30 registers ``numpy.row_stack``, an alias that NumPy 2.5 dropped. This process only."""
    if not hasattr(numpy, "row_stack"):
        numpy.row_stack = lambda arrays: numpy.vstack(arrays)


def flush_numba(cuda: Any) -> None:
    """Free what numba queued. It frees for real once more than 10 are pending, and ``cuMemFree`` waits for the device."""
    context = cuda.current_context()
    pending = getattr(context, "deallocations", None) or getattr(context.memory_manager, "deallocations", None)
    if pending is not None:
        pending.clear()


def torch_stream(lab: Lab, torch: Any, kind: str) -> Any:
    """``null`` is torch's default stream; those of its pool are non-blocking; a blocking one is another library's."""
    if kind == "null":
        return torch.cuda.default_stream()
    return lab.keep(torch.cuda.ExternalStream(lab.stream(blocking=True).ptr) if kind == "blocking" else torch.cuda.Stream())


def lab_stream(lab: Lab, kind: str) -> Any:
    """A CuPy stream of that kind: null, blocking, non-blocking."""
    return lab.cupy.cuda.Stream.null if kind == "null" else lab.stream(blocking=kind == "blocking")


def numba_stream(lab: Lab, cuda: Any, kind: str) -> tuple[Any, int]:
    """numba's stream of that kind, and its handle."""
    if kind == "null":
        return cuda.default_stream(), 0
    handle = lab_stream(lab, kind).ptr
    return lab.keep(cuda.external_stream(handle)), handle


def floats(lab: Lab, count: int) -> Any:
    """A device array of ones that lives as long as the lab."""
    return lab.keep(lab.cupy.ones(count, dtype=lab.cupy.float32))


def host_floats(lab: Lab, count: int, memory: str) -> Any:
    """A host array in ``pinned`` or ``pageable`` memory whose pages were touched, so that no page fault is measured."""
    if memory == "pinned":
        cupyx: Any = importlib.import_module("cupyx")
        array = cupyx.empty_pinned(count, dtype=lab.cupy.float32)
    else:
        numpy: Any = importlib.import_module("numpy")
        array = numpy.empty(count, dtype=numpy.float32)
    array[:] = -1.0
    return lab.keep(array)


def function(library: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A typed C function. ctypes releases the GIL around the call."""
    found = getattr(library, name)
    found.restype, found.argtypes = result, list(arguments)
    return found


class Surfacing:
    """A stream whose callbacks report: passes everything on, and notes the CUDA status that a callback failed with.

    CuPy prints what a callback raises and numba warns of it; neither informs the program.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.status = 0
        self.ran = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> Any:
        return self._stream.__enter__()

    def __exit__(self, *problem: object) -> Any:
        return self._stream.__exit__(*problem)

    def launch_host_func(self, callback: Any, argument: Any) -> None:
        self._stream.launch_host_func(self._watch(callback), argument)

    def add_callback(self, callback: Any, argument: Any = None) -> None:
        self._stream.add_callback(self._watch(callback), argument)

    def _watch(self, callback: Any) -> Any:
        def watched(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as problem:
                self.status = status_of(problem)
            finally:
                self.ran = True

        return watched


def status_of(problem: BaseException) -> int:
    """The CUDA status in an exception of CuPy (``status``) or numba (``code``), else -1. 800 is ``cudaErrorNotPermitted``."""
    for name in ("status", "code"):
        value = getattr(problem, name, None)
        if isinstance(value, int):
            return int(value)
    text = str(problem).upper().replace(" ", "_")
    return 800 if "NOT_PERMITTED" in text or "NOTPERMITTED" in text else -1


def raised(work: Callable[[], object], words: str) -> int:
    """1 where the work raises a RuntimeError that says these words, 0 where it does not raise."""
    try:
        work()
    except RuntimeError as problem:
        if words in str(problem):
            return 1
        raise
    return 0
