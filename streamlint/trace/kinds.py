"""What calls of the CUDA runtime and driver do to the host, by their published names.

Sources: CUDA Runtime API and Driver API references (13.0), "API synchronization behavior" and the pages of the functions. Whether a copy
really held the host is measured from the recording; this says only which calls may.
"""

from __future__ import annotations

import functools
import re

WAIT, COPY, ALLOCATE, FREE, PIN, LAUNCH, QUERY, GRAPH, OTHER = (
    *("wait", "copy", "allocate", "free", "pin", "launch", "query", "graph", "other"),
)
_SUFFIX = re.compile(r"(?:_v\d+(?=_|$)|_ptsz|_ptds)+$")
_VERSION = re.compile(r"_v\d{4,}$")
_KINDS = (
    (WAIT, re.compile(r"(?:cuda|cu)(?:(?:Stream|Device|Thread|Event|Ctx)Synchronize)$")),
    (
        ALLOCATE,
        re.compile(r"(?:cudaMalloc(?:Managed|Pitch|3D|Array|3DArray|MipmappedArray|Async|FromPoolAsync)?|cuMem(?:Alloc\w*|Create|Map))$"),
    ),
    (FREE, re.compile(r"(?:cudaFree(?:Async|Array|MipmappedArray)?|cuMem(?:Free(?:Async)?|Release|Unmap)|cuArrayDestroy)$")),
    (
        PIN,
        re.compile(
            r"(?:cuda(?:MallocHost|HostAlloc|FreeHost|HostRegister|HostUnregister)|cuMem(?:AllocHost|HostAlloc|FreeHost|HostRegister|HostUnregister))$"
        ),
    ),
    (GRAPH, re.compile(r"(?:cuda|cu)(?:Graph\w+|Stream(?:Begin|End)Capture\w*)$")),
    (LAUNCH, re.compile(r"(?:cuda|cu)(?:Launch\w+|Memset\w*Async)$")),  # asynchronous fills never hold the host
    (COPY, re.compile(r"(?:cuda|cu)(?:Memcpy|Memset|MemsetD)\w*$")),
    (QUERY, re.compile(r"(?:cuda|cu)(?:Stream|Event)Query$")),
)


_DIRECT = ("pinned", "device", "array")
_TAKES_SIZE = re.compile(
    r"cuda(?:Malloc(?:Managed|Async|FromPoolAsync|Host)?|HostAlloc|HostRegister)$"
    r"|cuMem(?:Alloc(?:Managed|Async|FromPoolAsync|Host)?|HostAlloc|HostRegister|Create)$"
)


_TAKES_STREAM = re.compile(r"(?:cuda|cu)StreamSynchronize$")


def plain(name: str) -> str:
    """A call's name without versions and stream suffixes: ``cudaMemcpyAsync`` of ``cudaMemcpyAsync_ptsz_v7000``."""
    return _SUFFIX.sub("", _VERSION.sub("", name))


@functools.lru_cache(maxsize=4096)
def kind_of(name: str) -> str:
    """What a call (by its plain name) does to the host: one of this module's constants."""
    return next((kind for kind, pattern in _KINDS if pattern.match(name)), OTHER)


def may_block(name: str) -> bool:
    """Whether the host may be held in the call until the device, or the driver, has done something."""
    return kind_of(name) in (WAIT, COPY, ALLOCATE, FREE, PIN)


def is_direct(name: str, source: str, destination: str) -> bool:
    """Whether a call (by its plain name) is an asynchronous copy between kinds of memory that leave the host alone."""
    return kind_of(name) == COPY and "Async" in name and source in _DIRECT and destination in _DIRECT


@functools.lru_cache(maxsize=4096)
def takes_size(name: str) -> bool:
    """Whether a call (by its plain name) allocates or pins memory, and its second parameter is the size in bytes, a `size_t`."""
    return _TAKES_SIZE.match(name) is not None


@functools.lru_cache(maxsize=4096)
def takes_stream(name: str) -> bool:
    """Whether a call (by its plain name) waits for the stream that is its first parameter."""
    return _TAKES_STREAM.match(name) is not None
