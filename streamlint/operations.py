"""CUDA operations as they happen on one path, and what a path found out about their order.

The interpreter (or a test, by hand) issues operations to a ``Machine`` (``interpreter/machine.py``); each is kept with everything that a
check may ask of it. Checks read operations, never source.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from streamlint.cuda_model.memory import Direction as Direction
from streamlint.cuda_model.memory import Memory as Memory
from streamlint.findings import Span, Step
from streamlint.record import record

if TYPE_CHECKING:
    from streamlint.interpreter.values import Buffer, Event, Stream

BY_PLACE = "\x1f"
"""Where a check's ``signs`` are looked for, this stands before an argument that may be a flag: ``x.copy_(y, True)``."""
ENTERED = "\x1e"
"""Where a check's ``signs`` name it: a ``with`` that is given something else than the result of a call, maybe a stream."""


class Evidence(enum.IntEnum):
    """Why we think that a value is on a CUDA device (``interpreter.md`` section 8); smaller is stronger."""

    LITERAL = 1
    DERIVED = 2
    DEFAULT = 3
    ASKED = 4  # moved with non_blocking=True: that is asked for with a GPU in mind
    SCOPE = 5
    NONE = 6


@record(frozen=True, slots=True)
class Guard:
    """A branch that an operation stands under. ``kind``: growth, first, rare, error, device, size, switch, plain."""

    kind: str
    span: Span | None = None


@record(frozen=True, slots=True)
class LoopFrame:
    """A loop that an operation stands in. ``kind``: data, count, devices, levels, setup, retry, teardown, tuning, endless.

    ``length`` is the number of rounds where it is known. ``depth`` is the number of call frames outside of it.
    """

    kind: str
    span: Span
    length: int | None = None
    key: int = 0
    head: str = ""  # for, while, do, c-for; called: a method that a loop out of view calls; empty in a comprehension


@record(frozen=True, slots=True)
class Beside:
    """Code that runs beside the path: ``kind`` is thread, process, or worker (of a loader). It begins with streams of its own."""

    kind: str
    started: Step
    key: int  # tells one start from another


@record(unsafe_hash=True, slots=True)  # never changed; one is made for each call and branch, and a frozen one takes four times as long
class Context:
    """The surroundings of an operation, from the root inwards."""

    function: str = ""
    loops: tuple[LoopFrame, ...] = ()
    guards: tuple[Guard, ...] = ()
    # Outermost call first: the spans of the calls that led here.
    calls: tuple[Span, ...] = ()
    callback: Step | None = None  # the registration, when the operation runs in a host callback
    handed: int = 0  # in a host callback: so many calls led to the function that it was handed, and called by another name
    capture: Step | None = None
    functions: tuple[str, ...] = ()  # the functions entered, outermost first
    setup: bool = False  # in a constructor, or in code that runs once before any work
    teardown: bool = False
    handles_error: bool = False  # in an except/catch block
    beside: Beside | None = None  # the thread, process or worker that runs the operation; None for the path's own
    crossing: Span | None = None  # the call in Python that entered the C++ in progress
    opened: bool = False  # that C++ is a library by itself, which ctypes or cffi has opened


_NOWHERE = Context()


@record(frozen=True, slots=True)
class Refusal:
    """Why a stream capture does not take an operation, and CUDA's status for it (``interpreter/captures.py``).

    ``kind``: synchronize, query, copy, unpinned, allocate, pin, register, free, callback, graph-launch, null-stream, outside (work that
    runs beside the capture), outside-wait, unjoined, dead-event.
    """

    kind: str
    status: int
    capture: Step
    trail: tuple[Step, ...] = ()
    depth: int = 0  # of calls in progress where the capture began


@record(frozen=True, slots=True)
class Holding:
    """The GIL is held by a function that Python calls. ``kind``: binding (which can be told to release it), or function (it must itself).

    ``place`` is the binding, or the function; ``depth`` the number of calls in progress where the function's own statements stand.
    ``handles_objects``: it works with Python's objects, so that it cannot run without the GIL as a whole. ``for_tests``: its module says of
    all its functions that they are there for tests.
    """

    kind: str
    place: Span
    depth: int = 0
    handles_objects: bool = False
    for_tests: bool = False


@record(eq=False, slots=True)
class Operation:
    """Something that a path did. ``index`` is its place on the path; ``span`` the API's own name; ``api`` the library."""

    span: Span
    api: str = ""
    name: str = ""  # the API's name as modelled, e.g. torch.Tensor.to
    context: Context = _NOWHERE  # until a path notes it
    index: int = -1
    trail: tuple[Step, ...] = ()  # facts about its own arguments, in the order to tell them
    guesses: tuple[str, ...] = ()  # atoms that were decided without evidence before it, in order
    refused: Refusal | None = None  # by a stream capture
    gil: Holding | None = None  # who holds the GIL meanwhile, where that is known


