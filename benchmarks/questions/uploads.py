"""F: from which size on an asynchronous upload of pageable memory waits for its stream, and how many return while the stream is shut.

A copy is made behind a shut gate. It "waits" if it has not returned ``GRACE_S`` beyond its own time while the gate is still shut. The own
time is that of the same copy on an idle stream. All host memory is touched before.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say, find, median
from questions.threads import Worker
from streamlint.verify.lab import Lab

QUESTION = "from which size on an upload of pageable memory waits, and how many return while the stream is shut"
PARTS = (Part("runtime"), Part("cupy"), Part("torch"))
KIB, MIB = 1 << 10, 1 << 20
SIZES = (KIB, 16 * KIB, 64 * KIB, 65 * KIB, 256 * KIB, 512 * KIB, MIB, 3 * MIB // 2, 2 * MIB, 2 * MIB + 1, 3 * MIB, 4 * MIB, 16 * MIB)
LARGE = (64 * MIB, 256 * MIB)
ROW_SIZES = (KIB, 4 * KIB, 16 * KIB, 64 * KIB, 65 * KIB, 128 * KIB, 256 * KIB, 512 * KIB, MIB, 2 * MIB)
STREAMS = ("null", "blocking", "non-blocking")
REPEATS, MOST_IN_A_ROW, THREADS = 5, 900, 4
GRACE_S = 0.02
_END_S = 8.0
_H2D = 1


class Uploads:
    """Streams, a worker for each thread, and copies of each API."""

    def __init__(self, api: str) -> None:
        self.lab, self.api = Lab(), api
        self.numpy: Any = importlib.import_module("numpy")
        self.torch: Any = importlib.import_module("torch") if api == "torch" else None
        self.streams = {"null": 0, "blocking": int(self.lab.stream(blocking=True).ptr), "non-blocking": int(self.lab.stream().ptr)}
        self.others = [int(self.lab.stream().ptr) for _ in range(THREADS - 1)]
        self.workers = [Worker(self.lab.cupy) for _ in range(THREADS)]

    def copy(self, size: int, stream: int, *, pinned: bool = False) -> Callable[[], Any]:
        """A call that uploads that many bytes on the stream."""
        if self.torch is not None:
            return self._torch_copy(size, stream, pinned)
        memory, runtime = self.lab.keep(self.numpy.ones(size, "uint8")), self.lab.runtime
        target = self.lab.keep(self.lab.cupy.empty(size, "uint8"))
        if self.api == "cupy":
            external = self.lab.keep(self.lab.cupy.cuda.ExternalStream(stream))
            return lambda: target.set(memory, stream=external)
        return lambda: runtime.memcpyAsync(target.data.ptr, memory.ctypes.data, size, _H2D, stream)

    def _torch_copy(self, size: int, stream: int, pinned: bool) -> Callable[[], Any]:
        torch = self.torch
        memory = self.lab.keep(torch.ones(size, dtype=torch.uint8, pin_memory=pinned))
        target = self.lab.keep(torch.empty(size, dtype=torch.uint8, device="cuda"))
        external = torch.cuda.ExternalStream(stream) if stream else torch.cuda.default_stream()

        def copy() -> None:
            with torch.cuda.stream(external):
                target.copy_(memory, non_blocking=True)

        return copy

    def idle_us(self, copy: Callable[[], Any]) -> float:
        """The copy's own time on an idle device."""
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            copy()
            times.append((time.perf_counter() - begin) * 1e6)
            self.lab.synchronize()
        return median(times, 1) or 0.0

    def waits(self, copy: Callable[[], Any], stream: int, own_us: float) -> bool:
        """Whether the copy is still in its call while the gate before it is shut."""
        with self.lab.gate(stream) as gate:
            attempt = self.workers[0].do(copy)
            back = attempt.back_within(GRACE_S + 3e-6 * own_us)
            gate.open()
            attempt.back_within(_END_S)
        return not back

    def in_a_row(self, copy: Callable[[], Any], stream: int) -> int:
        """How many copies return behind a shut gate before one waits."""
        returned = 0
        with self.lab.gate(stream) as gate:
            while returned < MOST_IN_A_ROW:
                attempt = self.workers[0].do(copy)
                if not attempt.back_within(GRACE_S):
                    gate.open()
                    attempt.back_within(_END_S)
                    break
                returned += 1
        return returned

    def beside(self, size: int) -> int:
        """How many of four threads return, each with a stream of its own behind the one gate."""
        runtime, first = self.lab.runtime, self.streams["non-blocking"]
        streams = [first, *self.others]
        copies = [self.copy(size, stream) for stream in streams]
        for copy in copies:
            copy()
        self.lab.synchronize()
        event = int(runtime.eventCreateWithFlags(2))
        with self.lab.gate(first) as gate:
            runtime.eventRecord(event, first)
            for stream in self.others:
                runtime.streamWaitEvent(stream, event, 0)
            attempts = [worker.do(copy) for worker, copy in zip(self.workers, copies, strict=True)]
            time.sleep(GRACE_S * 2)
            back = sum(attempt.back_within(0) for attempt in attempts)
            gate.open()
            for attempt in attempts:
                attempt.back_within(_END_S)
        runtime.eventDestroy(event)
        return back


