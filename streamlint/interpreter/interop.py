"""Memory that changes hands between libraries, and what that orders.

What is exchanged differs: the DLPack protocol tells the producer the consumer's stream, CuPy's and numba's array interface names the stream
to wait for, torch's names none, and a bare pointer says nothing.
"""

from __future__ import annotations

from streamlint.interpreter.run import Run, family
from streamlint.interpreter.values import Buffer, Stream
from streamlint.operations import Memory

CAPSULE = "pointer"  # the type of a bare DLPack capsule, as of a pointer


def handed_over(run: Run, buffer: Buffer, consumer: str, how: str, stream: Stream | None = None) -> None:
    """Memory is given to another library: through the DLPack protocol, or through the CUDA array interface.

    ``stream`` is where the consumer will use it; None: its current one.
    """
    producer = family(buffer.storage.library)
    if buffer.storage.memory is Memory.UNKNOWN and not buffer.storage.host and how == "interface":
        buffer.storage.memory = Memory.DEVICE  # nothing else has that interface
    if not producer or producer == consumer or buffer.type == CAPSULE:
        return
    theirs = run.stream_of(producer)
    if how == "dlpack":
        mine = run.machine.know(stream or run.stream_of(consumer))
        run.machine.clocks.wait(mine.key, run.machine.clocks.record(run.machine.know(theirs).key))
    elif producer in ("cupy", "numba"):
        run.machine.host_waits(theirs)