@record(eq=False, slots=True)
class Copy(Operation):
    dst: Buffer | None = None
    src: Buffer | None = None
    stream: Stream | None = None
    direction: Direction = Direction.UNKNOWN
    asked_async: bool = False
    nbytes: int | None = None
    known_small: bool = False
    counted: bool = False  # whole numbers, and nothing shows how many: labels, lengths, indices
    of_array: bool = False  # C++: its size is that of a tensor or of an array of NumPy's
    evidence: Evidence = Evidence.NONE
    host_memory: Memory = Memory.UNKNOWN  # of the host side, at the time of the copy
    host_gapped: bool = False
    pinning_asked: bool = False  # the function that copies asks whether its memory is pinned, and copies all the same
    host_passed_at: Span | None = None  # the call by which a caller, who chose it, passed the host memory in
    beside: tuple[Stream, ...] = ()  # null-stream work: the other streams that had work in flight
    followed_by: tuple[Stream, ...] = ()  # null-stream work: the streams that got work before the host saw it end


@record(eq=False, slots=True)
class Launch(Operation):
    """Device work: a kernel, or a library call that works on the device."""

    stream: Stream | None = None
    reads: tuple[Buffer, ...] = ()
    writes: tuple[Buffer, ...] = ()
    kind: str = "kernel"  # kernel, memset, library, compute, thrust, graph
    assumed: bool = False  # its accesses are what it was given: more than it may make
    host_waits: bool = False
    long: bool = False  # by what it does: it sorts, or exchanges data with other processes
    beside: tuple[Stream, ...] = ()  # null-stream work: the other streams that had work in flight
    followed_by: tuple[Stream, ...] = ()  # null-stream work: the streams that got work before the host saw it end


def touched_on_device(operation: Launch | Copy) -> tuple[Buffer, ...]:
    """What a piece of device work reads and writes, but for a copy's host side."""
    if isinstance(operation, Launch):
        return (*operation.reads, *operation.writes)
    sides = {Direction.H2D: (operation.dst,), Direction.D2H: (operation.src,)}.get(operation.direction, (operation.dst, operation.src))
    return tuple(buffer for buffer in sides if buffer is not None)


@record(eq=False, slots=True)
class HostRead(Operation):
    buffer: Buffer | None = None
    asked: Span | None = None  # C++: the call of the getter whose whole body reads it


@record(eq=False, slots=True)
class HostWrite(Operation):
    buffer: Buffer | None = None


@record(eq=False, slots=True)
class Alloc(Operation):
    """``cached`` allocations come from a pool and never reach the driver on the hot path."""

    memory: Memory = Memory.UNKNOWN
    nbytes: int | None = None
    cached: bool = False
    stream: Stream | None = None
    buffer: Buffer | None = None


@record(eq=False, slots=True)
class Free(Operation):
    memory: Memory = Memory.UNKNOWN
    cached: bool = False
    stream: Stream | None = None
    buffer: Buffer | None = None
    kind: str = "free"  # free, unregister, trim, collect (the garbage collector)


@record(eq=False, slots=True)
class Drop(Operation):
    """The last reference to a block of a pool goes, while another stream may still use it."""

    allocated: Span | None = None


@record(eq=False, slots=True)
class Register(Operation):
    buffer: Buffer | None = None


@record(eq=False, slots=True)
class Record(Operation):
    """An event is recorded."""

    event: Event | None = None
    stream: Stream | None = None


@record(eq=False, slots=True)
class Wait(Operation):
    """A stream waits on an event or on another stream. ``empty``: the event had not been recorded, so that there is nothing to wait for."""

    stream: Stream | None = None
    on: Event | Stream | None = None
    empty: bool = False


@record(eq=False, slots=True)
class Synchronize(Operation):
    """The host waits: on a stream, an event, or (None) the device. ``empty`` as in :class:`Wait`."""

    of: Event | Stream | None = None
    empty: bool = False


MADE_ON_HOST = "noise or zeros"  # the origin of what is uploaded and could have been made on the device


