"""SL027 foreign-library-stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from streamlint.checks.base import Category, Check
from streamlint.findings import Finding, Span, Step
from streamlint.interpreter.trace import Trace, call_trail
from streamlint.operations import Conflict, Operation, Work

_NULL = frozenset({"omitted", "literal", "handle", "policy", "default"})  # the stream is nobody's: SL002
_NAMES = {"torch": "PyTorch", "cupy": "CuPy", "numba": "numba", "cuda_python": "cuda-python"}


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
    rests_on = ("stream-order", "event-order", "null-barrier-holds-nonblocking")
    signs = (
        "cupy",
        "cp.",
        "numba",
        "](",
        "as_cuda_array",
        "cuda.bindings",
        "cudart",
        "from_dlpack",
        "<<<",
        "tream",
    )

    def begins_with(self, operation: Operation) -> bool:
        return isinstance(operation, Work) and _in_view(operation) and operation.stream is not None and operation.stream.kind != "ambient"

    def on_conflict(self, conflict: Conflict, path: Trace) -> Iterator[Finding]:
        first, second = conflict.first, conflict.second
        if conflict.missing != "stream-wait" or not isinstance(first, Work) or not isinstance(second, Work) or conflict.buffer is None:
            return
        if not (_in_view(first) and _in_view(second)):
            return
        if first.context.crossing is not None or second.context.crossing is not None:
            yield from self._in_cpp(conflict, first, second)
            return
        if first.api == second.api or not {first.api, second.api} <= _NAMES.keys():
            return
        # Whose memory it is stays at home; the other library came to it.
        foreign, other = (first, second) if conflict.buffer.storage.library == second.api else (second, first)
        yield self.finding(
            foreign,
            f"{_NAMES[foreign.api]} works on memory that {_NAMES[other.api]} uses on another stream; nothing orders them",
            trail=self._trail(foreign, other, conflict),
            help=_help(foreign),
            conflict=conflict,
            facts={"libraries": sorted({first.api, second.api})},
        )

    def told(self, foreign: Span, library: str, other: str, trail: Iterable[Step], qualname: str, pair: tuple[Span, Span]) -> Finding:
        """Work of one library on memory that another one uses on another stream, as a finding."""
        message = f"{_NAMES[library]} works on memory that {_NAMES[other]} uses on another stream; nothing orders them"
        return replace(self.finding_at(foreign, message, trail=trail, help=_help_of(library), qualname=qualname), pairs=(pair,))

    def told_opened(self, call: Span, library: str, other: str, trail: Iterable[Step], qualname: str, pair: tuple[Span, Span]) -> Finding:
        """Work of an opened library on a library's stream, or on the null stream where ``library`` is empty, as a finding."""
        home = _NAMES[other]
        work = f"call passes {_NAMES[library]}'s stream for memory" if library in _NAMES else "default-stream library work on memory"
        help = f"pass the stream that {home} works on (`stream.cuda_stream`, `stream.ptr`), and launch on it"
        if library in _NAMES:
            help = f"pass the stream that {home} works on, or make {_NAMES[library]}'s stream wait for it"
        message = f"{work} that {home} uses on another stream; nothing orders them"
        return replace(self.finding_at(call, message, trail=trail, help=help, qualname=qualname), pairs=(pair,))

    def _in_cpp(self, conflict: Conflict, first: Work, second: Work) -> Iterator[Finding]:
        """Python hands C++ the memory of one library and the stream of another, or none to a library that ctypes or cffi has opened."""
        foreign, other = (first, second) if first.context.crossing is not None else (second, first)
        library = foreign.stream.library if foreign.stream is not None and foreign.stream.how not in _NULL else ""
        place, home = foreign.context.crossing, _NAMES.get(other.api)
        if place is None or home is None:
            return
        if library in _NAMES and library != other.api:
            work = f"call passes {_NAMES[library]}'s stream for memory"
            help = f"pass the stream that {home} works on, or make {_NAMES[library]}'s stream wait for it"
        elif not library and _on_null_in_opened(foreign, other):
            work, library = "default-stream library work on memory", foreign.api
            help = f"pass the stream that {home} works on (`stream.cuda_stream`, `stream.ptr`), and launch on it"
        else:
            return
        yield self.finding(
            foreign,
            f"{work} that {home} uses on another stream; nothing orders them",
            span=place,
            trail=(*self._trail(foreign, other, conflict), Step("the work is here", foreign.span)),
            help=help,
            conflict=conflict,
            facts={"libraries": sorted({library, other.api})},
        )

    def _trail(self, foreign: Work, other: Work, conflict: Conflict) -> tuple[Step, ...]:
        when = "earlier" if other is conflict.first else "later"
        stream = other.stream if other.stream is not None and other.stream.trail else foreign.stream
        made = stream.trail if stream is not None else ()
        return (*made, Step(f"{when} access by {_NAMES[other.api]} here", other.span), *call_trail(foreign))


def _on_null_in_opened(foreign: Work, other: Work) -> bool:
    """Whether a library that ctypes or cffi has opened works on the default stream beside one that was made."""
    on_null = foreign.stream is not None and foreign.stream.kind == "null"
    beside = other.stream is not None and other.stream.kind == "created"
    return foreign.context.opened and on_null and beside and not foreign.context.setup and foreign.context.callback is None


def _in_view(operation: Work) -> bool:
    """Whether its stream is known: one from out of view may be the other library's."""
    return operation.stream is not None and operation.stream.kind in ("null", "ambient", "created", "ptds")


def _help(foreign: Work) -> str:
    return _help_of(foreign.api)


def _help_of(library: str) -> str:
    if library == "torch":
        return "make the other library's stream current (torch.cuda.ExternalStream), or pass the memory with torch.from_dlpack"
    if library == "numba":
        return "launch on the same stream: kernel[grid, block, cuda.external_stream(stream.cuda_stream)]"
    if library == "cupy":
        return "enter cupy.cuda.ExternalStream(stream.cuda_stream) around it, or pass the memory with cupy.from_dlpack"
    return "pass the stream that the other library uses"
