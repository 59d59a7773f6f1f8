"""Per-thread default streams: what a source that is built with them says of the null stream, it says of its thread's own.

Source: CUDA Runtime API, stream synchronization behavior. Libraries that were built before (cuBLAS, PyTorch) keep the legacy stream.
"""

from __future__ import annotations

from streamlint.findings import Step
from streamlint.interpreter.values import Stream
from streamlint.operations import Operation
from streamlint.record import replace

_COMPILED_WITH = frozenset({"cuda-runtime", "cuda-driver", "thrust"})
_FIELDS = ("stream", "of", "on")


def give_threads_own(operation: Operation, because: tuple[Step, ...]) -> None:
    """Put an operation of the null stream on the stream of its thread; ``because`` says what makes that the default stream."""
    for name in _FIELDS:
        stream = getattr(operation, name, None)
        if isinstance(stream, Stream) and stream.kind == "null" and stream.library in _COMPILED_WITH:
            setattr(operation, name, replace(stream, key="ptds", kind="ptds", blocking=True, trail=(*because, *stream.trail)))
