"""Reading what `streamlint trace --run` has recorded: a file for each process, see `trace.recording.form` for what is in it."""

from __future__ import annotations

import json
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.support.errors import StreamlintError
from streamlint.trace.kinds import plain, takes_size, takes_stream
from streamlint.trace.model import NO_STACK, UNKNOWN, Call, Frame, Stream, Trace, Work
from streamlint.trace.readers import overhead
from streamlint.trace.recording import form, layouts

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_BEGINS_CAPTURE, _ENDS_CAPTURE = "StreamBeginCapture", "StreamEndCapture"


def read(path: Path) -> Trace:
    """The run of a recording, with its other processes, whose files stand beside it as ``NAME.PID`` and begin with the same id.

    Raises StreamlintError where the first file is no recording, was written by a later version or holds no process. What cannot be read of
    the others, which of them are of another run, and the missing end of a file, is said in the notes.
    """
    trace = Trace("recorded")
    without: list[tuple[int, int]] = []
    first = _File(path, trace, without)
    first.read()
    strangers: list[str] = []
    others = sorted(path.parent.glob(f"{path.name}.*"), key=lambda one: (len(one.name), one.name))
    for other in others:
        facts = form.head(other) if other.suffix[1:].isdigit() else {}
        if facts and not (first.session and facts.get("session") == first.session):
            strangers.append(other.name)
        elif other.suffix[1:].isdigit():
            try:
                _File(other, trace, without).read()
            except StreamlintError as error:
                trace.notes.append(str(error))
    if not trace.calls and not trace.works:
        why = f"; {trace.notes[0]}" if trace.notes else ""
        raise StreamlintError(f"{path} holds no call of CUDA{why}")
    if strangers:
        more = f" and {len(strangers) - 1} more" if len(strangers) > 1 else ""
        trace.notes.append(f"{strangers[0]}{more} beside {path.name}: of another run, left out")
    trace.notes += _of_threads(without)
    trace.sort()
    overhead.of_recorder(trace)
    return trace


def _of_threads(without: list[tuple[int, int]]) -> list[str]:
    """What is said of threads without the user's code: one sentence, however many they are."""
    if not without:
        return []
    process, thread = without[0]
    if len(without) == 1:
        return [f"process {process}, thread {thread} ran none of your code: its calls show the lines that the main thread was at meanwhile"]
    return [f"{len(without)} threads ran none of your code: their calls show the lines that the main thread was at meanwhile"]


