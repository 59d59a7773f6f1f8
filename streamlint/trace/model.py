"""One recorded run, whoever recorded it: calls on the host, work on the device, and the lines of the user's code that made the calls.

All times are nanoseconds on one clock of the run, all sizes bytes. Calls keep the order in which a reader found them until
:meth:`Trace.sort` puts them into that of their starts.
"""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from collections.abc import Sequence

UNKNOWN = ""
NO_STACK = 0
"""Index of the empty stack in :attr:`Trace.stacks`."""


@record(frozen=True, slots=True)
class Frame:
    """One frame of the user's code. ``file`` as the recording spells it (absolute or relative)."""

    file: str
    line: int  # the line in progress; 0 where only the function is known
    function: str  # the qualified name, as far as the recording shows it
    first_line: int = 0  # where the function begins, 0 where that is not known
    lines: tuple[int, ...] = ()  # where several lines fit ("one of 42, 64"); empty where `line` is exact


@record(slots=True)
class Call:
    """A call of the CUDA runtime or driver on the host: the outermost one, where one calls another."""

    name: str  # without versions and stream suffixes: cudaMemcpyAsync, not cudaMemcpyAsync_ptsz_v3020
    process: int
    thread: int
    start: int
    end: int
    correlation: int = 0  # joins a call with the work that it started; 0 where none
    stream: int | None = None  # CUPTI's number of the stream, or Kineto's; None where it is not known
    bytes: int = 0
    source: str = UNKNOWN  # memory of a copy's source: pageable, pinned, device, managed or array
    destination: str = UNKNOWN
    stack: int = NO_STACK  # an index into Trace.stacks
    capturing: bool = False  # the thread or the stream was capturing a graph
    failed: int = 0  # the status that it returned, 0 for success
    operator: str = ""  # the framework's operator that made it, where the recording names it: aten::item
    overhead: int = 0  # ns that recording took of the thread's time since its call before


@record(slots=True)
class Work:
    """A kernel, copy or fill on a device."""

    kind: str  # kernel, copy, fill
    name: str
    process: int
    device: int
    stream: int
    start: int
    end: int
    correlation: int = 0
    bytes: int = 0
    source: str = UNKNOWN
    destination: str = UNKNOWN


@record(slots=True)
class Stream:
    """What is known of a stream."""

    process: int
    number: int
    is_default: bool = False  # the legacy default stream
    non_blocking: bool | None = None
    device: int = 0


@record(slots=True)
class Trace:
    """A run. ``stacks`` holds the empty stack first; a stack's first frame is the innermost."""

    origin: str  # recorded, kineto, nsight
    calls: list[Call] = field(default_factory=list)
    works: list[Work] = field(default_factory=list)
    stacks: list[tuple[Frame, ...]] = field(default_factory=lambda: [()])
    streams: dict[tuple[int, int], Stream] = field(default_factory=dict)
    main_threads: dict[int, int] = field(default_factory=dict)  # of each process
    thread_names: dict[tuple[int, int], str] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)  # of processes that a launcher or torch.distributed numbers
    gpu: str = ""
    start: int = 0  # of the recorded span
    end: int = 0
    left_out: int = 0  # ns between the parts of a recording, which are no part of that span
    overhead: int = 0  # ns that its record adds to each call
    notes: list[str] = field(default_factory=list)  # what could not be read, a sentence each, for the user

    def sort(self) -> None:
        """Order calls and work by start, and widen the span over all of them."""
        self.calls.sort(key=lambda one: one.start)
        self.works.sort(key=lambda one: one.start)
        starts = [one.start for ones in (self.calls, self.works) for one in ones[:1]]
        if starts:
            ends = [max(one.end for one in ones) for ones in (self.calls, self.works) if ones]
            self.start = min([*starts, self.start] if self.end else starts)
            self.end = max([*ends, self.end])

    def frames(self, call: Call) -> Sequence[Frame]:
        """The user's frames of a call, innermost first; none where the recording has no stack."""
        return self.stacks[call.stack]