def ask(part: str, say: Say, scratch: Path) -> None:
    """The sizes on each stream; with the runtime's own call also rows of copies and four threads."""
    uploads = Uploads(part)
    for name, stream in uploads.streams.items():
        for size in (*SIZES, *(LARGE if part == "runtime" and name == "non-blocking" else ())):
            copy = uploads.copy(size, stream)
            copy()
            uploads.lab.synchronize()
            own = uploads.idle_us(copy)
            waited = sum(uploads.waits(copy, stream, own) for _ in range(REPEATS))
            say({"case": f"{part}, one copy", "stream": name, "kib": size / KIB, "idle_us": own, "waits": f"{waited} of {REPEATS}"})
    if part == "torch":
        for size in (*SIZES, *LARGE):
            own = uploads.idle_us(uploads.copy(size, uploads.streams["non-blocking"], pinned=True))
            say({"case": "torch, pinned", "stream": "non-blocking", "kib": size / KIB, "idle_us": own})
    if part == "runtime":
        for size in ROW_SIZES:
            copy = uploads.copy(size, uploads.streams["non-blocking"])
            copy()
            uploads.lab.synchronize()
            counts = [uploads.in_a_row(copy, uploads.streams["non-blocking"]) for _ in range(3)]
            say({"case": "copies in a row", "stream": "non-blocking", "kib": size / KIB, "returned": median(counts, 0)})
        for size in (64 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB):
            counts = [uploads.beside(size) for _ in range(3)]
            say({"case": "four threads, a stream each", "stream": "non-blocking", "kib": size / KIB, "returned": median(counts, 0)})


def answer(rows: Sequence[Row]) -> str:
    """The border of one copy, and how many return."""
    texts = []
    for api in ("runtime", "cupy", "torch"):
        ones = [row for row in rows if row["case"] == f"{api}, one copy"]
        returns = max((row["kib"] for row in ones if row["waits"].startswith("0 ")), default=0)
        waits = min((row["kib"] for row in ones if row["waits"] == f"{REPEATS} of {REPEATS}"), default=0)
        texts.append(f"{api}: one copy returns up to {returns:.0f} KiB and waits from {waits:.4g} KiB on")
    for kib in (64, 256, 2048):
        row, threads = find(rows, case="copies in a row", kib=kib), find(rows, case="four threads, a stream each", kib=kib)
        if row and threads:
            texts.append(f"of {kib} KiB {row['returned']:.0f} in a row return, and {threads['returned']:.0f} of four threads")
    return "; ".join(texts)
