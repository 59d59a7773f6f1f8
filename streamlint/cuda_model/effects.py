"""What each CUDA call does: the work it puts on a stream, what its host thread waits for, and which locks it takes and holds.

A row is pure data and names the fact that each claim rests on (``facts``); whether the claim is relied upon is the reader's question:
races ask what is guaranteed, stalls what may wait, the lab what was observed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import NamedTuple

from streamlint.cuda_model.memory import Direction, Memory
from streamlint.support.records import record, replace


class Work(enum.Enum):
    """What a call puts on its stream. Only some of it takes part in the null stream's barrier."""

    NONE = "none"
    DEVICE = "device"  # kernels, copies, memsets, graphs
    HOST_FUNCTION = "host function"
    RECORD = "record"
    WAIT = "wait"
    ALLOC = "alloc"  # stream-ordered allocation
    FREE = "free"  # stream-ordered free
    PEER = "peer"  # a copy between devices


# Work on a blocking stream that an allocation on the null stream has to catch up with, until other null-stream work has come after it.
CAUGHT_UP_WITH = (Work.FREE, Work.WAIT)


class Scope(enum.Enum):
    """What a host thread waits for before a call returns."""

    BEFORE = "the work before it on its stream"
    DEVICE_FIRST = "the device, before it issues its own work"
    ITSELF = "its own work"
    STREAM = "the stream"
    EVENT = "the event"
    DEVICE = "the device"


class Lock(enum.Enum):
    """What two threads cannot have at once. The names are ours: they stand for what was seen."""

    CONTEXT = "every call that issues or manages"
    OBJECTS = "allocation, registration, streams, events and host functions"
    STREAM = "issue to the call's own stream"
    NULL_STREAM = "issue to the null stream"
    UPLOADS = "staging of big pageable uploads"
    DOWNLOADS = "staging of big pageable downloads"


class Captured(enum.Enum):
    """What becomes of a call on a stream that is being captured."""

    NODE = "becomes a node of the graph"
    REFUSED = "is refused, and the capture is lost"
    INVALID = "is refused, and the capture goes on"
    NONE = "has nothing to do with a stream"


@record(frozen=True, slots=True)
class Waits:
    scope: Scope
    fact: str


@record(frozen=True, slots=True)
class Locks:
    lock: Lock
    fact: str


class OnNull(NamedTuple):
    """The locks of a call on the null stream."""

    takes: tuple[Locks, ...] = ()
    holds: tuple[Locks, ...] = ()


@record(frozen=True, slots=True)
class Effect:
    """A row. ``call`` is its name in litmus programs, ``api`` the CUDA function. ``stream``: takes one, or works on the null stream.

    ``takes`` are locks that the call needs for a moment, ``holds`` those that it keeps while it waits.
    """

    call: str
    api: str
    stream: str = ""  # "own", "null" or "" (none)
    work: Work = Work.NONE
    waits: tuple[Waits, ...] = ()
    takes: tuple[Locks, ...] = ()
    holds: tuple[Locks, ...] = ()
    on_null: OnNull = OnNull()  # instead of these, when the stream that it is given is the null stream
    captured: Captured = Captured.NONE
    locks_captured: bool = False  # takes its locks on a captured stream too
    unsafe: bool = False  # refused while a capture goes on, by the capture's mode
    direction: Direction = Direction.UNKNOWN
    memory: Memory = Memory.UNKNOWN
    asynchronous: bool = False
    peer: bool = False  # works on memory of both devices, or of the other one


_ISSUES = (Locks(Lock.CONTEXT, "calls-take-the-context-lock"), Locks(Lock.STREAM, "issue-takes-the-stream-lock"))
_MANAGES = (Locks(Lock.CONTEXT, "calls-take-the-context-lock"), Locks(Lock.OBJECTS, "management-takes-the-object-lock"))
_HOLDS_ALL = Lock.CONTEXT


def _free_of_locks(fact: str) -> tuple[Locks, ...]:
    return (Locks(Lock.CONTEXT, fact),)


_PAGEABLE_HOLDS = (
    Locks(Lock.STREAM, "pageable-copy-holds-its-stream"),
    Locks(Lock.NULL_STREAM, "pageable-copy-holds-the-null-stream"),
    Locks(Lock.OBJECTS, "pageable-copy-holds-objects"),
)
_PAGEABLE_HOLDS_ON_NULL = (Locks(_HOLDS_ALL, "pageable-copy-on-null-holds-all"),)


