"""A stand-in for CUPTI's library: it lends buffers, fills them with records as the real one lays them out, and calls back."""

from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any

API = struct.Struct("<IIQQIIII")
KERNEL9 = 208  # bytes of CUpti_ActivityKernel9 (CUDA 12)
COPY6 = 96  # of CUpti_ActivityMemcpy6
NAMES = {
    2: {20: b"cudaMalloc_v3020", 31: b"cudaMemcpy_v3020", 131: b"cudaStreamSynchronize_v3020", 211: b"cudaLaunchKernel_v7000"},
    1: {276: b"cuMemcpyHtoD_v2"},
}


class FakeLibrary:
    """The functions that the recorder calls, and `happens` for a test that plays the program."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.refuses = refuses
        self.time = 1_000
        self.told: set[tuple[int, int]] = set()
        self.ended = False
        self._buffer, self._used = 0, 0
        self._texts = {name: ctypes.create_string_buffer(name) for named in NAMES.values() for name in named.values()}
        self.kernel = ctypes.create_string_buffer(b"add_kernel")
        self.cuptiActivityGetNextRecord = _NextRecord(self)

    def cuptiGetVersion(self, version: Any) -> int:
        version._obj.value = 28
        return 0

    def cuptiGetTimestamp(self, time: Any) -> int:
        self.time += 10
        time._obj.value = self.time
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

    def cuptiActivityEnable(self, _kind: int) -> int:
        return 0

    cuptiActivityEnableDriverApi = cuptiActivityEnableRuntimeApi = lambda _self, _number, _enable: 0
    cuptiActivityDisable = cuptiActivityEnable

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

    def calls_back(self, domain: int, number: int, correlation: int, second: int = 0) -> None:
        """The beginning and the end of a call, on this thread."""
        if (domain, number) not in self.told:
            return
        parameters = (ctypes.c_uint64 * 4)(0, second)
        data = (ctypes.c_uint32 * 18)()
        for site in (0, 1):
            data[0], data[16] = site, correlation
            struct.pack_into("<Q", data, 16, ctypes.addressof(parameters))
            self._called(None, domain, number, data)

    def records(self, *records: bytes) -> None:
        """Activity records."""
        if not self._buffer:
            buffer, size, most = ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t()
            self._requested(ctypes.pointer(buffer), ctypes.pointer(size), ctypes.pointer(most))
            self._buffer = buffer.value or 0
        for one in records:
            ctypes.memmove(self._buffer + self._used, one, len(one))
            self._used += len(one)

    def called(self, domain: int, number: int, start: int, end: int, correlation: int, *, thread: int, process: int) -> bytes:
        return API.pack(5 if domain == 2 else 4, number, start, end, process, thread, correlation, 0)

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


def played(library: FakeLibrary, *, process: int, thread: int) -> None:
    """A program: an allocation, an upload through the driver below the runtime, and a kernel."""
    ours = {"process": process, "thread": thread}
    library.calls_back(2, 20, 1, second=4096)
    library.calls_back(2, 31, 2)
    library.calls_back(1, 276, 3)
    library.records(
        library.called(2, 20, 10, 20, 1, **ours),
        library.called(1, 276, 32, 39, 3, **ours),
        library.called(2, 31, 30, 40, 2, **ours),
        library.copied(33, 38, 3, 4096, (1, 3)),
        library.called(2, 211, 50, 55, 4, **ours),
        library.launched(60, 70, 4),
    )


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