class _File:
    """One process."""

    def __init__(self, path: Path, trace: Trace, without: list[tuple[int, int]]) -> None:
        self.path = path
        self.without = without  # process and number of threads without the user's code
        self.session = ""  # empty in recordings of version 1
        self.trace = trace
        self.process = -1
        self.names: dict[tuple[int, int], str] = {}
        self.sizes: dict[int, int] = {}
        self.kernels: dict[int, str] = {}
        self.frames: dict[int, Frame] = {}
        self.stacks: dict[int, int] = {0: NO_STACK}
        self.links: list[tuple[int, int, int]] = []  # correlation, stack, word: see form
        self.calls: list[Call] = []
        self.works: list[Work] = []
        self.waits: list[tuple[int, int]] = []  # correlation of a wait, and its stream
        self.has_ended = False
        self.ended, self.cut, self.parts = 0, 0, 1  # when the last part did, ns between parts, how many there are
        self.skipped = 0
        self.unfinished = 0  # work that had not ended when the program did

    def read(self) -> None:
        blocks = form.Blocks(self.path)
        for kind, data in blocks:
            if kind == form.ROWS:
                for row in data.decode("utf-8", "replace").split("\n"):
                    self._row(json.loads(row))
            elif kind == form.LINKS:
                self.links += form.LINK.iter_unpack(data)
            elif kind == form.RECORDS:
                self._records(data)
        if self.process < 0:
            raise StreamlintError(f"{self.path}: the recording holds no process: it was ended while it began")
        if blocks.is_cut or not self.has_ended:
            self.trace.notes.append(f"{self.path}: the recording breaks off; up to the last second of process {self.process} is missing")
        if blocks.damaged:
            self.trace.notes.append(f"{self.path}: {blocks.damaged} of its blocks are damaged and were left out")
        if self.skipped:
            self.trace.notes.append(f"{self.path}: {self.skipped} bytes of records could not be read")
        if self.unfinished and self.parts == 1:
            self.trace.notes.append(f"{self.path}: {self.unfinished} kernels or copies had not ended when the recording did")
        self._join()
        self._tell_of_parts()

    def _tell_of_parts(self) -> None:
        """Say how much of the run was recorded, if it was recorded in parts."""
        if self.parts > 1:
            self.trace.left_out += self.cut
            recorded = self.trace.end - self.trace.start
            share = f"{100 * recorded / (recorded + self.cut):.0f} % of the time"
            self.trace.notes.append(f"recorded in {self.parts} parts, {share}, put together here: all figures are of these parts")

    def _row(self, row: list[Any]) -> None:
        name, values = row[0], row[1:]
        take: Callable[..., None] | None = getattr(self, f"_take_{name}", None)
        if take is not None:  # a row of another name is of a later recorder, which says more
            take(*values)

    def _take_run(self, facts: dict[str, Any]) -> None:
        self.session = facts.get("session", "")
        self.process = facts["process"]
        self.trace.main_threads[self.process] = facts["main"]
        self.trace.start = min(self.trace.start or facts["start"], facts["start"])

    def _take_names(self, domain: int, names: dict[str, str]) -> None:
        self.names.update({(domain, int(number)): plain(name) for number, name in names.items()})

    def _take_size(self, kind: int, size: int) -> None:
        self.sizes[kind] = size

    def _take_kernel(self, address: int, name: str) -> None:
        self.kernels[address] = name

    def _take_frame(self, number: int, file: str, line: int, function: str, first: int) -> None:
        self.frames[number] = Frame(file, line, function, first)

    def _take_stack(self, number: int, frames: list[int]) -> None:
        self.stacks[number] = len(self.trace.stacks)
        self.trace.stacks.append(tuple(self.frames[one] for one in frames if one in self.frames))  # else it stood in a damaged block

    def _take_thread(self, thread: int, name: str) -> None:
        self.trace.thread_names[self.process, thread] = name

    def _take_meanwhile(self, thread: int) -> None:
        self.without.append((self.process, thread))

    def _take_rank(self, rank: int) -> None:
        self.trace.ranks[self.process] = rank

    def _take_gpu(self, name: str) -> None:
        self.trace.gpu = self.trace.gpu or name

    def _take_note(self, sentence: str) -> None:
        self.trace.notes.append(sentence)

    def _take_end(self, time: int) -> None:
        self.has_ended, self.ended = True, time
        self.trace.end = max(self.trace.end, time - self.cut)

    def _take_part(self, time: int) -> None:
        """Put together what was recorded until now: correlations begin anew, and the time in between is cut out."""
        self.has_ended = False
        self.calls = [call for call in self.calls if call.end <= self.ended]
        self.works = [work for work in self.works if work.start <= self.ended]
        self._join()
        self.calls, self.works, self.links, self.waits = [], [], [], []
        self.cut += time - self.ended
        self.parts += 1

    def _records(self, data: bytes) -> None:
        words, offset, end, sizes = memoryview(data).cast("I"), 0, len(data), self.sizes
        readers = {
            layouts.RUNTIME: self._call,
            layouts.DRIVER: self._call,
            layouts.KERNEL: self._kernel,
            layouts.MEMCPY: self._copy,
            layouts.PEER: self._copy,
            layouts.MEMSET: self._fill,
            layouts.SYNCHRONIZATION: self._wait,
            layouts.STREAM: self._stream,
        }
        while offset < end:
            kind = words[offset >> 2]
            size = sizes.get(kind)
            if not size:
                self.skipped += end - offset
                return
            take = readers.get(kind)
            if take is not None:
                take(kind, data, offset)
            offset += size

    def _call(self, kind: int, data: bytes, offset: int) -> None:
        number, start, end, process, thread, correlation, status = layouts.API.unpack_from(data, offset)
        domain = 2 if kind == layouts.RUNTIME else 1
        name = self.names.get((domain, number)) or f"call {number}"
        self.calls.append(Call(name, process, thread, start, end, correlation, failed=status))

    def _kernel(self, _kind: int, data: bytes, offset: int) -> None:
        start, end, device, stream, correlation, name = layouts.LAUNCHED.unpack_from(data, offset)
        if not end:
            self.unfinished += 1
            return
        self.works.append(Work("kernel", self.kernels.get(name, ""), self.process, device, stream, start, end, correlation))

    def _copy(self, kind: int, data: bytes, offset: int) -> None:
        layout = layouts.COPY if kind == layouts.MEMCPY else layouts.PEER_COPY
        source, destination, count, start, end, device, stream, correlation = layout.unpack_from(data, offset)
        if not end:
            self.unfinished += 1
            return
        ends = layouts.MEMORY.get(source, UNKNOWN), layouts.MEMORY.get(destination, UNKNOWN)
        self.works.append(Work("copy", "", self.process, device, stream, start, end, correlation, count, *ends))

    def _fill(self, _kind: int, data: bytes, offset: int) -> None:
        count, start, end, device, stream, correlation = layouts.FILL.unpack_from(data, offset)
        if not end:
            self.unfinished += 1
            return
        self.works.append(Work("fill", "", self.process, device, stream, start, end, correlation, count))

    def _wait(self, _kind: int, data: bytes, offset: int) -> None:
        _start, _end, correlation, stream = layouts.WAITED.unpack_from(data, offset)
        if stream != layouts.NO_STREAM:
            self.waits.append((correlation, stream))

    def _stream(self, _kind: int, data: bytes, offset: int) -> None:
        number, flag = layouts.MADE.unpack_from(data, offset)
        is_default = flag == layouts.NULL_STREAM
        known = self.trace.streams.get((self.process, number))
        if known is None or not known.is_default:
            non_blocking = {0: None}.get(flag, flag == layouts.NON_BLOCKING)
            self.trace.streams[self.process, number] = Stream(self.process, number, is_default, non_blocking)

    def _join(self) -> None:
        """Put calls, work, stacks and streams together by their correlation."""
        outer, calls = _outermost(self.calls)
        by_correlation = {call.correlation: call for call in calls}
        for correlation, stack, word in self.links:
            call = by_correlation.get(outer.get(correlation, correlation))
            if call is not None and call.stack == NO_STACK:
                call.stack = self.stacks.get(stack, NO_STACK)
                if takes_size(call.name):
                    call.bytes = word
                elif word and takes_stream(call.name):
                    call.stream = word - 1
        for correlation, stream in self.waits:
            call = by_correlation.get(outer.get(correlation, correlation))
            if call is not None:
                call.stream = stream
        for work in self.works:
            work.correlation = outer.get(work.correlation, work.correlation)
            call = by_correlation.get(work.correlation)
            if call is None:
                continue
            call.stream = work.stream
            if work.kind != "kernel" and not call.bytes:
                call.bytes, call.source, call.destination = work.bytes, work.source, work.destination
            made = self.trace.streams.get((self.process, work.stream))
            if made is not None:
                made.device = work.device
        _mark_captures(calls)
        self._move(calls)
        self.trace.calls += calls
        self.trace.works += self.works

    def _move(self, calls: list[Call]) -> None:
        """Move a part of the recording to where the one before it ended."""
        for call in calls if self.cut else ():
            call.start, call.end = call.start - self.cut, call.end - self.cut
        for work in self.works if self.cut else ():
            work.start, work.end = work.start - self.cut, work.end - self.cut


def _outermost(calls: list[Call]) -> tuple[dict[int, int], list[Call]]:
    """The calls that no other call of their thread contains, and which of them stands for each of the others, by correlation."""
    calls.sort(key=lambda one: (one.thread, one.start, -one.end))
    inner: dict[int, int] = {}
    remaining: list[Call] = []
    thread, end, correlation = -1, 0, 0
    for call in calls:
        if call.thread == thread and call.end <= end:
            inner[call.correlation] = correlation
        else:
            thread, end, correlation = call.thread, call.end, call.correlation
            remaining.append(call)
    return inner, remaining


def _mark_captures(calls: list[Call]) -> None:
    """Mark the calls that a thread made between the begin and the end of a capture; they stand in order, thread by thread."""
    capturing: set[int] = set()
    for call in calls:
        if call.name.endswith(_ENDS_CAPTURE):
            capturing.discard(call.thread)
        if capturing and call.thread in capturing:
            call.capturing = True
        if call.name.endswith(_BEGINS_CAPTURE) and not call.failed:
            capturing.add(call.thread)