def _asynchronous_copies() -> Iterable[Effect]:
    async_waits: dict[tuple[Direction, Memory, bool], tuple[Waits, ...]] = {
        (Direction.H2D, Memory.PINNED, False): (Waits(Scope.ITSELF, "h2d-pinned-async-waits"),),
        (Direction.H2D, Memory.PINNED, True): (Waits(Scope.ITSELF, "h2d-pinned-async-waits"),),
        (Direction.D2H, Memory.PINNED, False): (Waits(Scope.ITSELF, "d2h-pinned-async-waits"),),
        (Direction.D2H, Memory.PINNED, True): (Waits(Scope.ITSELF, "d2h-pinned-async-waits"),),
        (Direction.H2D, Memory.PAGEABLE, False): (Waits(Scope.BEFORE, "h2d-pageable-small-async-waits"),),
        (Direction.H2D, Memory.PAGEABLE, True): (Waits(Scope.BEFORE, "h2d-pageable-big-async-waits"),),
        (Direction.D2H, Memory.PAGEABLE, False): (Waits(Scope.ITSELF, "d2h-pageable-async-waits"),),
        (Direction.D2H, Memory.PAGEABLE, True): (Waits(Scope.ITSELF, "d2h-pageable-async-waits"),),
        (Direction.H2D, Memory.MANAGED, False): (Waits(Scope.ITSELF, "managed-async-waits"),),
        (Direction.D2H, Memory.MANAGED, False): (Waits(Scope.ITSELF, "managed-async-waits"),),
    }
    for (direction, memory, big), waits in async_waits.items():
        pageable = memory is Memory.PAGEABLE
        staging: tuple[Locks, ...] = ()
        if pageable and big:
            staging = (Locks(Lock.UPLOADS if direction is Direction.H2D else Lock.DOWNLOADS, "big-pageable-copies-share-staging"),)
        yield Effect(
            f"memcpyAsync.{direction.value}.{memory.value}.{'big' if big else 'small'}",
            "cudaMemcpyAsync",
            "own",
            Work.DEVICE,
            waits,
            _ISSUES + staging,
            _PAGEABLE_HOLDS + staging if pageable else (),
            on_null=OnNull(holds=_PAGEABLE_HOLDS_ON_NULL if pageable else ()),
            captured=Captured.NODE,
            direction=direction,
            memory=memory,
            asynchronous=True,
        )


def _synchronous_copies() -> Iterable[Effect]:
    sync_waits: dict[tuple[Direction, Memory], tuple[Waits, ...]] = {
        (Direction.H2D, Memory.PINNED): (Waits(Scope.ITSELF, "h2d-pinned-sync-waits"),),
        (Direction.D2H, Memory.PINNED): (Waits(Scope.ITSELF, "d2h-sync-waits"),),
        (Direction.H2D, Memory.PAGEABLE): (Waits(Scope.BEFORE, "h2d-pageable-sync-waits"),),
        (Direction.D2H, Memory.PAGEABLE): (Waits(Scope.ITSELF, "d2h-sync-waits"),),
        (Direction.H2D, Memory.MANAGED): (Waits(Scope.ITSELF, "managed-sync-waits"),),
        (Direction.D2H, Memory.MANAGED): (Waits(Scope.ITSELF, "managed-sync-waits"),),
    }
    for (direction, memory), waits in sync_waits.items():
        for big in (False, True) if memory is Memory.PAGEABLE else (False,):
            yield Effect(
                f"memcpy.{direction.value}.{memory.value}.{'big' if big else 'small'}",
                "cudaMemcpy",
                "null",
                Work.DEVICE,
                waits,
                _ISSUES,
                (Locks(_HOLDS_ALL, "sync-copy-holds-all"),),
                direction=direction,
                memory=memory,
            )


def _copies_on_one_side() -> Iterable[Effect]:
    d2d = Effect("memcpyAsync.d2d", "cudaMemcpyAsync", "own", Work.DEVICE, (Waits(Scope.ITSELF, "d2d-waits"),), _ISSUES)
    yield replace(d2d, captured=Captured.NODE, direction=Direction.D2D, memory=Memory.DEVICE, asynchronous=True)
    yield replace(
        d2d, call="memcpy.d2d", api="cudaMemcpy", stream="null", captured=Captured.NONE, direction=Direction.D2D, asynchronous=False
    )
    h2h = Effect("memcpyAsync.h2h", "cudaMemcpyAsync", "own", Work.DEVICE, (Waits(Scope.ITSELF, "h2h-waits"),), _ISSUES)
    holds = (
        Locks(Lock.STREAM, "h2h-holds-its-stream"),
        Locks(Lock.NULL_STREAM, "h2h-holds-its-stream"),
        Locks(Lock.OBJECTS, "h2h-holds-its-stream"),
    )
    yield replace(
        h2h,
        captured=Captured.NODE,
        holds=holds,
        on_null=OnNull(holds=_PAGEABLE_HOLDS_ON_NULL),
        direction=Direction.H2H,
        memory=Memory.PAGEABLE,
        asynchronous=True,
    )


