"""SL027 foreign-library-stream."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Conflict, Copy, Launch, Operation

_NAMES = {"torch": "PyTorch", "cupy": "CuPy", "numba": "numba", "cuda_python": "cuda-python"}


class ForeignLibraryStream(Check):
    """A second library works on memory of the first one, on a stream of its own that nothing orders with the first one's.

    ## What it does
    Reports work of CuPy, numba, cuda-python or PyTorch on memory that another of them uses on another stream, where no wait lies between:
    a CuPy kernel on ``tensor.data_ptr()`` or a numba kernel on ``as_cuda_array(tensor)`` under ``torch.cuda.stream(side)``, or a torch
    operation on a CuPy array that a non-blocking CuPy stream still writes.

    ## Why is this bad
    Each library has a current stream of its own. ``with torch.cuda.stream(side)`` does not change CuPy's or numba's: their kernel goes to
    the null stream, which PyTorch's streams are not ordered with. It reads what was there before, or is overwritten while it runs. PyTorch
    tells consumers of its array interface no stream, so nothing is synchronized for you.

    ## Example
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        weights = torch.ones(4096, device="cuda")
        scaled = cp.sqrt(cp.asarray(weights))
    ```

    ## Use instead
    ```python
    side = torch.cuda.Stream()
    with torch.cuda.stream(side), cp.cuda.ExternalStream(side.cuda_stream):
        weights = torch.ones(4096, device="cuda")
        scaled = cp.sqrt(cp.asarray(weights))
    ```

    ## When it is fine
    Both libraries on the default stream, which is one and the same. A stream handed over (``ExternalStream``, ``Stream.from_external``,
    ``cuda.external_stream``), the DLPack protocol (``cupy.from_dlpack(tensor)``, ``torch.from_dlpack(array)``), and waits or synchronizes
    between. CuPy's and numba's blocking streams are ordered with the default stream.

    ## Verify
    The first library's stream is held shut by a gate, and the second one's result is looked at: it holds the old value.

    ## References
    - CUDA Array Interface, version 3, synchronization
    - DLPack, Python specification, stream exchange
    """

    code = "SL027"
    name = "foreign-library-stream"
    category = Category.RACE
    default = "on"
    needs = ((("cupy", "cp.", "numba", "](", "as_cuda_array", "cuda.bindings", "cudart", "from_dlpack"), ("tream",)),)

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        first, second = conflict.first, conflict.second
        mine, theirs = _library(first), _library(second)
        if conflict.missing != "stream-wait" or mine == theirs or mine not in _NAMES or theirs not in _NAMES:
            return
        foreign, other = (first, second) if _owner(conflict) == theirs else (second, first)
        yield self.finding(
            foreign,
            f"{_NAMES[_library(foreign)]} works on memory that {_NAMES[_library(other)]} uses on another stream: nothing orders the two",
            trail=self._trail(foreign, other, conflict),
            help=_help(foreign, other),
            facts={"libraries": sorted({mine, theirs}), "streams": sorted({_kind(first), _kind(second)})},
        )

    def _trail(self, foreign: Operation, other: Operation, conflict: Conflict) -> tuple[Step, ...]:
        when = "before" if other is conflict.first else "after it"
        stream = getattr(other, "stream", None) or getattr(foreign, "stream", None)
        made = stream.trail if stream is not None else ()
        return (*made, Step(f"used by {_NAMES[_library(other)]} {when} here", other.span), *call_trail(foreign))


def _library(operation: Operation) -> str:
    # A call out of view works where its tensors are.
    return "torch" if operation.api.startswith("torch") or not operation.api else operation.api


def _kind(operation: Operation) -> str:
    stream = getattr(operation, "stream", None)
    return stream.kind if stream is not None else "current"


def _owner(conflict: Conflict) -> str:
    """The library whose memory it is: of the storages that both use, else of those that one of them uses."""
    touched = [{b.storage.serial: b.storage.library for b in _buffers(op)} for op in (conflict.first, conflict.second)]
    both = [library for serial, library in touched[0].items() if serial in touched[1]] if all(touched) else []
    libraries = both or [library for held in touched for library in held.values()]
    owners = [_library(op) for op in (conflict.first, conflict.second) if _library(op) in libraries]
    return owners[0] if owners else _library(conflict.first)


def _buffers(operation: Operation):  # type: ignore[no-untyped-def]
    if isinstance(operation, Launch):
        return (*operation.reads, *operation.writes)
    if isinstance(operation, Copy):
        return tuple(b for b in (operation.src, operation.dst) if b is not None)
    return ()


def _help(foreign: Operation, other: Operation) -> str:
    library = _library(foreign)
    if library == "torch":
        return "make the other library's stream current (torch.cuda.ExternalStream), or hand the memory over with torch.from_dlpack"
    if library == "numba":
        return "launch on the same stream: kernel[grid, block, cuda.external_stream(stream.cuda_stream)]"
    if library == "cupy":
        return "enter cupy.cuda.ExternalStream(stream.cuda_stream) around it, or hand the memory over with cupy.from_dlpack"
    return "pass the stream that the other library uses"
