"""SL027 foreign-library-stream."""

from __future__ import annotations

from collections.abc import Iterable

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.support.records import replace

Pairs = tuple[tuple[Span, Span], ...]
NAMES = {"torch": "PyTorch", "cupy": "CuPy", "numba": "numba", "cuda_python": "cuda-python"}


class ForeignLibraryStream(Check):
    """A library works on memory of another library, on a stream that is not ordered with the other library's stream.

    ## What it does
    Reports work of CuPy, numba, cuda-python or PyTorch on memory that another of them uses on another stream, without a wait in
    between: a CuPy kernel on ``tensor.data_ptr()`` or a numba kernel on ``as_cuda_array(tensor)`` under ``torch.cuda.stream(side)``, or
    a torch operation on a CuPy array that a non-blocking CuPy stream is still writing.

    ## Why is this bad
    Each library has its own current stream. ``with torch.cuda.stream(side)`` does not change the stream of CuPy or numba: their kernel
    runs on the null stream, which is not ordered with PyTorch's streams. It reads old data, or its data is overwritten while it runs.
    PyTorch's array interface names no stream, so that consumers do not synchronize.

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
    Both libraries work on the default stream, which they share. Streams may also be passed (``ExternalStream``,
    ``Stream.from_external``, ``cuda.external_stream``), or the DLPack protocol used (``cupy.from_dlpack(tensor)``,
    ``torch.from_dlpack(array)``), or a wait or synchronization placed in between. CuPy's and numba's blocking streams are ordered with
    the default stream.

    ## Verify
    A gate blocks the stream of the first library, and the result of the second one is read: it holds the old value.

    ## References
    - CUDA Array Interface, version 3, synchronization
    - DLPack, Python specification, stream exchange
    """

    code = "SL027"
    name = "foreign-library-stream"
    category = Category.RACE
    default = "on"
    languages = ("Python", "Cython")
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")

    def report(self, foreign: Span, library: str, other: str, trail: Iterable[Step], qualname: str, pairs: Pairs) -> Finding:
        """Work of one library on memory that another one uses on another stream, as a finding."""
        message = f"{NAMES[library]} works on memory that {NAMES[other]} uses on another stream; nothing orders them"
        return replace(self.finding_at(foreign, message, trail=trail, help=_help(library), qualname=qualname), pairs=pairs)

    def report_opened(self, call: Span, library: str, other: str, trail: Iterable[Step], qualname: str, pairs: Pairs) -> Finding:
        """Work of an opened library on a library's stream, or on the null stream where ``library`` is empty, as a finding."""
        home = NAMES[other]
        work = f"call passes {NAMES[library]}'s stream for memory" if library in NAMES else "default-stream library work on memory"
        help = f"pass the stream that {home} works on (`stream.cuda_stream`, `stream.ptr`), and launch on it"
        if library in NAMES:
            help = f"pass the stream that {home} works on, or make {NAMES[library]}'s stream wait for it"
        message = f"{work} that {home} uses on another stream; nothing orders them"
        return replace(self.finding_at(call, message, trail=trail, help=help, qualname=qualname), pairs=pairs)


def _help(library: str) -> str:
    if library == "torch":
        return "make the other library's stream current (torch.cuda.ExternalStream), or pass the memory with torch.from_dlpack"
    if library == "numba":
        return "launch on the same stream: kernel[grid, block, cuda.external_stream(stream.cuda_stream)]"
    if library == "cupy":
        return "enter cupy.cuda.ExternalStream(stream.cuda_stream) around it, or pass the memory with cupy.from_dlpack"
    return "pass the stream that the other library uses"