def _sets() -> Iterable[Effect]:
    plain = Effect("memsetAsync.device", "cudaMemsetAsync", "own", Work.DEVICE, (Waits(Scope.ITSELF, "memset-waits"),), _ISSUES)
    yield replace(plain, captured=Captured.NODE, memory=Memory.DEVICE, asynchronous=True)
    yield replace(
        plain, call="memset.device", api="cudaMemset", stream="null", captured=Captured.NONE, memory=Memory.DEVICE, asynchronous=False
    )
    pinned = replace(plain, memory=Memory.PINNED, captured=Captured.NODE)
    yield replace(pinned, call="memsetAsync.pinned", waits=(Waits(Scope.ITSELF, "memset-pinned-async-waits"),), asynchronous=True)
    yield replace(
        pinned,
        call="memset.pinned",
        api="cudaMemset",
        stream="null",
        waits=(Waits(Scope.ITSELF, "memset-pinned-waits"),),
        holds=(Locks(_HOLDS_ALL, "sync-copy-holds-all"),),
        captured=Captured.NONE,
        asynchronous=False,
    )


def _orders() -> Iterable[Effect]:
    yield Effect("launch", "cudaLaunchKernel", "own", Work.DEVICE, (), _ISSUES, captured=Captured.NODE)
    yield Effect(
        "firstLaunch",
        "cuLaunchKernel of a kernel not loaded yet",
        "own",
        Work.DEVICE,
        (Waits(Scope.DEVICE_FIRST, "first-launch-waits"),),
        (*_ISSUES, Locks(Lock.OBJECTS, "first-launch-takes-the-object-lock")),
        (Locks(_HOLDS_ALL, "first-launch-holds-all"),),
        on_null=OnNull(holds=(Locks(_HOLDS_ALL, "first-launch-holds-all"),)),
        captured=Captured.NODE,
    )
    yield Effect("graphLaunch", "cudaGraphLaunch", "own", Work.DEVICE, (), _ISSUES, captured=Captured.REFUSED)
    function = (*_ISSUES, Locks(Lock.OBJECTS, "host-function-takes-the-object-lock"))
    yield Effect(
        "launchHostFunc", "cudaLaunchHostFunc", "own", Work.HOST_FUNCTION, (), function, captured=Captured.NODE, locks_captured=True
    )
    yield Effect("eventRecord", "cudaEventRecord", "own", Work.RECORD, (), _ISSUES, captured=Captured.NODE, locks_captured=True)
    yield Effect(
        "streamWaitEvent", "cudaStreamWaitEvent", "own", Work.WAIT, (), _free_of_locks("wait-takes-a-lock"), captured=Captured.NODE
    )
    sync = _free_of_locks("synchronize-takes-a-lock")
    yield Effect(
        "streamSynchronize",
        "cudaStreamSynchronize",
        "own",
        Work.NONE,
        (Waits(Scope.STREAM, "stream-synchronize-waits"),),
        sync,
        captured=Captured.REFUSED,
        unsafe=True,
    )
    yield Effect(
        "eventSynchronize", "cudaEventSynchronize", "", Work.NONE, (Waits(Scope.EVENT, "event-synchronize-waits"),), sync, unsafe=True
    )
    yield Effect(
        "deviceSynchronize",
        "cudaDeviceSynchronize",
        "",
        Work.NONE,
        (Waits(Scope.DEVICE, "device-synchronize-waits"),),
        sync,
        captured=Captured.REFUSED,
    )
    query = _free_of_locks("query-takes-a-lock")
    yield Effect("streamQuery", "cudaStreamQuery", "own", Work.NONE, (), query, captured=Captured.REFUSED, unsafe=True)
    yield Effect("eventQuery", "cudaEventQuery", "", Work.NONE, (), query, unsafe=True)


def _managing(call: str, api: str, fact: str = "", holds: str = "", **more: object) -> Effect:
    waits = (Waits(Scope.DEVICE, fact),) if fact else ()
    keeps = (Locks(_HOLDS_ALL, holds),) if holds else ()
    row = Effect(call, api, "", Work.NONE, waits, _MANAGES, keeps, unsafe=True)
    return replace(row, **more) if more else row  # type: ignore[arg-type]


