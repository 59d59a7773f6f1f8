"""Runs played from short texts: a host of one or more threads and a GPU, with round figures, written down as a recording.

A step a line (or between semicolons); ``@12`` before a step is the line of the user's code that makes it, times are in µs::

    launch 100          a launch, which takes the host 5 µs; its kernel starts then, or 1 µs after the work before it, and takes 100 µs
    launch 100 on 13    on another stream; ``default`` is stream 7, the legacy default stream
    host 40             the host does something else
    wait                waits for stream 7: takes 2 µs, or until 3 µs after its last work; ``wait on 13``, ``device`` for all streams
    fetch               a copy of 4 bytes to pageable memory, 2 µs: the call lasts until 3 µs after its end
    upload 100          a copy from pageable memory that takes 100 µs and holds the host until its end; ``upload 100 pinned`` holds nobody
    malloc 50, free     hold the host for 50 µs; until the GPU is idle, and 10 µs more

Steps without their wait, as a repaired program makes them, are written with ``~`` before their name: no wait, copies of pinned memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from streamlint.trace.model import NO_STACK, Call, Frame, Stream, Trace, Work

US = 1000
MAIN, FILE = 100, "train.py"
LAUNCH, SPACE, TAIL, CALL, FREED = 5 * US, US, 3 * US, 2 * US, 10 * US
LEAST, PINNED = 1500, 26.88  # ns of a copy, and bytes per ns that it carries, whose memory was pinned in the repair
DEFAULT = 7
LARGE = 4 << 20  # bytes: what is smaller may be staged, and holds nobody


@dataclass
class Played:
    """A run under way. Several threads, processes and devices play into one trace."""

    trace: Trace = field(default_factory=lambda: Trace("recorded"))
    now: int = 0
    process: int = MAIN
    thread: int = MAIN
    device: int = 0
    ends: dict[int, int] = field(default_factory=dict)  # of the streams' last work; threads of a process share it
    blocking: frozenset[int] = frozenset()  # streams that wait for the default stream, and it for them

    def play(self, text: str) -> Played:
        """Play steps."""
        for step in text.replace(";", "\n").splitlines():
            words = step.split()
            line = int(words.pop(0)[1:]) if words and words[0].startswith("@") else 0
            if words:
                self._step(line, words)
        return self

    def done(self) -> Trace:
        """The trace, in order; it ends with the last call or work."""
        self.trace.main_threads.setdefault(self.process, MAIN if self.process == MAIN else self.thread)
        self.trace.streams.setdefault((self.process, DEFAULT), Stream(self.process, DEFAULT, True))
        for stream in self.ends:
            self.trace.streams.setdefault((self.process, stream), Stream(self.process, stream, False, stream not in self.blocking))
        self.trace.end = max(self.trace.end, self.now)
        self.trace.sort()
        return self.trace

    def _step(self, line: int, words: list[str]) -> None:
        name = words[0].removeprefix("~")
        repaired = words[0].startswith("~")
        stream = int(words[words.index("on") + 1]) if "on" in words else DEFAULT
        length = int(words[1]) * US if len(words) > 1 and words[1].isdecimal() else 0
        if name == "host":
            self.now += length
        elif name == "launch":
            self._call("cudaLaunchKernel", LAUNCH, line, stream, self._work("kernel", length, stream))
        elif name in ("wait", "device"):
            ends = [self.ends.get(stream, 0)] if name == "wait" else list(self.ends.values())
            held = max([CALL] + [end + TAIL - self.now for end in ends if end > self.now])
            self._call("cudaStreamSynchronize" if name == "wait" else "cudaDeviceSynchronize", 0 if repaired else held, line, stream)
        elif name in ("fetch", "upload"):
            self._copy(name, length or CALL, line, stream, waits=not repaired, pinned="pinned" in words)
        elif name == "malloc":
            self._call("cudaMalloc", 0 if repaired else length, line, None)
        elif name == "free":
            held = max(self.now, *self.ends.values()) - self.now + FREED if self.ends else FREED
            self._call("cudaFree", 0 if repaired else held, line, None)

    def _copy(self, name: str, length: int, line: int, stream: int, *, waits: bool, pinned: bool) -> None:
        memory = "pinned" if pinned else "pageable"
        count = 4 if name == "fetch" else max(length * 10, LARGE)
        if not waits and not pinned:  # the repair pins the memory
            length = min(length, LEAST + round(count / PINNED))
        work = self._work("copy", length, stream)
        work.bytes, work.source, work.destination = (count, "device", memory) if name == "fetch" else (count, memory, "device")
        held = work.end + (TAIL if name == "fetch" else 0) - self.now if waits and not pinned else CALL
        self._call("cudaMemcpyAsync", held, line, stream, work)

    def _work(self, kind: str, length: int, stream: int) -> Work:
        start = self.now + LAUNCH
        if stream in self.ends:
            start = max(start, self.ends[stream] + SPACE)
        if stream == DEFAULT:
            start = max([start, *(end for other, end in self.ends.items() if other in self.blocking)])
        elif stream in self.blocking:
            start = max(start, self.ends.get(DEFAULT, 0))
        self.ends[stream] = start + length
        work = Work(kind, kind, self.process, self.device, stream, start, start + length, len(self.trace.calls) + 1)
        self.trace.works.append(work)
        return work

    def _call(self, name: str, length: int, line: int, stream: int | None, work: Work | None = None) -> None:
        number = len(self.trace.calls) + 1
        call = Call(name, self.process, self.thread, self.now, self.now + length, number, stream, stack=self._stack(line))
        if work is not None:
            call.bytes, call.source, call.destination = work.bytes, work.source, work.destination
        self.trace.calls.append(call)
        self.now += length

    def _stack(self, line: int) -> int:
        if not line:
            return NO_STACK
        stack = (Frame(FILE, line, "train"),)
        if stack not in self.trace.stacks:
            self.trace.stacks.append(stack)
        return self.trace.stacks.index(stack)


def played(text: str, **how: object) -> Trace:
    """The recording of one thread."""
    return Played(**how).play(text).done()  # type: ignore[arg-type]
