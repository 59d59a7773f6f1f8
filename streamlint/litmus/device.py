"""The GPU's side of a litmus run: streams, buffers and events, and what each call of a program is in CuPy's runtime.

CuPy's runtime calls release the GIL (all but queries and peer access), so threads of one process can wait in CUDA side by side.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
from collections.abc import Callable
from typing import Any

from streamlint.litmus.program import MOST_CALLS, Call, Program, home_of
from streamlint.verify.lab import Lab

SMALL = 64  # bytes of a small copy
BIG = 16 << 20  # bytes of a big one: pageable uploads of this size wait for their stream
_REGISTERED = 1 << 16
_POISON, _VALUE = 0, 7
_H2H, _H2D, _D2H, _D2D, _DEFAULT = range(5)
_FIRST = r'extern "C" __global__ void first(volatile int* flag) { *flag = 1; __threadfence_system(); }'
_ORDERED = 4096  # bytes of stream-ordered memory
_TOUCH = r"""extern "C" __global__ void touch(int* memory, volatile int* flag) { *memory = 7; *flag = 1; __threadfence_system(); }"""
_MODES = {"global": 0, "threadLocal": 1, "relaxed": 2}


class Device:
    """Everything that programs use, made once; :meth:`prepare` and :meth:`clear` do what each run needs."""

    def __init__(self) -> None:
        self.lab = Lab()
        self.cupy, self.runtime = self.lab.cupy, self.lab.runtime
        self.numpy: Any = importlib.import_module("numpy")
        runtime = self.runtime
        self.handles: dict[str, int] = {"null": 0, "ptds": 2}
        for name in ("b1", "b2"):
            self.handles[name] = int(runtime.streamCreate())
        for name in ("n1", "n2"):
            self.handles[name] = int(runtime.streamCreateWithFlags(1))
        self.source, self.sink = int(runtime.malloc(BIG)), int(runtime.malloc(BIG))
        runtime.memset(self.source, _VALUE, BIG)
        self.pinned = int(runtime.hostAlloc(BIG * 2, 0))
        self.pageable = self.numpy.ones(BIG, "uint8")
        self.targets: list[Any] = [self.numpy.ones(BIG, "uint8") for _ in range(MOST_CALLS)]
        self.landing = int(runtime.hostAlloc(SMALL * MOST_CALLS, 0))
        self.landing_big = [int(runtime.hostAlloc(BIG, 0)) for _ in range(MOST_CALLS)]
        self.managed = int(runtime.mallocManaged(SMALL))
        self.graphs = [self._graph(slot) for slot in range(MOST_CALLS)]
        self.executables = [int(runtime.graphInstantiate(graph)) for graph in self.graphs]
        self.first = _FirstLaunch(self.cupy)
        self.peer = _Peer(self) if self._reaches_a_second() else None
        self.events: dict[int, int] = {}
        self.made: dict[int, Any] = {}
        self.late: list[Callable[[], Any]] = []
        self.access = False

    def _reaches_a_second(self) -> bool:
        """Whether there is a second device, and each of the two can use the other's memory."""
        runtime = self.runtime
        return bool(runtime.getDeviceCount() > 1 and runtime.deviceCanAccessPeer(0, 1) and runtime.deviceCanAccessPeer(1, 0))

    def _graph(self, slot: int) -> int:
        stream = self.handles["n1"]
        self.runtime.streamBeginCapture(stream, 2)
        self.lab.post(stream, slot)
        return int(self.runtime.streamEndCapture(stream))

    # --- before and after a run ---------------------------------------------------------------------------------------------------------

    def prepare(self, program: Program) -> None:
        """Make what the program's calls use, poison what they write, and wait for the device."""
        runtime = self.runtime
        if self.peer is not None and program.access != self.access:
            self.peer.set_access(program.access)
            self.access = program.access
        self.events, self.made, self.late = {}, {}, []
        if self.peer is not None:
            self.peer.shared = 0
        for index, call in enumerate(program.calls):
            self.lab.raise_flag(index, 0)
            if call.event is not None and call.event not in self.events:
                with self.cupy.cuda.Device(home_of(program.calls, call.event)):
                    self.events[call.event] = int(runtime.eventCreateWithFlags(2))  # without timing
            self._poison(index, call)
            if call.device and self.peer is not None:
                self.peer.prepare(index, call)
            elif (maker := _MAKERS.get(call.call)) is not None:
                self.made[index] = maker(self)
        self._synchronize()

    def _poison(self, index: int, call: Call) -> None:
        if ".d2h." not in call.call:
            return
        address, size = self._target(index, call)
        ctypes.memset(address, _POISON, 1)
        ctypes.memset(address + size - 1, _POISON, 1)

    def _target(self, index: int, call: Call) -> tuple[int, int]:
        """Where a download lands: address and bytes."""
        size = BIG if call.call.endswith("big") else SMALL
        if ".pinned." in call.call:
            return (self.landing_big[index], size) if size == BIG else (self.landing + SMALL * index, size)
        if ".managed." in call.call:
            return self.managed, size
        return int(self.targets[index].ctypes.data), size

    def done(self, index: int, call: Call) -> bool:
        """Whether the mark of a call's work is there."""
        if ".d2h." in call.call:
            address, size = self._target(index, call)
            return ctypes.c_uint8.from_address(address + size - 1).value == _VALUE
        if call.stream == "q1" and self.peer is not None:
            return self.peer.lab.posted(index)
        return self.lab.posted(index)

    def clear(self, end_captures: Callable[[], None]) -> None:
        """Undo what a run made; nothing of it may be in flight."""
        end_captures()
        self._synchronize()
        for undo in (*self.late, *(lambda event=event: self.runtime.eventDestroy(event) for event in self.events.values())):
            with contextlib.suppress(Exception):  # what was captured or refused has nothing to undo
                undo()
        self._synchronize()

    def _synchronize(self) -> None:
        """Wait for both devices."""
        self.runtime.deviceSynchronize()
        if self.peer is not None:
            self.peer.synchronize()

    # --- calls ----------------------------------------------------------------------------------------------------------------------------

    def call(self, index: int, call: Call) -> int | None:
        """Make a call; returns what a query said. Raises CuPy's error with ``status`` when CUDA refuses."""
        stream = self.handles.get(call.stream, 0)
        if call.stream == "q1":
            assert self.peer is not None
            return self.peer.call(index, call)
        if call.call.startswith("beginCapture"):
            self.runtime.streamBeginCapture(stream, _MODES[call.call.partition(".")[2]])
            return None
        if call.call == "endCapture":
            self.runtime.graphDestroy(self.runtime.streamEndCapture(stream))
            return None
        if call.effect.peer:
            assert self.peer is not None
            self.peer.across(index, call, stream)
            return None
        if call.call.startswith("mem"):
            if (special := _COPIES.get(call.call)) is not None:
                special(self, stream)
            else:
                self._copy(index, call, stream)
            return None
        said = _CALLS[call.call](self, index, call, stream)
        return None if said is None else int(said)

    def _copy(self, index: int, call: Call, stream: int) -> None:
        api, direction, memory, size_name = call.call.split(".")
        size = BIG if size_name == "big" else SMALL
        host = {"pinned": self.pinned, "pageable": int(self.pageable.ctypes.data), "managed": self.managed}[memory]
        if direction == "h2d":
            target, source, kind = self.sink, host, _H2D
        else:
            target, source, kind = self._target(index, call)[0], self.source, _D2H
        if memory == "managed":
            kind = _DEFAULT
        if api == "memcpy":
            self.runtime.memcpy(target, source, size, kind)
        else:
            self.runtime.memcpyAsync(target, source, size, kind, stream)

    def foreign(self) -> int:
        """Ordered memory of the other device than the current one."""
        assert self.peer is not None
        return self.peer.allocate(0)

    def refused(self, index: int, call: Call) -> None:
        """CUDA refused a call that frees: do it when the run is over."""
        if call.call == "freeAsync.peer":
            _keep(self, "freeAsync", self.made[index], 0)
        elif call.call in _MAKERS and call.call not in ("hostRegister", "firstLaunch", "launch.peer"):
            self.late.append(lambda: _CALLS[call.call](self, index, call, 0))

    def after(self, undo: Callable[..., Any], *arguments: Any) -> None:
        """Do that when the run is over."""
        self.late.append(lambda: undo(*arguments))

    def host_function(self, index: int, stream: int) -> None:
        self.runtime.launchHostFunc(stream, self.lab.raise_flag, index)