def _objects() -> Iterable[Effect]:
    yield _managing("malloc", "cudaMalloc", "malloc-waits", "free-holds-all", memory=Memory.DEVICE)
    yield _managing("free", "cudaFree", "free-waits", "free-holds-all", memory=Memory.DEVICE)
    yield _managing("hostAlloc", "cudaHostAlloc", "host-alloc-waits", "free-holds-all", memory=Memory.PINNED)
    yield _managing("freeHost", "cudaFreeHost", "free-host-waits", "free-holds-all", memory=Memory.PINNED)
    yield _managing("hostRegister", "cudaHostRegister", "host-register-waits", "free-holds-all", memory=Memory.PINNED)
    yield _managing("hostUnregister", "cudaHostUnregister", "host-unregister-waits", "free-holds-all", memory=Memory.PINNED)
    yield _managing("mallocManaged", "cudaMallocManaged", "malloc-managed-waits", "free-holds-all", memory=Memory.MANAGED)
    yield _managing("freeManaged", "cudaFree of managed memory", "free-managed-waits", "free-holds-all", memory=Memory.MANAGED)
    yield _managing("streamCreate", "cudaStreamCreateWithFlags", "stream-create-waits", "free-holds-all", unsafe=False)
    yield _managing("streamDestroy", "cudaStreamDestroy", "stream-destroy-waits", "free-holds-all", unsafe=False)
    yield _managing("eventCreate", "cudaEventCreateWithFlags", unsafe=False)
    yield _managing("eventDestroy", "cudaEventDestroy", unsafe=False)
    yield _managing("graphInstantiate", "cudaGraphInstantiate", "graph-instantiate-waits", "free-holds-all")
    yield _managing("poolTrim", "cudaMemPoolTrimTo", "pool-trim-waits", takes=_free_of_locks("pool-trim-takes-a-lock"))


def _ordered_memory() -> Iterable[Effect]:
    yield Effect(
        "mallocAsync",
        "cudaMallocAsync",
        "own",
        Work.ALLOC,
        (),
        _free_of_locks("malloc-async-takes-a-lock"),
        captured=Captured.NODE,
        unsafe=True,
        memory=Memory.DEVICE,
    )
    yield Effect(
        "freeAsync",
        "cudaFreeAsync",
        "own",
        Work.FREE,
        takes=_free_of_locks("free-async-takes-a-lock"),
        on_null=OnNull(takes=_free_of_locks("free-async-on-null-takes-the-context-lock")),
        captured=Captured.INVALID,
        unsafe=True,
        memory=Memory.DEVICE,
    )
    yield _managing(
        "freeOrdered",
        "cudaFree of cudaMallocAsync's memory",
        "free-of-ordered-memory-waits",
        "free-holds-all",
        takes=_free_of_locks("free-of-ordered-memory-takes-a-lock"),
        memory=Memory.DEVICE,
    )


def _peers() -> Iterable[Effect]:
    copy = Effect(
        "memcpyPeerAsync",
        "cudaMemcpyPeerAsync",
        "own",
        Work.PEER,
        (Waits(Scope.ITSELF, "peer-async-waits"),),
        _ISSUES,
        (Locks(Lock.STREAM, "peer-copy-holds-its-stream"),),
        captured=Captured.NODE,
        direction=Direction.PEER,
        asynchronous=True,
        peer=True,
    )
    yield copy
    yield replace(copy, call="memcpyAsync.peer", api="cudaMemcpyAsync between devices")
    plain = Effect(
        "memcpyPeer",
        "cudaMemcpyPeer",
        "null",
        Work.PEER,
        (Waits(Scope.ITSELF, "peer-sync-waits"),),
        _ISSUES,
        (Locks(_HOLDS_ALL, "sync-copy-holds-all"),),
        direction=Direction.PEER,
        peer=True,
    )
    yield plain
    yield replace(plain, call="memcpy.peer", api="cudaMemcpy between devices")


def _peer_memory() -> Iterable[Effect]:
    ordered = {row.call: row for row in _ordered_memory()}
    yield replace(ordered["mallocAsync"], call="mallocAsync.peer", api="cudaMallocFromPoolAsync of the other device's pool", peer=True)
    yield replace(ordered["freeAsync"], call="freeAsync.peer", api="cudaFreeAsync of the other device's memory", peer=True)
    yield Effect(
        "launch.peer",
        "cudaLaunchKernel on ordered memory of the other device",
        "own",
        Work.DEVICE,
        (),
        _ISSUES,
        captured=Captured.NODE,
        peer=True,
    )


_ALL = (
    _orders,
    _asynchronous_copies,
    _synchronous_copies,
    _copies_on_one_side,
    _sets,
    _objects,
    _ordered_memory,
    _peers,
    _peer_memory,
)
EFFECTS: dict[str, Effect] = {row.call: row for rows in _ALL for row in rows()}
