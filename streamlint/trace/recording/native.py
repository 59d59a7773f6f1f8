"""The callbacks of `taps.c`, which take no GIL: compiled when a recording starts, by the C compiler of the machine.

The layout of Python's frames differs by version. It is found out by looking for two known code objects in memory that is read through
``/proc/self/mem``, and then tried: where the frames of this very function do not come back, the callbacks in Python are used.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

from streamlint import TYPE_CHECKING
from streamlint.trace import kinds
from streamlint.trace.recording import layouts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from streamlint.trace.recording.stacks import Stacks

_SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "taps.c")
_COMPILERS = ("cc", "gcc", "clang")
_SECONDS = 60.0
_HEAD = struct.Struct("<IIIIQ")  # correlation, thread, count, meanwhile, word
_ROOM = 4 << 20
_MOST_FILLED = 512  # POOL of taps.c
_MOST_KNOWN = 20_000
_MOST_NAMES, _KINDS = 4096, 128  # MOST_NEW and KINDS of taps.c
_STACK, _SIZE, _STREAM, _PER_THREAD = 1, 2, 4, 8  # of taps.c
_TAG = 7  # low bits of a pointer to a code object that a frame may set
_STATE, _FRAME = 512, 128  # bytes in which a field is looked for
_LONGEST_HEAD, _LONGEST_CODE = 512, 1 << 16  # bytes of a code object before its instructions, and of those
_TRIED = 4  # frames that must come back as they are


def compiled() -> Any:
    """The library of `taps.c`. Raises LookupError with the reason where it cannot be compiled or loaded."""
    chosen = os.environ.get("CC", "").split() or [found for name in _COMPILERS if (found := shutil.which(name))][:1]
    if not chosen:
        raise LookupError(f"there is no C compiler ({', '.join(_COMPILERS)})")
    with tempfile.TemporaryDirectory(prefix="streamlint-") as folder:
        library = os.path.join(folder, "taps.so")
        command = [*chosen, "-O2", "-shared", "-fPIC", "-pthread", "-o", library, _SOURCE]
        try:
            subprocess.run(command, check=True, capture_output=True, timeout=_SECONDS)
        except subprocess.CalledProcessError as error:
            error_text = error.stderr.decode(errors="replace").strip().split("\n")[0]
            raise LookupError(f"{chosen[0]} could not compile the recorder's functions{f': {error_text}' if error_text else ''}") from error
        except (OSError, subprocess.SubprocessError) as error:
            raise LookupError(f"{chosen[0]} could not be run: {error}") from error
        try:
            return ctypes.CDLL(library)
        except OSError as error:
            raise LookupError(f"the recorder's compiled functions could not be loaded: {error}") from error


class NativeTaps:
    """The three functions, and what they have collected. Raises LookupError where Python's frames cannot be read."""

    takes_stack = staticmethod(kinds.may_block)
    records_calls = True
    """Whether the records of calls are made here, so that CUPTI need not make them."""

    def __init__(self, library: Any, stacks: Stacks, cupti: Any) -> None:
        self.called, self.requested, self.completed = library.tap_called, library.tap_requested, library.tap_completed
        self.meanwhile: set[int] = set()
        self._library = library
        self._stacks = stacks
        self._known: dict[bytes, int] = {}  # numbers of stacks by their frames as they came
        self._out = ctypes.create_string_buffer(_ROOM)
        self._pairs = (ctypes.c_uint64 * (2 * _MOST_FILLED))()
        library.tap_take.restype = ctypes.c_uint64
        library.tap_take.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        library.tap_release.argtypes = (ctypes.c_void_p,)
        library.tap_calls.restype = ctypes.c_uint64
        library.tap_calls.argtypes = (ctypes.c_void_p, ctypes.c_uint64)
        self._generation = 0
        self._names = (ctypes.c_uint64 * _MOST_NAMES)()
        self._sizes, self._keeps = (ctypes.c_uint32 * _KINDS)(), (ctypes.c_uint32 * _KINDS)()
        for kind, size in layouts.KEPT.items():
            self._keeps[kind] = size
        self._packed = ctypes.create_string_buffer(_ROOM)
        library.tap_pack.restype = ctypes.c_uint64
        library.tap_pack.argtypes = (ctypes.c_void_p,) * 8
        memory = _Memory()
        try:
            layout, self._start_of_code = _find(memory)
        finally:
            memory.close()
        functions = (ctypes.cast(one, ctypes.c_void_p) for one in (cupti.cuptiGetTimestamp, cupti.cuptiGetStreamIdEx))
        if not library.tap_begin((ctypes.c_int64 * 5)(*layout), *_states(), *functions):
            raise LookupError("no memory")
        self._try()
        stacks.keep_all()

    def _try(self) -> None:
        """Take a stack here. Raises LookupError where it is not this function's."""
        data = (ctypes.c_uint64 * 9)()
        expected: list[tuple[int, int]] = []
        self.asks(0, 0, "", stack=True)
        self.called(None, 0, 0, data)
        length = self._library.tap_take(self._out, _ROOM)
        values = struct.unpack_from(f"<{(length - _HEAD.size) // 8}Q", self._out, _HEAD.size) if length > _HEAD.size else ()
        data[0] = 1
        self.called(None, 0, 0, data)  # it ends
        seen = [(code & ~_TAG, at - (code & ~_TAG) - self._start_of_code) for code, at in zip(values[::2], values[1::2], strict=True)]
        frame = sys._getframe().f_back  # this frame itself has gone on
        while frame is not None and len(expected) < _TRIED:
            expected.append((id(frame.f_code), frame.f_lasti))
            frame = frame.f_back
        if not expected or [one for one in seen if one in expected][: len(expected)] != expected:
            raise LookupError("the frames of Python are not where they were looked for")

    def asks(self, domain: int, number: int, name: str, *, stack: bool, per_thread: bool = False) -> None:
        """What is kept of a call besides its record. Other arguments than sizes and streams are not read, since there may be less."""
        word = _SIZE * kinds.takes_size(name) | _STREAM * kinds.takes_stream(name)
        self._library.tap_asked(domain, number, _STACK * stack | word | _PER_THREAD * per_thread)

    def calls(self) -> Iterator[bytes]:
        """The records of the calls that have ended since the last time, in pieces."""
        while length := self._library.tap_calls(self._out, _ROOM):
            yield ctypes.string_at(self._out, length)

    def wait(self, seconds: float) -> None:
        """Wait for as long, or until there is much to take; without the GIL, which the program would have to hand over each time."""
        self._library.tap_wait(round(seconds * 1000))

    def wake(self) -> None:
        """End :meth:`wait`, now and from now on."""
        self._library.tap_wake(1)

    def take(self) -> tuple[list[tuple[int, int, int]], list[tuple[int, int]]]:
        """The links (correlation, stack, word) and the buffers (address, length) collected since the last time."""
        links: list[tuple[int, int, int]] = []
        while length := self._library.tap_take(self._out, _ROOM):
            self._links(ctypes.string_at(self._out, length), links)
        count = self._library.tap_filled(self._pairs, _MOST_FILLED)
        return links, [(self._pairs[2 * index], self._pairs[2 * index + 1]) for index in range(count)]

    def _links(self, data: bytes, links: list[tuple[int, int, int]]) -> None:
        offset = 0
        if self._generation != self._stacks.generation or len(self._known) > _MOST_KNOWN:
            # An address that was nobody's may be that of a new code object.
            self._known.clear()
            self._generation = self._stacks.generation
        while offset < len(data):
            correlation, thread, count, meanwhile, word = _HEAD.unpack_from(data, offset)
            offset += _HEAD.size
            frames = data[offset : offset + 16 * count]
            offset += 16 * count
            number = self._known.get(frames)
            if number is None:
                number = self._known[frames] = self._number(struct.unpack(f"<{2 * count}Q", frames))
            if meanwhile and not count:
                number = self._stacks.main()
            if meanwhile:
                self.meanwhile.add(thread)
            links.append((correlation, number, word))

    def _number(self, frames: tuple[int, ...]) -> int:
        """The number of a stack that has not been seen.

        A code object may be gone by now: that of a module, once it has run. So an address counts only if it is that of a code object which
        is kept, and is the user's; nothing is looked up behind others.
        """
        key: list[int] = []
        for code, instruction in zip(frames[::2], frames[1::2], strict=True):
            address = code & ~_TAG
            if self._stacks.is_kept(address):
                key += [address, instruction - address - self._start_of_code]
        return self._stacks.number(tuple(key))

    def read(self, address: int, length: int, measure: Callable[[int, int, int], int]) -> tuple[bytes, list[int]]:
        """What is kept of a buffer's records, and the addresses of the names of kernels that are new.

        ``measure`` gives the size of the record at an offset of a buffer of a length.
        """
        span, used, count, names = (ctypes.c_uint64 * 2)(0, length), ctypes.c_uint64(), ctypes.c_uint32(), []
        while span[0] < length:
            rest = ctypes.byref(used), self._names, ctypes.byref(count)
            span[0] = self._library.tap_pack(address, span, self._sizes, self._keeps, self._packed, *rest)
            names += self._names[: count.value]
            count.value = 0
            kind = ctypes.c_uint32.from_address(address + span[0]).value if span[0] < length else _KINDS
            if kind < _KINDS and not self._sizes[kind]:
                self._sizes[kind] = measure(address, span[0], length)
            elif kind >= _KINDS and span[0] < length:
                break  # no record of CUPTI's
        return ctypes.string_at(self._packed, used.value), names

    def release(self, address: int) -> None:
        """A buffer has been written: it can be reused."""
        self._library.tap_release(address)

    def leaves(self, function: Any, ask: Callable[[], object]) -> bool:
        """Have a function of CUPTI called at the end of a call that ``ask`` makes. Returns whether it was."""
        self._library.tap_leave(ctypes.cast(function, ctypes.c_void_p))
        ask()
        return bool(self._library.tap_left())

    def again(self) -> None:
        """Forget what is left of the last part of a recording, behind which CUPTI was away."""
        _, filled = self.take()
        for address, _ in filled:
            self.release(address)  # it names kernels by memory of CUPTI's that may be gone
        for _ in self.calls():
            pass
        self._library.tap_again()

    def notes(self) -> list[str]:
        """What the recording lacks, for the user."""
        out = (ctypes.c_uint64 * 3)()
        self._library.tap_lost(out)
        lost = zip(out, ("calls have no lines", "buffers of records are lost", "calls are lost"), strict=True)
        return [f"{count} {what}: they came faster than they were written" for count, what in lost if count]


