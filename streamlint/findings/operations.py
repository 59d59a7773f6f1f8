"""CUDA operations as checks report them: what a rule has found, with what is known of it. Checks read operations, never source."""

from __future__ import annotations

import enum

from streamlint.cuda_model.memory import Direction as Direction
from streamlint.cuda_model.memory import Memory as Memory
from streamlint.findings import Span, Step
from streamlint.support.records import record


class Evidence(enum.IntEnum):
    """Why we think that a value is on a CUDA device; smaller is stronger."""

    LITERAL = 1
    DERIVED = 2
    DEFAULT = 3
    ASKED = 4  # moved with non_blocking=True: that is asked for with a GPU in mind
    SCOPE = 5
    NONE = 6


@record(frozen=True, slots=True)
class LoopFrame:
    """A loop that an operation stands in. ``head`` is ``called`` for a method that an unknown loop calls."""

    span: Span
    head: str = ""


@record(frozen=True, slots=True)
class Context:
    """The surroundings of an operation: the function that holds it, and the calls that led here, outermost first."""

    function: str = ""
    calls: tuple[Span, ...] = ()


_NOWHERE = Context()


@record(frozen=True, slots=True)
class Refusal:
    """Why a stream capture does not take an operation, and CUDA's status for it.

    ``kind``: synchronize, query, copy, unpinned, allocate, pin, register, free, callback, graph-launch, null-stream, outside (work that
    runs beside the capture), outside-wait, unjoined, dead-event, pinning-thread (of a loader, beside the capture).
    """

    kind: str
    status: int
    capture: Step
    trail: tuple[Step, ...] = ()


@record(frozen=True, slots=True)
class Holding:
    """The GIL is held by a function that Python calls. ``kind``: binding (which can release it), function (it must itself), or scope (the
    function has acquired it, and may end that earlier).

    ``place`` is the binding, the function, or what begins the scope. ``handles_objects``: it works with Python's objects, so that it cannot
    run without the GIL as a whole.
    """

    kind: str
    place: Span
    handles_objects: bool = False


@record(eq=False, slots=True)
class Operation:
    """Something that code does. ``span`` is the place of the API's own name; ``api`` the library."""

    span: Span
    api: str = ""
    name: str = ""  # the API's name as modelled, e.g. torch.Tensor.to
    context: Context = _NOWHERE
    trail: tuple[Step, ...] = ()  # facts about its own arguments, in the order to show them
    refused: Refusal | None = None  # by a stream capture


@record(eq=False, slots=True)
class Copy(Operation):
    direction: Direction = Direction.UNKNOWN
    nbytes: int | None = None
    evidence: Evidence = Evidence.NONE
    host_memory: Memory = Memory.UNKNOWN  # of the host side, at the time of the copy
    host_gapped: bool = False
    host_passed_at: Span | None = None  # the call by which a caller, who chose it, passed the host memory in


@record(eq=False, slots=True)
class Launch(Operation):
    """Device work: a kernel, or a library call that works on the device."""

    kind: str = "kernel"  # kernel, compute, upload, collective


@record(eq=False, slots=True)
class HostRead(Operation):
    """The host reads memory."""

    asked: Span | None = None  # C++: the call of the getter whose whole body reads it


@record(eq=False, slots=True)
class Alloc(Operation):
    nbytes: int | None = None


@record(eq=False, slots=True)
class Free(Operation):
    memory: Memory = Memory.UNKNOWN
    kind: str = "free"  # free, unregister, trim
    is_idle: bool = False  # the host has waited for all that was queued


@record(eq=False, slots=True)
class Drop(Operation):
    """The last reference to a block of a pool goes, while another stream may still use it."""

    allocated: Span | None = None


DRAWN = "random numbers"  # the origin of what the host draws and uploads: the device draws others
FILLED = "a filled tensor"  # the origin of what the host fills with zeros, a range or the like and uploads


@record(eq=False, slots=True)
class HostWait(Operation):
    """The host waits in each round of a loop, for nothing that the round needs.

    ``what``: read, cast, size, fetch, upload, number, device, cache. ``origin`` says why the value is where the model is.
    """

    what: str = "read"
    loop: LoopFrame | None = None
    origin: str = ""
    instead: str = ""  # what gives the same and does not wait
    inner: Span | None = None  # where a function that is called from the round waits, if the call is the place to look at
    trains: bool = True  # else the loop decodes, denoises or only launches, and the user asked for all loops

    @property
    def word(self) -> str:
        """The last part of the name of what waits; of a module that is called, its class."""
        return self.name.replace("::", ".").removesuffix(".__call__").rpartition(".")[2]

    @property
    def round(self) -> str:
        if self.called:
            return "step"
        return "training step" if self.trains else "loop iteration"

    @property
    def called(self) -> bool:
        """Whether the round is a call of this method: the loop is in a framework's own code."""
        return self.loop is not None and self.loop.head == "called"


@record(eq=False, slots=True)
class Block(Operation):
    """The host blocks until another thread lets it go. ``what``: join, result, condition, queue, lock; late: none does before the stream
    has come to rest."""

    what: str = "join"


@record(frozen=True, slots=True)
class Conflict:
    """Two accesses to one buffer, at least one a write, that no guaranteed order brings apart."""

    first: Operation
    second: Operation
    first_writes: bool = True


def call_trail(operation: Operation, words: str = "called from here") -> tuple[Step, ...]:
    """The calls that led to an operation, outermost first."""
    return tuple(Step(words, span) for span in operation.context.calls)
