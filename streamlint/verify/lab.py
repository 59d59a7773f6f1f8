"""The lab: gates, marks and warm memory, through CuPy alone.

Dangers first. A gate is a kernel that spins. While it spins:

* **a process that dies leaves it running** until its limit; the limit is therefore part of the kernel and counts device time, so that no
  gate outlives ``LIMIT_S`` whatever happens to the host;
* **a host thread that waits for the gated stream and is also the one to open the gate deadlocks** until the limit. A gate is therefore
  opened by a thread of its own, which needs the GIL: a call that holds the GIL while it waits makes the gate give up
  (unless that is the question: such a gate is given a short limit, and expected to lapse);
* **a gate that gave up yields no number**: what was measured behind it is void, and :class:`GateGaveUpError` says so;
* **loading a kernel may wait for the device** under the context's lock (CUDA C++ Programming Guide, lazy loading). Every kernel must
  have run once before a gate shuts; experiments run the program once with no gate for that;
* it keeps one SM busy and the device looks hung to a display driver: not for a GPU that drives a screen.

Times are in the unit that the name says: ``_ms``, ``_s``.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import threading
import time
from types import TracebackType
from typing import Any

from streamlint.verify.timeline import Timeline

LIMIT_S = 3.0  # device time after which a gate gives up by itself
START_S = 2.0  # host time within which a gate must have said that it runs
MEMORY = "STREAMLINT_VERIFY_MEMORY"  # the variable that says how many bytes of the device a child may take
MEMORY_BYTES = 1 << 30
_SLOT = 16  # 32-bit words between two flags: one cache line each
_FIRST_FLAG = 8  # the slots before it are the gate's and the mark's
FLAGS = 48

# `open` and `running` lie in mapped host memory. globaltimer counts ns and is the same clock on all SMs. __nanosleep keeps the spin from
# flooding the bus.
_SOURCE = r"""
extern "C" __global__ void gate(volatile int* open, volatile int* running, volatile int* gave_up, unsigned long long limit_ns) {
  unsigned long long start, now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  *running = 1;
  __threadfence_system();
  do {
    __nanosleep(500);
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (!*open && now - start < limit_ns);
  if (!*open) { *gave_up = 1; __threadfence_system(); }
}
extern "C" __global__ void mark(volatile int* flag, int value) { *flag = value; __threadfence_system(); }
"""


class LabError(Exception):
    """An experiment yields no number; the text says why."""


class GateGaveUpError(LabError):
    """The gate opened by itself at its limit."""


def pool_bytes() -> int:
    """What CuPy's pool may take of the device; torch's allocator gets as much."""
    return int(os.environ.get(MEMORY) or MEMORY_BYTES) // 2


def handle_of(stream: Any) -> int:
    """The raw ``cudaStream_t`` of a torch, CuPy or numba stream; 0 is the null stream."""
    for name in ("cuda_stream", "ptr"):
        if hasattr(stream, name):
            return int(getattr(stream, name))
    handle = stream.handle
    return int(getattr(handle, "value", handle) or 0)


class Lab:
    """One device, its flags and kernels. Make one per process."""

    def __init__(self, timeline: Timeline | None = None) -> None:
        self.timeline = timeline or Timeline()
        self.cupy: Any = importlib.import_module("cupy")
        self.runtime: Any = self.cupy.cuda.runtime
        self.cupy.get_default_memory_pool().set_limit(size=pool_bytes())
        module = self.cupy.RawModule(code=_SOURCE)
        self._gate, self._mark = module.get_function("gate"), module.get_function("mark")
        # cudaHostAllocMapped (2): under unified addressing the host's address is the device's (CUDA runtime API, cudaHostAlloc).
        self._address = int(self.runtime.hostAlloc(4096, 2))
        self._flags: Any = (ctypes.c_int32 * 1024).from_address(self._address)
        self._token = 0
        self._keep: list[Any] = []
        self._warm()

    def _warm(self) -> None:
        """Load both kernels, and touch what is slow or takes locks the first time: streams, events, allocators, the first D2H."""
        for blocking in (True, False):
            stream = self.stream(blocking=blocking)
            self._launch(self._mark, stream.ptr, self._word(0), self.cupy.int32(0))
            event = self.cupy.cuda.Event(disable_timing=True)
            event.record(stream)
            event.synchronize()
        self._set(1, 1)  # a gate that is open from the start
        self._launch_gate(0)
        self.cupy.zeros(1024, dtype="float32").get()
        self.runtime.free(self.runtime.malloc(1 << 20))
        self.runtime.freeHost(self.runtime.hostAlloc(1 << 16, 0))
        self.synchronize()

    def _word(self, slot: int) -> Any:
        return self.cupy.uint64(self._address + 4 * _SLOT * slot)

    def _set(self, slot: int, value: int) -> None:
        self._flags[_SLOT * slot] = value

    def _get(self, slot: int) -> int:
        return int(self._flags[_SLOT * slot])

    def _launch(self, kernel: Any, stream: int, *arguments: Any) -> None:
        kernel((1,), (1,), arguments, stream=self.cupy.cuda.ExternalStream(stream))

    def _launch_gate(self, stream: int, limit_s: float = LIMIT_S) -> None:
        limit = self.cupy.uint64(int(limit_s * 1e9))
        self._launch(self._gate, stream, self._word(1), self._word(2), self._word(3), limit)

    def stream(self, *, blocking: bool = False) -> Any:
        """A CuPy stream that lives as long as the lab. ``blocking``: ordered against the null stream."""
        stream = self.cupy.cuda.Stream(non_blocking=not blocking)
        self._keep.append(stream)
        return stream

    def keep(self, thing: Any) -> Any:
        """Hold a reference until the process ends, so that no destructor calls CUDA while a gate is shut."""
        self._keep.append(thing)
        return thing

    def is_open(self) -> bool:
        """Whether no gate is shut."""
        return self._get(1) != 0

    def synchronize(self) -> None:
        """Wait for the device (``cudaDeviceSynchronize``)."""
        self.runtime.deviceSynchronize()

    def mark(self, stream: int) -> int:
        """Launch a kernel that leaves a token in host memory, and return the token."""
        self._token += 1
        self._launch(self._mark, stream, self._word(4), self.cupy.int32(self._token))
        return self._token

    def post(self, stream: int, flag: int) -> None:
        """Launch a kernel that raises a flag; ``flag`` counts from 0 to ``FLAGS - 1``."""
        self._launch(self._mark, stream, self._word(_FIRST_FLAG + flag), self.cupy.int32(1))

    def address(self, flag: int) -> int:
        """Where a flag lies, for a kernel of one's own to raise."""
        return self._address + 4 * _SLOT * (_FIRST_FLAG + flag)

    def raise_flag(self, flag: int, value: int = 1) -> None:
        """Set a flag from the host; 0 takes it down."""
        self._set(_FIRST_FLAG + flag, value)

    def posted(self, flag: int) -> bool:
        """Whether a flag is up."""
        return self._get(_FIRST_FLAG + flag) != 0

    def marked(self, token: int) -> bool:
        """Whether the mark of that token has run."""
        return self._get(4) == token

    def await_mark(self, token: int, seconds: float) -> bool:
        """Wait for a mark, host time."""
        end = time.perf_counter() + seconds
        while not self.marked(token) and time.perf_counter() < end:
            time.sleep(0.0005)
        return self.marked(token)

    def gate(self, stream: int, lapses_s: float = 0.0) -> Gate:
        """A gate on the raw stream handle; shut it with ``with``. ``lapses_s``: it is meant to open by itself after that device time."""
        return Gate(self, stream, lapses_s)


class Gate:
    """Holds a stream shut from ``__enter__`` until it is opened; leaving the block opens it and waits for the device."""

    def __init__(self, lab: Lab, stream: int, lapses_s: float = 0.0) -> None:
        self._lab, self._stream, self._lapses_s = lab, stream, lapses_s
        self._opener: threading.Thread | None = None
        self._cancel = threading.Event()
        self.shut_at: float | None = None  # time.perf_counter, seconds: when the gate's kernel was seen to run,
        self.opened_at: float | None = None  # when it was opened,
        self.idle_at: float | None = None  # and when the device had nothing left to do

    def __enter__(self) -> Gate:
        lab = self._lab
        for slot in (1, 2, 3):
            lab._set(slot, 0)
        lab._launch_gate(self._stream, self._lapses_s or LIMIT_S)
        end = time.perf_counter() + START_S
        while not lab._get(2):  # the kernel's own word that it runs, not a sleep
            if time.perf_counter() > end:
                self.open()
                raise LabError(f"the gate did not start within {START_S:.0f} s")
            time.sleep(0)
        self.shut_at = time.perf_counter()
        return self

    def open(self) -> None:
        """Open now. The time is read before the flag is written, so a call that waits never seems to return early."""
        if self.opened_at is None:
            self.opened_at = time.perf_counter()
        self._lab._set(1, 1)
        self._cancel.set()

    def open_after(self, milliseconds: float) -> None:
        """Open from another thread after that host time."""

        def wait() -> None:
            if not self._cancel.wait(milliseconds / 1e3):
                self.open()

        self._opener = threading.Thread(target=wait, daemon=True)
        self._opener.start()

    def await_open(self) -> float:
        """Wait until the opener has opened; returns when that was (``time.perf_counter``)."""
        if self._opener is not None:
            self._opener.join()
        if self.opened_at is None:
            raise LabError("the gate was never opened")
        return self.opened_at

    @property
    def gave_up(self) -> bool:
        """Whether the gate opened by itself at its limit: then there is no number."""
        return bool(self._lab._get(3))

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.open()
        self._lab.synchronize()
        self.idle_at = time.perf_counter()
        if kind is None and self.gave_up and not self._lapses_s:
            raise GateGaveUpError(f"the gate gave up by itself after {LIMIT_S:.0f} s, so there is no number")