def _keep(device: Device, undo: str, made: Any, *more: Any) -> None:
    device.after(getattr(device.runtime, undo), made, *more)


def _lent(device: Device, memory: int) -> int:
    _keep(device, "freeAsync", memory, 0)
    return memory


def _register(device: Device, block: Any) -> None:
    device.runtime.hostRegister(block.ctypes.data, _REGISTERED, 0)
    device.after(lambda: device.runtime.hostUnregister(block.ctypes.data))


def _registered(device: Device) -> Any:
    block = device.numpy.ones(_REGISTERED, "uint8")
    device.runtime.hostRegister(block.ctypes.data, _REGISTERED, 0)
    return block


_MAKERS: dict[str, Callable[[Device], Any]] = {
    "free": lambda d: d.runtime.malloc(4096),
    "freeHost": lambda d: d.runtime.hostAlloc(4096, 0),
    "freeManaged": lambda d: d.runtime.mallocManaged(4096),
    "freeAsync": lambda d: d.runtime.mallocAsync(4096, 0),
    "freeOrdered": lambda d: d.runtime.mallocAsync(4096, 0),
    "freeAsync.peer": lambda d: d.foreign(),
    "launch.peer": lambda d: _lent(d, d.foreign()),
    "hostRegister": lambda d: d.numpy.ones(_REGISTERED, "uint8"),
    "hostUnregister": _registered,
    "streamDestroy": lambda d: d.runtime.streamCreateWithFlags(1),
    "eventDestroy": lambda d: d.runtime.eventCreateWithFlags(2),
    "firstLaunch": lambda d: d.first.library(),
}
_COPIES: dict[str, Callable[[Device, int], None]] = {
    "memcpyAsync.d2d": lambda d, s: d.runtime.memcpyAsync(d.sink, d.source, SMALL, _D2D, s),
    "memcpy.d2d": lambda d, s: d.runtime.memcpy(d.sink, d.source, SMALL, _D2D),
    "memcpyAsync.h2h": lambda d, s: d.runtime.memcpyAsync(d.targets[0].ctypes.data + SMALL, d.pageable.ctypes.data, SMALL, _H2H, s),
    "memsetAsync.device": lambda d, s: d.runtime.memsetAsync(d.sink, 1, SMALL, s),
    "memset.device": lambda d, s: d.runtime.memset(d.sink, 1, SMALL),
    "memsetAsync.pinned": lambda d, s: d.runtime.memsetAsync(d.pinned + BIG, 1, SMALL, s),
    "memset.pinned": lambda d, s: d.runtime.memset(d.pinned + BIG, 1, SMALL),
}
_CALLS: dict[str, Callable[[Device, int, Call, int], Any]] = {
    "launch": lambda d, i, c, s: d.lab.post(s, i),
    "firstLaunch": lambda d, i, c, s: d.first.launch(d.made[i], d.lab.address(i), s),
    "graphLaunch": lambda d, i, c, s: d.runtime.graphLaunch(d.executables[i], s),
    "launchHostFunc": lambda d, i, c, s: d.host_function(i, s),
    "eventRecord": lambda d, i, c, s: d.runtime.eventRecord(d.events[c.event or 0], s),
    "streamWaitEvent": lambda d, i, c, s: d.runtime.streamWaitEvent(s, d.events[c.event or 0], 0),
    "streamSynchronize": lambda d, i, c, s: d.runtime.streamSynchronize(s),
    "eventSynchronize": lambda d, i, c, s: d.runtime.eventSynchronize(d.events[c.event or 0]),
    "deviceSynchronize": lambda d, i, c, s: d.runtime.deviceSynchronize(),
    "streamQuery": lambda d, i, c, s: d.runtime.streamQuery(s),
    "eventQuery": lambda d, i, c, s: d.runtime.eventQuery(d.events[c.event or 0]),
    "malloc": lambda d, i, c, s: _keep(d, "free", d.runtime.malloc(1 << 20)),
    "free": lambda d, i, c, s: d.runtime.free(d.made[i]),
    "hostAlloc": lambda d, i, c, s: _keep(d, "freeHost", d.runtime.hostAlloc(4096, 0)),
    "freeHost": lambda d, i, c, s: d.runtime.freeHost(d.made[i]),
    "hostRegister": lambda d, i, c, s: _register(d, d.made[i]),
    "hostUnregister": lambda d, i, c, s: d.runtime.hostUnregister(d.made[i].ctypes.data),
    "mallocManaged": lambda d, i, c, s: _keep(d, "free", d.runtime.mallocManaged(4096)),
    "freeManaged": lambda d, i, c, s: d.runtime.free(d.made[i]),
    "streamCreate": lambda d, i, c, s: _keep(d, "streamDestroy", d.runtime.streamCreateWithFlags(1)),
    "streamDestroy": lambda d, i, c, s: d.runtime.streamDestroy(d.made[i]),
    "eventCreate": lambda d, i, c, s: _keep(d, "eventDestroy", d.runtime.eventCreateWithFlags(2)),
    "eventDestroy": lambda d, i, c, s: d.runtime.eventDestroy(d.made[i]),
    "graphInstantiate": lambda d, i, c, s: _keep(d, "graphExecDestroy", d.runtime.graphInstantiate(d.graphs[i])),
    "poolTrim": lambda d, i, c, s: d.runtime.memPoolTrimTo(d.runtime.deviceGetDefaultMemPool(0), 0),
    "mallocAsync": lambda d, i, c, s: _keep(d, "freeAsync", d.runtime.mallocAsync(4096, s), 0),
    "freeAsync": lambda d, i, c, s: d.runtime.freeAsync(d.made[i], s),
    "freeOrdered": lambda d, i, c, s: d.runtime.free(d.made[i]),
}


