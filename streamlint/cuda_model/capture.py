"""Stream capture: which calls become nodes, which are refused with what status, and which are carried out at once beside it.

Sources: Programming Guide, "CUDA Graphs", prohibited and unhandled operations; ``cudaThreadExchangeStreamCaptureMode`` (who may make
unsafe calls while a capture goes on); ``driver_types.h`` (the statuses). What documents leave open was read off an H200.
"""

from __future__ import annotations

import enum

from streamlint.cuda_model.clocks import Clocks
from streamlint.support.records import field, record


class Status(enum.IntEnum):
    """CUDA's answers to calls that it refuses: within captures, and across devices."""

    INVALID_VALUE = 1
    INVALID_HANDLE = 400  # cudaErrorInvalidResourceHandle: an event or stream of another device
    ILLEGAL = 401  # cudaErrorIllegalState: no capture to end, or one already there
    UNSUPPORTED = 900
    INVALIDATED = 901
    MERGE = 902
    UNMATCHED = 903
    UNJOINED = 904
    ISOLATION = 905
    IMPLICIT = 906
    CAPTURED_EVENT = 907
    WRONG_THREAD = 908


class Mode(enum.Enum):
    """``cudaStreamCaptureMode``: whose unsafe calls a capture forbids."""

    GLOBAL = "global"  # every thread's
    THREAD_LOCAL = "threadLocal"  # the capturing thread's
    RELAXED = "relaxed"  # nobody's


@record(slots=False)
class Capture:
    """One capture sequence: its origin stream and those that joined through events have clocks of their own."""

    origin: str
    mode: Mode
    thread: int
    blocking: bool  # whether a stream in it takes part in the null stream's barrier
    clocks: Clocks = field(default_factory=Clocks)
    invalid: bool = False  # lost; its stream is captured in vain until the capture is ended
    abandoned: bool = False  # another thread tried to end it: it forbids nothing any more

    def __post_init__(self) -> None:
        self.clocks.of(self.origin)

    @property
    def joined(self) -> bool:
        """Whether the origin is behind all that other streams of the capture were given to do."""
        mine = self.clocks.of(self.origin)
        return all(clock.get(stream, 0) <= mine.get(stream, 0) for stream, clock in self.clocks.streams.items())


def unsafe_calls_refused(captures: list[Capture], thread: int) -> bool:
    """Whether a thread may make no unsafe call (``cudaMalloc`` and its like) now."""
    return any(_forbids_unsafe(capture, thread) for capture in captures)


def _forbids_unsafe(capture: Capture, thread: int) -> bool:
    mine = capture.mode is Mode.THREAD_LOCAL and capture.thread == thread
    return (mine or capture.mode is Mode.GLOBAL) and not capture.abandoned


def null_stream_refused(captures: list[Capture]) -> bool:
    """Whether work on the null stream is refused: it would wait for a stream that is being captured."""
    return any(capture.blocking and not capture.abandoned for capture in captures)
