"""Memory that two libraries use: accesses of different libraries that nothing orders. Each library has a current stream of its own."""

from __future__ import annotations

from streamlint.cuda_model import Clocks, Stamp
from streamlint.interpreter.unknowns import parts_meet
from streamlint.interpreter.values import Access, Buffer
from streamlint.operations import Conflict, Operation

_LIBRARIES = frozenset({"torch", "cupy", "numba", "cuda_python"})


def foreign_conflict(clocks: Clocks, operation: Operation, buffer: Buffer, stamp: Stamp, write: bool) -> Conflict | None:
    """An access of another library to the same memory, not behind which this work runs; at least one of the two writes."""
    mine = _family(operation.api)
    if mine not in _LIBRARIES or not _in_view(operation):
        return None
    storage = buffer.storage
    for earlier in reversed([*storage.reads, *storage.writes] if write else storage.writes):
        theirs = _library(earlier)
        if theirs == mine or theirs not in _LIBRARIES or not _in_view(earlier.operation) or not parts_meet(earlier.part, buffer.part):
            continue
        if not clocks.ordered(earlier.stamp, stamp.stream):
            return Conflict(earlier.operation, operation, "stream-wait")
    return None


def _in_view(operation: Operation) -> bool:
    """Whether its stream is known: one from out of view may be the other library's."""
    stream = getattr(operation, "stream", None)
    return stream is None or stream.kind in ("null", "ambient", "created", "ptds")


def _library(access: Access) -> str:
    # A call out of view works where its tensors are: on torch's current stream.
    return _family(access.operation.api or "torch")


def _family(library: str) -> str:
    return "torch" if library.startswith("torch") else library
