"""A stand-in for CUPTI's library: it lends buffers, fills them with records as the real one lays them out, and calls back."""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
import sys
import threading
from collections.abc import Iterator
from typing import Any

API = struct.Struct("<IIQQIIII")
KERNEL9 = 208  # bytes of CUpti_ActivityKernel9 (CUDA 12)
COPY6 = 96  # of CUpti_ActivityMemcpy6
NAMES = {
    2: {20: b"cudaMalloc_v3020", 31: b"cudaMemcpy_v3020", 131: b"cudaStreamSynchronize_v3020", 211: b"cudaLaunchKernel_v7000"},
    1: {276: b"cuMemcpyHtoD_v2", 2: b"cuDriverGetVersion"},
}


class FakeLibrary:
    """The functions that the recorder calls, and `happens` for a test that plays the program."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.refuses = refuses
        self.time = 1_000
        self.told: set[tuple[int, int]] = set()
        self.ended = False
        self.enabled: set[int] = set()
        self.enabled_once: set[int] = set()
        self.cuptiGetTimestamp = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_uint64))(self._now)  # compiled code calls it, too
        self._buffer, self._used = 0, 0
        self._texts = {name: ctypes.create_string_buffer(name) for named in NAMES.values() for name in named.values()}
        self.left = 0
        self.cuptiFinalize = ctypes.CFUNCTYPE(ctypes.c_int)(self._leave)
        self.kernel = ctypes.create_string_buffer(b"add_kernel")
        self.cuptiActivityGetNextRecord = _NextRecord(self)
        number = ctypes.POINTER(ctypes.c_uint32)
        self.cuptiGetStreamIdEx = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint8, number)(self._stream)
        self.streams: dict[int, int] = {}  # that exist: their number, and how they were made

    def cuptiGetVersion(self, version: Any) -> int:
        version._obj.value = 28
        return 0

    def _now(self, time: Any) -> int:
        time[0] = self.time
        return 0

    def _stream(self, _context: int | None, stream: int | None, _per_thread: int, number: Any) -> int:
        number[0] = 7 if stream is None else stream & 0xFF
        return stream == 0xBAD

    def _leave(self) -> int:
        self.left += 1
        self.told.clear()
        return 0

    def cuptiGetCallbackName(self, domain: int, number: int, name: Any) -> int:
        if number not in NAMES[domain]:
            return 1
        name._obj.value = ctypes.addressof(self._texts[NAMES[domain][number]])
        return 0

    def cuptiSubscribe(self, _subscriber: Any, called: Any, _argument: object) -> int:
        self._called = called
        return self.refuses

    def cuptiEnableCallback(self, _enable: int, _subscriber: object, domain: int, number: int) -> int:
        self.told.add((domain, number))
        return 0

    def cuptiActivitySetAttribute(self, _attribute: int, _size: object, _value: object) -> int:
        return 0

    def cuptiSetThreadIdType(self, _kind: int) -> int:
        return 0

    def cuptiActivityEnable(self, kind: int) -> int:
        self.enabled.add(kind)
        self.enabled_once.add(kind)
        return 0

    def cuptiActivityEnableAndDump(self, kind: int) -> int:
        if self.streams:
            self.records(*(struct.pack("<IIIIII", kind, 1, number, 0, flag, 0) for number, flag in self.streams.items()))
        return 0

    def cuptiActivityDisable(self, kind: int) -> int:
        self.enabled.discard(kind)
        return 0

    cuptiActivityEnableDriverApi = cuptiActivityEnableRuntimeApi = lambda _self, _number, _enable: 0

    def cuptiActivityRegisterCallbacks(self, requested: Any, completed: Any) -> int:
        self._requested, self._completed = requested, completed
        return 0

    def cuptiActivityFlushAll(self, _flag: int) -> int:
        if self._used:
            self._completed(ctypes.c_void_p(0), 0, ctypes.c_void_p(self._buffer), ctypes.c_size_t(1 << 20), ctypes.c_size_t(self._used))
            self._buffer = self._used = 0
        return 0

    def cuptiUnsubscribe(self, _subscriber: object) -> int:
        self.ended = True
        return 0

    @contextlib.contextmanager
    def call(self, domain: int, number: int, correlation: int, start: int, end: int, second: int = 0, first: int = 0) -> Iterator[None]:
        """A call on this thread, and what happens in it."""
        parameters = (ctypes.c_uint64 * 4)(first, second)
        data = (ctypes.c_uint32 * 18)()
        data[16] = correlation
        struct.pack_into("<Q", data, 16, ctypes.addressof(parameters))
        is_told = (domain, number) in self.told
        for data[0], self.time in ((0, start), (1, end)):
            if is_told:
                self._called(None, domain, number, data)
            if not data[0]:
                yield
        kind = 5 if domain == 2 else 4
        if kind in self.enabled:
            self.records(API.pack(kind, number, start, end, os.getpid(), threading.get_native_id(), correlation, 0))

    def records(self, *records: bytes) -> None:
        """Activity records."""
        if not self._buffer:
            buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
            self._requested(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
            self._buffer = buffer.value or 0
        for one in records:
            ctypes.memmove(self._buffer + self._used, one, len(one))
            self._used += len(one)

    def launched(self, start: int, end: int, correlation: int, stream: int = 7) -> bytes:
        record = bytearray(KERNEL9)
        struct.pack_into("<I", record, 0, 10)
        struct.pack_into("<QQ", record, 16, start, end)
        struct.pack_into("<I", record, 48, stream)
        struct.pack_into("<I", record, 92, correlation)
        struct.pack_into("<Q", record, 104, ctypes.addressof(self.kernel))
        return bytes(record)

    def copied(self, start: int, end: int, correlation: int, count: int, ends: tuple[int, int]) -> bytes:
        record = bytearray(COPY6)
        struct.pack_into("<IBBBBQQQ", record, 0, 1, 1, *ends, 0, count, start, end)
        struct.pack_into("<II", record, 40, 7, correlation)
        return bytes(record)


class _NextRecord:
    """Goes through the records by their lengths."""

    LENGTHS = {1: COPY6, 4: 40, 5: 40, 10: KERNEL9, 37: 24, 38: 56}  # noqa: RUF012

    def __init__(self, library: FakeLibrary) -> None:
        self.library = library

    def __call__(self, buffer: int, length: int, record: Any) -> int:
        at = record._obj.value
        after = at + self.LENGTHS[ctypes.c_uint32.from_address(at).value]
        if after >= buffer + length:
            return 12
        record._obj.value = after
        return 0


def played(library: FakeLibrary) -> None:
    """A program: an allocation, an upload through the driver below the runtime, and a kernel."""
    with library.call(2, 20, 1, 10, 20, second=4096):
        pass
    with library.call(2, 31, 2, 30, 40), library.call(1, 276, 3, 32, 39):
        pass
    with library.call(2, 211, 4, 50, 55):
        pass
    library.records(library.copied(33, 38, 3, 4096, (1, 3)), library.launched(60, 70, 4))


def main() -> None:
    """Run a program recorded, as `python -m streamlint.record` does, on a machine with this library in place of a GPU."""
    from streamlint.trace.recording import cupti, program, recorder  # start-up: pytest does not run this

    library = FakeLibrary()
    sys.modules["fake_cupti_library"] = library  # type: ignore[assignment]
    recorder.open_cupti = lambda: cupti.Cupti(library)  # type: ignore[attr-defined]
    program.require_gpu = lambda: None  # type: ignore[attr-defined]
    sys.exit(program.main(sys.argv[1:]))


if __name__ == "__main__":
    main()
