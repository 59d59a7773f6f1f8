"""Recorded runs made up for tests: a thread of the host that launches kernels, waits and copies, and a GPU that follows."""

from __future__ import annotations

from dataclasses import dataclass, field

from streamlint.trace.model import Call, Frame, Stream, Trace, Work

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
