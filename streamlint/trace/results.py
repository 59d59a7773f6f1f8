"""The report of a recorded run: costs of places, findings beside them, and stalls that no finding names.

Times are nanoseconds, sizes bytes, bandwidths bytes per second.
"""

from __future__ import annotations

from streamlint import TYPE_CHECKING
from streamlint.findings import Finding
from streamlint.support.records import field, record

if TYPE_CHECKING:
    from typing import Literal

    Standing = Literal["COSTS", "CHEAP", "NOT REACHED", "RACED ONLY"]

STANDINGS = ("COSTS", "CHEAP", "NOT REACHED", "RACED ONLY")


@record(frozen=True, slots=True, order=True)
class Place:
    """A line of the user's code, or a set of lines of which one was meant. ``file`` as `check` prints it, "" where no frame is known."""

    file: str
    lines: tuple[int, ...]
    function: str = ""

    @property
    def is_exact(self) -> bool:
        return len(self.lines) == 1


@record(frozen=True, slots=True)
class OfRank:
    """What one process of several ranks has of a place's blocked time."""

    process: int
    blocked: int
    waited: int  # of it for other ranks; the rest for its own GPU, or for the driver
    late: int = -1  # the process that it waited for longest


@record(frozen=True, slots=True)
class RankWait:
    """How long the GPU of a process waited in collectives for another process, and did nothing else."""

    process: int
    late: int  # the process that came last
    time: int
    worked: int  # how long the late process's GPU worked meanwhile; else its host had launched nothing
    collectives: int


@record(slots=True)
class Cost:
    """What the calls of one kind that a place made have cost."""

    place: Place
    call: str  # the name of the call that blocked most there: cudaStreamSynchronize
    kind: str  # of trace.kinds
    operator: str = ""  # aten::item, where the recording names it
    calls: int = 0
    blocked: int = 0  # host time inside of the calls, in all
    median: int = 0
    largest: int = 0
    idle: int = 0  # time that the GPU had nothing to do behind them: the device had drained in them, until the next work
    gain: int | None = None  # an estimate of the wall time without the wait; None where it cannot be estimated
    gains: int = 0  # of several processes: the sum of their gains, since shares are of the time of all of them
    bytes: int = 0
    bandwidth: float | None = None  # of its copies
    pinned_bandwidth: float | None = None  # what a pinned copy of this direction reached in the run, or reaches on this GPU
    source: str = ""  # memory kinds of its copies
    destination: str = ""
    driver_allocations: int = 0
    serialized: int = 0  # time that work of other streams waited for its work on the default stream
    held_up: int = 0  # time that launches of other threads waited while it held them
    via: tuple[Place, ...] = ()  # the callers in the user's code, innermost first
    thread: str = ""  # "main", "autograd", or a thread's name
    process: int = 0
    other_ranks: int = 0  # of the blocked time: waiting for a GPU that waited for other ranks
    of_ranks: tuple[OfRank, ...] = ()  # in a run of several ranks
    stretches: int = 0  # how often its thread came there from elsewhere: one of a line that ran once, however many calls that makes
    avoidable: int = 0  # idle time that would not be there without them: no longer than they held the host, also of later gaps


@record(slots=True)
class Costs:
    """All costs of a run, the most idle time first."""

    wall: int  # of the recorded span
    blocked: int  # of the main threads
    idle: int  # GPU time without work, in all
    costs: list[Cost] = field(default_factory=list)
    gpu: str = ""
    origin: str = ""
    notes: list[str] = field(default_factory=list)
    rank_waits: list[RankWait] = field(default_factory=list)
    ranks: dict[int, int] = field(default_factory=dict)  # of processes whose rank is known


@record(slots=True)
class Judged:
    """A finding of `check` beside what the run says of its line."""

    finding: Finding
    standing: Standing
    cost: Cost | None = None
    note: str = ""  # what else the run says: that the function ran, and no call of the line held the host
    places: tuple[Place, ...] = ()  # all that the cost is of, the dearest first, where they are several


@record(slots=True)
class Unnamed:
    """A stall that no finding names, and why: the reason of `--explain-silence`, or that a rule is off."""

    cost: Cost
    reason: str
    kind: str = ""  # of commands.stalls: unmodelled call, unknown memory, rule is off, let pass, no loop, no rule, no wait, ran once
    is_direct: bool = False  # nearly all of it asynchronous copies that leave the host alone


@record(slots=True)
class Joined:
    """The answer of `streamlint trace`."""

    costs: Costs
    judged: list[Judged] = field(default_factory=list)
    unnamed: list[Unnamed] = field(default_factory=list)
    border: int = 0  # what a place must cost at least to be COSTS, or a stall to be listed
    named: int = 0  # what the places of findings that cost something cost together
    processes: int = 1  # that the run had work of; shares are of the wall time of all of them
