"""Recorded runs made up for tests: a thread of the host that launches kernels, waits and copies, and a GPU that follows."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path

from streamlint.trace.model import Call, Frame, Stream, Trace, Work
from streamlint.trace.recording import form, layouts

MS = 10**6
PROCESS, MAIN = 100, 100


@dataclass
class Run:
    """A run under construction; times are in ns, the clock stands where the host is."""

    trace: Trace = field(default_factory=lambda: Trace("recorded", gpu="NVIDIA H100 80GB HBM3"))
    now: int = 0
    process: int = PROCESS
    thread: int = MAIN
    free: int = 0  # when the GPU has done all that was launched
    correlation: int = 0

    def __post_init__(self) -> None:
        self.trace.main_threads[self.process] = MAIN
        self.trace.streams[self.process, 7] = Stream(self.process, 7, is_default=True)

    def stack(self, *frames: Frame) -> int:
        """The number of a stack, innermost frame first."""
        if frames not in self.trace.stacks:
            self.trace.stacks.append(frames)
        return self.trace.stacks.index(frames)

    def host(self, length: int) -> Run:
        """The host does something else."""
        self.now += length
        return self

    def launch(self, length: int, name: str = "gemm", stream: int = 7) -> Run:
        """Launch a kernel, which takes the host 5 µs."""
        self._call("cudaLaunchKernel", 5_000)
        self.free = max(self.free, self.now) + length
        self.trace.works.append(Work("kernel", name, self.process, 0, stream, self.free - length, self.free, self.correlation))
        return self

    def wait(self, *frames: Frame, name: str = "cudaStreamSynchronize", operator: str = "aten::item") -> Run:
        """Wait for all that was launched."""
        self._call(name, max(self.free - self.now, 0) + 1_000, frames, operator=operator)
        return self

    def copy(self, *frames: Frame, count: int, length: int, source: str = "pageable", destination: str = "device") -> Run:
        """A copy that holds the host."""
        start = max(self.free, self.now)
        self.free = start + length
        self._call("cudaMemcpyAsync", self.free - self.now, frames)
        self.trace.works.append(
            Work("copy", "Memcpy HtoD", self.process, 0, 7, start, self.free, self.correlation, count, source, destination)
        )
        call = self.trace.calls[-1]
        call.bytes, call.source, call.destination = count, source, destination
        return self

    def _call(self, name: str, length: int, frames: tuple[Frame, ...] = (), operator: str = "") -> None:
        self.correlation += 1
        stack = self.stack(*frames) if frames else 0
        call = Call(name, self.process, self.thread, self.now, self.now + length, self.correlation, 7, stack=stack, operator=operator)
        self.trace.calls.append(call)
        self.now += length

    def done(self) -> Trace:
        """The trace, in order."""
        self.trace.sort()
        return self.trace


def save(trace: Trace, path: Path, session: str = "") -> Path:
    """A recording of the project's own format that holds the run of one process."""
    numbers = {name: number for number, name in enumerate(sorted({call.name for call in trace.calls}), 1)}
    kernels = {name: number for number, name in enumerate(sorted({work.name for work in trace.works}), 1)}
    memory = {name: number for number, name in reversed(layouts.MEMORY.items())}
    frames = list(dict.fromkeys(frame for stack in trace.stacks for frame in stack))
    process = trace.calls[0].process
    rows: list[list[object]] = [["run", {"process": process, "main": MAIN, "start": trace.start, "session": session}]]
    rows += [["names", 2, {str(number): name for name, number in numbers.items()}], ["gpu", trace.gpu]]
    rows += [["rank", trace.ranks[process]]] if process in trace.ranks else []
    rows += [["size", kind, size] for kind, size in layouts.KEPT.items()]
    rows += [["kernel", number, name] for name, number in kernels.items()]
    rows += [["frame", number, one.file, one.line, one.function, one.first_line] for number, one in enumerate(frames)]
    rows += [["stack", number, [frames.index(one) for one in stack]] for number, stack in enumerate(trace.stacks) if number]
    records = []
    for call in trace.calls:
        values = (numbers[call.name], call.start, call.end, process, call.thread, call.correlation, 0)
        records.append(_packed(layouts.RUNTIME, layouts.API, *values))
    for work in trace.works:
        if work.kind == "kernel":
            values = (work.start, work.end, work.device, work.stream, work.correlation, kernels[work.name])
            records.append(_packed(layouts.KERNEL, layouts.LAUNCHED, *values))
        else:
            ends = memory[work.source], memory[work.destination]
            values = (*ends, work.bytes, work.start, work.end, work.device, work.stream, work.correlation)
            records.append(_packed(layouts.MEMCPY, layouts.COPY, *values))
    links = b"".join(form.LINK.pack(call.correlation, call.stack, 0) for call in trace.calls if call.stack)
    with path.open("wb") as file:
        form.begin(file)
        form.write_rows(file, rows)
        form.write(file, form.RECORDS, b"".join(records))
        form.write(file, form.LINKS, links)
        form.write_rows(file, [["end", trace.end]])
    return path


def _packed(kind: int, layout: struct.Struct, *values: int) -> bytes:
    record = bytearray(layouts.KEPT[kind])
    layout.pack_into(record, 0, *values)
    struct.pack_into("<I", record, 0, kind)
    return bytes(record)