class _Memory:
    """This process's memory, read so that an address without memory raises nothing worse than OSError."""

    def __init__(self) -> None:
        try:
            self.file = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            raise LookupError("memory cannot be read") from error

    def word(self, address: int) -> int:
        """Eight bytes, 0 where there is no memory."""
        try:
            return int.from_bytes(os.pread(self.file, 8, address), "little")
        except (OSError, OverflowError, ValueError):
            return 0

    def close(self) -> None:
        os.close(self.file)


def _states() -> tuple[ctypes.c_void_p, ctypes.c_void_p]:
    """The function that gives a thread's state, and the state of this thread if it is the main one."""
    function = ctypes.cast(ctypes.pythonapi.PyGILState_GetThisThreadState, ctypes.c_void_p)
    return function, ctypes.c_void_p(_state() if threading.current_thread() is threading.main_thread() else None)


def _state() -> int:
    get = ctypes.pythonapi.PyThreadState_Get
    get.restype = ctypes.c_void_p
    return int(get())


def _find(memory: _Memory) -> tuple[tuple[int, int, int, int, int], int]:
    """Where the fields stand (see ``struct layout`` in taps.c), and where the instructions begin in a code object.

    The code object of this function and of its caller are known, and the instruction at which the caller is. What changes while this
    function calls others is read by calls of its own. Raises LookupError where the fields are not found.
    """
    own, state, file = sys._getframe(), _state(), memory.file
    known = (id(own.f_code), id(own.f_back.f_code), own.f_back.f_lasti) if own.f_back else (0, 0, 0)
    fields = struct.unpack(f"<{_STATE // 8}Q", os.pread(file, _STATE, state))
    for offset, pointer in enumerate(fields):
        found = _fields(memory, pointer, known) if pointer else None
        if found:
            return (-1, 8 * offset, *found[:3]), found[3]
    for offset, pointer in enumerate(fields):
        try:
            behind = struct.unpack("<2Q", os.pread(file, 16, pointer)) if pointer else ()
        except (OSError, OverflowError, struct.error):
            continue
        for current, frame in enumerate(behind):
            found = _fields(memory, frame, known) if frame else None
            if found:
                return (8 * offset, 8 * current, *found[:3]), found[3]
    raise LookupError("the frames of Python were not found")


def _fields(memory: _Memory, frame: int, known: tuple[int, int, int]) -> tuple[int, int, int, int] | None:
    """The places of code, instruction and previous frame, and the start of instructions, if this is the frame of the first known code."""
    inner, outer, offset = known
    words = [memory.word(frame + place) for place in range(0, _FRAME, 8)]
    for code in (8 * index for index, word in enumerate(words) if word & ~_TAG == inner):
        for previous, before in enumerate(words):
            if before and memory.word(before + code) & ~_TAG == outer:
                for instruction, here in enumerate(words):
                    start = memory.word(before + 8 * instruction) - outer - offset
                    if 0 < start < _LONGEST_HEAD and 0 <= here - inner - start < _LONGEST_CODE:
                        return code, 8 * instruction, 8 * previous, start
    return None