class _FirstLaunch:
    """Kernels that have never been loaded: a library each, under ``CUDA_MODULE_LOADING=LAZY``. CuPy has no calls for it; libcuda has."""

    def __init__(self, cupy: Any) -> None:
        nvrtc: Any = importlib.import_module("cupy_backends.cuda.libs.nvrtc")
        program = nvrtc.createProgram(_FIRST, "first.cu", [], [])
        nvrtc.compileProgram(program, (f"-arch=sm_{cupy.cuda.Device().compute_capability}",))
        self._image: bytes = nvrtc.getCUBIN(program)
        self._cuda = ctypes.CDLL("libcuda.so.1")

    def library(self) -> ctypes.c_void_p:
        """A library with one kernel in it, not loaded yet."""
        library = ctypes.c_void_p()
        _check(self._cuda.cuLibraryLoadData(ctypes.byref(library), self._image, None, None, 0, None, None, 0))
        return library

    def launch(self, library: ctypes.c_void_p, flag: int, stream: int) -> None:
        kernel, pointer = ctypes.c_void_p(), ctypes.c_uint64(flag)
        _check(self._cuda.cuLibraryGetKernel(ctypes.byref(kernel), library, b"first"))
        arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(pointer), ctypes.c_void_p))
        _check(self._cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, ctypes.c_void_p(stream), arguments, None))