@record(eq=False, slots=True)
class HostWait(Operation):
    """The host waits in each round of a loop, for nothing that the round needs.

    ``what``: read, cast, size, upload, device, cache. ``origin`` says why the value is where the model is.
    """

    what: str = "read"
    loop: LoopFrame | None = None
    origin: str = ""
    inner: Span | None = None  # where a function that is called from the round waits, if the call is the place to look at
    trains: bool = True  # else the loop decodes, denoises or only launches, and the user asked for all loops

    @property
    def word(self) -> str:
        """The last part of the name of what waits."""
        return self.name.replace("::", ".").rpartition(".")[2]

    @property
    def round(self) -> str:
        if self.called:
            return "step"
        return "training step" if self.trains else "loop iteration"

    @property
    def called(self) -> bool:
        """Whether the round is a call of this method: the loop is a framework's, out of view."""
        return self.loop is not None and self.loop.head == "called"


@record(eq=False, slots=True)
class Query(Operation):
    of: Event | Stream | None = None


@record(eq=False, slots=True)
class Clock(Operation):
    """The host looks at a clock."""


@record(eq=False, slots=True)
class Collective(Operation):
    """A collective of several processes: it writes behind the current stream. An asynchronous one gives a handle to wait on."""

    writes: tuple[Buffer, ...] = ()
    asynchronous: bool = False


@record(eq=False, slots=True)
class Spin(Operation):
    """A loop that only asks whether an event or a stream is done."""


@record(eq=False, slots=True)
class Callback(Operation):
    """The registration of a host function. ``body_known`` is False where its body is not at hand."""

    stream: Stream | None = None
    body_known: bool = False


@record(eq=False, slots=True)
class Create(Operation):
    """A stream or an event is created, or a handle."""

    value: Stream | Event | None = None
    what: str = "stream"
    before: bool = False  # it was made before the root's own body began


@record(eq=False, slots=True)
class Destroy(Operation):
    """A stream, an event, a handle or a graph is destroyed. ``what`` is event where it is one for sure, ``value`` the event."""

    what: str = ""
    value: Event | None = None


@record(eq=False, slots=True)
class Block(Operation):
    """The host blocks until another thread lets it go. ``what``: join, result, condition, queue, lock; ``on`` names a lock."""

    what: str = "join"
    on: str = ""


@record(eq=False, slots=True)
class Touch(Operation):
    """A call that uses the device, and moves and orders nothing that is followed: ``module.cuda()``, ``set_device``, ``pin_memory``."""

    evidence: Evidence = Evidence.NONE


@record(eq=False, slots=True)
class Spawn(Operation):
    """A thread, a process or a loader's worker starts."""

    beside: Beside | None = None
    body_known: bool = False


@record(eq=False, slots=True)
class Opaque(Operation):
    """A call whose body is not at hand."""

    callee: str = ""
    on_device: bool = False  # it was given tensors that may be on a device: it works there
    works: Evidence = Evidence.NONE  # a module, called: why it works on a device, on ``stream``
    stream: Stream | None = None  # where it works, as far as that is shown
    may_wait: bool = False  # its name says that it may wait for the device
    awaits: str = ""  # whom the host waits for in it, beside the device
    of_status: bool = False  # C++: it looks at what another call of CUDA's has returned
    on_host: tuple[Buffer, ...] = ()  # the memory of the host that it was given, if none of what it was given is known to be on a device


@record(eq=False, slots=True)
class Entry(Operation):
    """A root is entered: what its caller put on the current stream may still be running, and may still write what it hands over."""

    stream: Stream | None = None


# What works on a device, in the order of a stream.
Work = Copy | Launch | Opaque


@record(frozen=True, slots=True)
class Conflict:
    """Two accesses to one buffer, at least one a write, that no guaranteed order brings apart.

    ``missing`` says what would: ``host-wait`` (the host must wait for the first), ``stream-wait``, or ``lifetime``: the first uses a block
    whose last reference the second has let go. ``buffer`` is what the second touches.
    """

    first: Operation
    second: Operation
    missing: str
    guesses: int = 0
    first_writes: bool = True
    buffer: Buffer | None = None


def on_other_stream(operation: Operation) -> bool:
    """Whether an operation makes a stream, or stands on one that is not the default one, nor what was current when its root began."""
    if isinstance(operation, Create):
        return operation.what == "stream"
    stream = getattr(operation, "stream", None)
    return stream is not None and stream.kind not in ("null", "ambient")


def starts(operation: Operation, kind: str) -> bool:
    """Whether code of a kind that runs beside the path is started: a thread, a process, a worker."""
    return isinstance(operation, Spawn) and operation.beside is not None and operation.beside.kind == kind


def goes_on(operation: Operation) -> bool:
    """Whether a thread or a worker is started, or does this: what it does is not over where its starter is."""
    return isinstance(operation, Spawn) or operation.context.beside is not None
