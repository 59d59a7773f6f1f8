"""The callbacks in Python, where those in C cannot be had: the same as `taps.c`, at more cost and for fewer calls.

ctypes takes the GIL for each callback. A thread that waits for it there keeps what its caller has locked: PyTorch's allocator calls
cudaMalloc and cudaFree with its mutex held, which a thread with the GIL may want to free a tensor. So calls that allocate and free are not
called back. What remains is the risk of a program that waits or copies with a lock held for which a thread with the GIL waits.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading

from streamlint import TYPE_CHECKING
from streamlint.trace import kinds
from streamlint.trace.recording import layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from streamlint.trace.recording.stacks import Stacks

BUFFER = 1 << 20  # bytes: about 8,000 records
_MOST = 0.1  # seconds between two looks at what was collected
ALIGNMENT = 8  # of a buffer, as CUPTI asks
_SITE, _CORRELATION = 0, 16  # of CUpti_CallbackData, in units of four bytes
_KIND = struct.Struct("<I")  # of a record
_CALLED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32, ctypes.POINTER(ctypes.c_uint32))
_REQUESTED = ctypes.CFUNCTYPE(None, ctypes.POINTER(ctypes.c_void_p), ctypes.POINTER(ctypes.c_size_t), ctypes.POINTER(ctypes.c_size_t))
_COMPLETED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)


class PythonTaps:
    """The three functions, and what they have collected."""

    records_calls = False

    def __init__(self, stacks: Stacks, reason: str) -> None:
        self._reason = reason  # why the compiled callbacks are not there
        self.links: list[tuple[int, int, int]] = []  # correlation of a call, its stack, 0
        self.meanwhile: set[int] = set()  # threads whose stacks are the main thread's
        self.filled: list[tuple[int, int]] = []  # address of a buffer, and the bytes in it
        self._lent: dict[int, Any] = {}
        self._spare: list[Any] = []
        self._stacks = stacks
        self._process = os.getpid()
        self._woken = threading.Event()
        self._sizes: dict[int, int] = {}
        self._names: set[int] = set()
        self.called = _CALLED(self._called)
        self.requested = _REQUESTED(self._requested)
        self.completed = _COMPLETED(self._completed)

    @staticmethod
    def takes_stack(name: str) -> bool:
        """Whether the stack is taken at a call."""
        return kinds.kind_of(name) in (kinds.WAIT, kinds.COPY)

    def notes(self) -> list[str]:
        """What the recording lacks, for the user."""
        return [f"calls that allocate or free memory have no lines: {self._reason}"]

    def asks(self, domain: int, number: int, name: str, *, stack: bool, per_thread: bool) -> None:
        """What is kept of a call besides its record: allocations are not called back here, and CUPTI records which stream is waited for."""

    def calls(self) -> Iterator[bytes]:
        """Records of calls: CUPTI makes them."""
        return iter(())

    def leaves(self, function: object, ask: Callable[[], object]) -> bool:
        """Nothing is called at the end of calls: CUPTI stays."""
        return False

    def again(self) -> None:
        """Forget what is left of the last part of a recording, behind which CUPTI was away."""
        self.take()
        self._names.clear()

    def _called(self, _argument: int, _domain: int, _number: int, data: Any) -> None:
        if data[_SITE] or os.getpid() != self._process:  # a forked child records nothing
            return
        stack = self._stacks.of(sys._getframe(1) if sys._getframe().f_back else None)
        if not stack and threading.get_ident() != threading.main_thread().ident:
            stack = self._stacks.main()
            self.meanwhile.add(threading.get_native_id())
        self.links.append((data[_CORRELATION], stack, 0))

    def _requested(self, buffer: Any, size: Any, most: Any) -> None:
        room = self._spare.pop() if self._spare else ctypes.create_string_buffer(BUFFER + ALIGNMENT)
        address = (ctypes.addressof(room) + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
        self._lent[address] = room
        buffer[0], size[0], most[0] = address, BUFFER, 0

    def _completed(self, _context: int, _stream: int, buffer: int, _size: int, length: int) -> None:
        if os.getpid() == self._process:
            self.filled.append((buffer, length))
        else:
            self.release(buffer)

    def read(self, address: int, length: int, measure: Callable[[int, int, int], int]) -> tuple[bytes, list[int]]:
        """What is kept of a buffer's records, and the addresses of the names of kernels that are new; see `NativeTaps.read`."""
        data, offset, names = ctypes.string_at(address, length), 0, []
        pieces: list[bytes] = []
        while offset < length:
            (kind,) = _KIND.unpack_from(data, offset)
            size = self._sizes.get(kind)
            if size is None:
                size = self._sizes[kind] = measure(address, offset, length)
            pieces.append(data[offset : offset + layouts.KEPT.get(kind, 0)])
            if kind == layouts.KERNEL:
                (name,) = layouts.NAME.unpack_from(data, offset)
                if name not in self._names:
                    self._names.add(name)
                    names.append(name)
            offset += size
        return b"".join(pieces), names

    def release(self, address: int) -> None:
        """A buffer has been written: it can be reused."""
        room = self._lent.pop(address, None)
        if room is not None:  # else an earlier recording lent it
            ctypes.memset(address, 0, BUFFER)  # CUPTI wants it empty
            self._spare.append(room)

    def wait(self, seconds: float) -> None:
        """Wait for as long: less than `NativeTaps.wait` may, since nothing says how much there is to take."""
        self._woken.wait(min(seconds, _MOST))

    def wake(self) -> None:
        """End :meth:`wait`, now and from now on."""
        self._woken.set()

    def take(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
        """The links and the buffers collected since the last time."""
        links, filled = self.links[:], self.filled[:]
        del self.links[: len(links)], self.filled[: len(filled)]
        return links, filled