class DriverError(Exception):
    """A call of libcuda that was refused."""

    def __init__(self, status: int) -> None:
        super().__init__(f"CUDA driver status {status}")
        self.status = status


def _check(status: int) -> None:
    if status:
        raise DriverError(status)


class _Peer:
    """A second device: one non-blocking stream, buffers, copies between the two, and a pool of each that the other may use."""

    def __init__(self, first: Device) -> None:
        self.first, self.runtime, self.cupy = first, first.runtime, first.cupy
        with self.cupy.cuda.Device(1):
            self.lab = Lab()
            self.there = int(self.runtime.malloc(BIG))
            self.stream = int(self.runtime.streamCreateWithFlags(1))
        # The kernel writes ordered memory, and says so.
        self.touch = self.cupy.RawKernel(_TOUCH, "touch")
        self.pools = [self._pool(device) for device in (0, 1)]
        self.shared = 0  # what the run has allocated last of the other device's memory

    def _pool(self, device: int) -> int:
        """A pool of a device that both devices may read and write."""
        runtime = self.runtime
        pinned_memory, no_handle, on_device = 1, 0, 1  # cudaMemAllocationTypePinned, cudaMemHandleTypeNone, cudaMemLocationTypeDevice
        pool = int(runtime.memPoolCreate(runtime.MemPoolProps(pinned_memory, no_handle, on_device, device)))
        access = (ctypes.c_int * 3)(on_device, 1 - device, 3)  # CUmemAccessDesc; 3 is CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        _check(ctypes.CDLL("libcuda.so.1").cuMemPoolSetAccess(ctypes.c_void_p(pool), access, ctypes.c_size_t(1)))
        return pool

    def set_access(self, enabled: bool) -> None:
        for device, other in ((0, 1), (1, 0)):
            with self.cupy.cuda.Device(device), contextlib.suppress(Exception):
                (self.runtime.deviceEnablePeerAccess if enabled else self.runtime.deviceDisablePeerAccess)(other)

    def synchronize(self) -> None:
        with self.cupy.cuda.Device(1):
            self.runtime.deviceSynchronize()

    def prepare(self, index: int, call: Call) -> None:
        """Make what a call on the second device uses."""
        with self.cupy.cuda.Device(1):
            self.lab.raise_flag(index, 0)
            if (maker := _MAKERS.get(call.call)) is not None:
                self.first.made[index] = maker(self.first)

    def allocate(self, stream: int) -> int:
        """Ordered memory of the other device than the current one."""
        return int(self.runtime.mallocFromPoolAsync(_ORDERED, self.pools[1 - self.runtime.getDevice()], stream))

    def across(self, index: int, call: Call, stream: int) -> None:
        """A call about both devices, on a stream of the current one."""
        runtime, made = self.runtime, self.first.made
        here = self.first.source
        if call.call == "memcpyPeer":
            runtime.memcpyPeer(self.there, 1, here, 0, SMALL)
        elif call.call == "memcpyPeerAsync":
            runtime.memcpyPeerAsync(self.there, 1, here, 0, SMALL, stream)
        elif call.call == "memcpy.peer":
            runtime.memcpy(self.there, here, SMALL, _DEFAULT)
        elif call.call == "memcpyAsync.peer":
            runtime.memcpyAsync(self.there, here, SMALL, _DEFAULT, stream)
        elif call.call == "mallocAsync.peer":
            self.shared = self.allocate(stream)
            _keep(self.first, "freeAsync", self.shared, 0)
        elif call.call == "freeAsync.peer":
            runtime.freeAsync(made[index], stream)
        else:
            self._touch(index, call, stream)

    def _touch(self, index: int, call: Call, stream: int) -> None:
        flag = (self.lab if call.device else self.first.lab).address(index)
        words = (self.cupy.uint64(self.shared or self.first.made[index]), self.cupy.uint64(flag))
        self.touch((1,), (1,), words, stream=self.cupy.cuda.ExternalStream(stream))

    def call(self, index: int, call: Call) -> int | None:
        """A call on the second device's stream."""
        with self.cupy.cuda.Device(1):
            if call.call == "launch":
                self.lab.post(self.stream, index)
            elif call.call == "launchHostFunc":
                self.runtime.launchHostFunc(self.stream, self.lab.raise_flag, index)
            elif call.effect.peer:
                self.across(index, call, self.stream)
            else:
                result = _CALLS[call.call](self.first, index, call, self.stream)
                return None if result is None else int(result)
        return None
