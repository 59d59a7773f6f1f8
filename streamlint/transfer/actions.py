"""Actions: what an instruction does to streams, events and memory. Registers are those of its function; ``NONE`` is not at hand."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.graph.call_graph import LibraryCall
from streamlint.ir import opcodes as op

CURRENT, NULL, NAMED, UNKNOWN = "current", "null", "named", "unknown"
HANDLE = "handle"
"""A stream that a library's handle was given: the register is that of the handle."""
APART = "apart"
"""A stream of the library's own, which begins behind the current one: only what is in the register, the handle of the work, leads to it."""
DEVICE = "device"


class Stream(NamedTuple):
    """A stream as an instruction names it: ``current`` of a library, ``null``, ``named`` by a register, or ``unknown``."""

    kind: str
    register: int = op.NONE
    library: str = ""


class Copied(NamedTuple):
    """A copy. ``asynchronous`` is None where that is not known; ``flag`` is the register that decides it. A side of NONE is not at hand."""

    target: int
    source: int
    stream: Stream
    asynchronous: bool | None
    flag: int
    direction: str
    call: LibraryCall


class Synchronized(NamedTuple):
    """The host waits: for a stream, for an event (``of`` is its register), or for the device."""

    of: Stream | int | None
    name: str


class Recorded(NamedTuple):
    """An event, in a register, is recorded on a stream. ``inside``: the register holds a list of such events."""

    event: int
    stream: Stream
    inside: bool = False


class Asked(NamedTuple):
    """A query: whether an event or a stream, in a register, is done. ``is_status``: the answer is a status, zero for done."""

    of: int
    is_status: bool = False


VARIABLE = -1
"""In place of a number of containers: the memory is that of the variable itself, whose address was given away."""


class Signalled(NamedTuple):
    """A function of the host is queued on a stream, with data that it may set once the work before it is done."""

    stream: Stream
    registers: tuple[int, ...]


class Touched(NamedTuple):
    """A call is given these registers, whatever it does with them."""

    registers: tuple[int, ...]


MASKING = "masking"
"""The name of a read for the elements that a mask picks: only the device knows how many these are, and the host waits for the number."""


class Read(NamedTuple):
    """The host looks at what a register holds. ``waits``: of a value on a device, it waits for the current stream first; ``presumes``: also
    of one that may be there. ``depth``: so many containers down."""

    register: int
    name: str
    waits: bool = True
    presumes: bool = False
    depth: tuple[int, ...] = (0,)


class Written(NamedTuple):
    """The host changes the memory that a register holds."""

    register: int
    name: str


class Freed(NamedTuple):
    """The host gives back the memory that a register holds, and waits for no device."""

    register: int
    name: str


class Released(NamedTuple):
    """The memory of a buffer is given back while the object stays. ``is_shared``: all views lose it; else the object has other memory."""

    register: int
    name: str
    is_shared: bool


class Updated(NamedTuple):
    """The object in a register changes the argument that it was made with at a position; where that is on the host, the host does."""

    register: int
    given: int
    name: str


class Viewed(NamedTuple):
    """The result is the same memory, of a type; ``announces``: it is made for the host to look at. ``casts``: it is new memory where the
    elements had another type, as they have in code that asks for one."""

    register: int
    type: str = ""
    announces: bool = False
    casts: bool = False


class Lost(NamedTuple):
    """A call out of view: it may wait for all that it is given. ``method`` is its name, if a method of an unknown value is called."""

    registers: tuple[int, ...]
    method: str = ""


Action = tuple[object, ...]
"""Any of these; an effect may have more of its own."""
