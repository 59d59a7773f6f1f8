"""D: why a download into fresh pageable memory is so much worse for other threads than one into touched memory.

This thread downloads 256 MiB, another makes calls in a loop. Besides launches the loop makes event queries, which take no lock, and calls
that do nothing: what holds these too is no lock of CUDA's, but Python, the scheduler or the kernel. Before all, 1 GiB of memory is touched
and given back, so that a virtual machine does not have to fetch pages from its host during a measurement.
"""

from __future__ import annotations

import ctypes
import gc
import mmap
import resource
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say, find, median
from questions.threads import Looper
from streamlint.verify.lab import Lab

QUESTION = "what makes fresh pageable destinations so much worse for other threads than touched ones"
PARTS = (Part("cupy"),)
SIZE = 256 << 20
_HUGE = 2 << 20
_RUNS, _BUDGET_S = 5, 65.0
_D2H = 2
_POPULATE_WRITE, _HUGEPAGE, _NOHUGEPAGE = 23, 14, 15  # Linux; Python has no name for the first
_PAGEABLE_ACCESS, _HOST_PAGE_TABLES = 88, 100  # cudaDeviceAttr
_THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
_KINDS = ("fresh", "fresh, no huge pages", "fresh, huge pages", "populated beside", "populated before", "touched", "pinned")
_ADVICE = {"fresh, no huge pages": _NOHUGEPAGE, "fresh, huge pages": _HUGEPAGE, "populated before": _POPULATE_WRITE}
_STREAMS = ("null", "non-blocking")
_NOTHING = r'extern "C" __global__ void nothing() {}'
_LIBC = ctypes.CDLL(None, use_errno=True)
_LIBC.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def _advise(address: int, size: int, advice: int) -> None:
    """``madvise`` through ctypes, which releases the GIL: Python's own may not."""
    if _LIBC.madvise(address, size, advice):
        raise OSError(ctypes.get_errno(), f"madvise {advice} failed")


class Pages:
    """Anonymous private memory that nobody has touched, at a multiple of 2 MiB."""

    def __init__(self, size: int = SIZE) -> None:
        self._map = mmap.mmap(-1, size + _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_WRITE)
        self._anchor: ctypes.c_char | None = ctypes.c_char.from_buffer(self._map)
        self.address = -(-ctypes.addressof(self._anchor) // _HUGE) * _HUGE

    def close(self) -> None:
        self._anchor = None  # it exports the map's buffer
        self._map.close()


class Download:
    """The copy, the loops beside it, and what they need."""

    def __init__(self) -> None:
        self.lab = Lab()
        cupy, runtime = self.lab.cupy, self.lab.runtime
        self._source, self._pinned = int(runtime.malloc(SIZE)), int(runtime.hostAlloc(SIZE, 0))
        runtime.memset(self._source, 1, SIZE)
        self._streams = {"null": 0, "non-blocking": int(self.lab.stream().ptr)}
        own = self.lab.stream()
        nothing = self.lab.keep(cupy.RawModule(code=_NOTHING)).get_function("nothing")
        event = int(runtime.eventCreateWithFlags(2))
        runtime.eventRecord(event, own.ptr)
        query = ctypes.CDLL("libcuda.so.1").cuEventQuery
        query.argtypes = [ctypes.c_void_p]
        self.loops: dict[str, Callable[[], Any]] = {
            "launch": lambda: nothing((1,), (1,), (), stream=own),
            "event query": lambda: query(event),
            "nothing": lambda: None,
        }
        for call in self.loops.values():
            call()
        self.lab.synchronize()

    def attribute(self, number: int) -> int:
        """A device attribute."""
        return int(self.lab.runtime.deviceGetAttribute(number, 0))

    def idle(self, beside: str) -> Row:
        """The loop with nothing beside it."""

        def wait() -> float:
            time.sleep(0.1)
            return 0.0

        return self._measure(beside, wait)

    def run(self, kind: str, stream: str, beside: str) -> Row:
        """One download with one loop beside it."""
        pages = None if kind == "pinned" else Pages()
        target = self._pinned if pages is None else pages.address
        try:
            if kind in _ADVICE:
                _advise(target, SIZE, _ADVICE[kind])
            if kind == "touched":
                ctypes.memset(target, 1, SIZE)
            return self._measure(beside, lambda: self._copy(target, self._streams[stream], populate=kind == "populated beside"))
        finally:
            if pages is not None:
                pages.close()

    def _copy(self, target: int, stream: int, *, populate: bool) -> float:
        """Copy and wait; returns the seconds that the copy's call took."""
        if populate:
            _advise(target, SIZE, _POPULATE_WRITE)
        begin = time.perf_counter()
        self.lab.runtime.memcpyAsync(target, self._source, SIZE, _D2H, stream)
        took = time.perf_counter() - begin
        self.lab.runtime.streamSynchronize(stream)
        return took

    def _measure(self, beside: str, work: Callable[[], float]) -> Row:
        with Looper(self.lab.cupy, self.loops[beside]) as looper:
            time.sleep(0.003)
            process, caller = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_THREAD)
            begin, before = time.perf_counter(), looper.count
            call = work()
            end, calls = time.perf_counter(), looper.count - before
            caller_after, process_after = resource.getrusage(resource.RUSAGE_THREAD), resource.getrusage(resource.RUSAGE_SELF)
            time.sleep(0.003)
        self.lab.synchronize()
        return {
            **looper.between(begin, end, calls),
            "call_ms": call * 1e3,
            "whole_ms": (end - begin) * 1e3,
            "faults": process_after.ru_minflt - process.ru_minflt,
            "faults_in_caller": caller_after.ru_minflt - caller.ru_minflt,
            "caller_user_ms": (caller_after.ru_utime - caller.ru_utime) * 1e3,
            "caller_system_ms": (caller_after.ru_stime - caller.ru_stime) * 1e3,
        }


def ask(part: str, say: Say, scratch: Path) -> None:
    """All destinations on both streams beside launches; fresh and touched ones beside the other loops too. Runs are interleaved."""
    start = time.monotonic()
    gc.disable()
    sys.setswitchinterval(1e-5)
    pool = Pages(1 << 30)
    ctypes.memset(pool.address, 1, 1 << 30)
    pool.close()
    download = Download()
    say(_facts(download))
    plan = [(kind, stream, "launch") for stream in _STREAMS for kind in _KINDS]
    plan += [(kind, "null", beside) for beside in ("event query", "nothing") for kind in ("fresh", "touched")]
    rows: dict[tuple[str, str, str], list[Row]] = {key: [] for key in plan}
    failures: dict[tuple[str, str, str], str] = {}
    for beside in download.loops:
        rows["no copy (control)", "-", beside] = [download.idle(beside) for _ in range(_RUNS)]
    for run in range(-1, _RUNS):
        for kind, stream, beside in plan:
            if time.monotonic() - start > _BUDGET_S or (kind, stream, beside) in failures:
                continue
            try:
                row = download.run(kind, stream, beside)
            except (OSError, RuntimeError) as problem:
                failures[kind, stream, beside] = str(problem)
            else:
                if run >= 0:  # the round before is a warm-up
                    rows[kind, stream, beside].append(row)
    for key, found in rows.items():
        say(_medians(key, found, failures.get(key, "")))


def _facts(download: Download) -> Row:
    try:
        huge = _THP.read_text(encoding="utf-8").strip()
    except OSError:
        huge = "unknown"
    access, tables = download.attribute(_PAGEABLE_ACCESS), download.attribute(_HOST_PAGE_TABLES)
    return {"case": "facts", "huge_pages": huge, "pageable_memory_access": access, "uses_host_page_tables": tables, "mib": SIZE >> 20}


def _medians(key: tuple[str, str, str], found: Sequence[Row], failure: str) -> Row:
    kind, stream, beside = key
    row: Row = {"case": kind, "stream": stream, "beside": beside, "runs": len(found)}
    if failure or not found:
        return {**row, "failure": failure or f"no run within {_BUDGET_S:.0f} s"}
    return row | {name: median(run[name] for run in found) for name in found[0]}


def answer(rows: Sequence[Row]) -> str:
    """The longest launches beside each destination, and what held them."""
    texts = []
    for stream in _STREAMS:
        told = [_told(row) for kind in _KINDS if (row := find(rows, case=kind, stream=stream, beside="launch"))]
        if told:
            texts.append(f"another thread's longest launch during a download on the {stream} stream: {'; '.join(told)}")
    fresh, touched = (find(rows, case=kind, stream="null", beside="launch") for kind in ("fresh", "touched"))
    if fresh and touched:
        texts.append(_reading(rows, fresh, touched))
    return ". ".join(texts) + "." if texts else "no answer: nothing was measured"


def _told(row: Row) -> str:
    return f"{row['case']} {row['longest_ms']} ms (the call took {row['call_ms']} ms, {row['faults']:.0f} page faults)"


def _reading(rows: Sequence[Row], fresh: Row, touched: Row) -> str:
    if fresh["longest_ms"] < 3 * touched["longest_ms"]:
        return "fresh pages were not much worse than touched ones here, so what makes the difference was not seen"
    parts = [f"of {fresh['faults']:.0f} faults {fresh['faults_in_caller']:.0f} are taken by the thread that copies"]
    parts.append(f"the longest held launch lasts {fresh['longest_ms'] / fresh['call_ms']:.0%} of the call")
    others = [row for beside in ("event query", "nothing") if (row := find(rows, case="fresh", stream="null", beside=beside))]
    for row in others:
        word = "is held too" if row["longest_ms"] > fresh["longest_ms"] / 3 else "is not held"
        parts.append(f"a loop of {'event queries' if row['beside'] == 'event query' else 'nothing'} {word} ({row['longest_ms']} ms)")
    for kind in ("fresh, huge pages", "populated before", "populated beside"):
        if row := find(rows, case=kind, stream="null", beside="launch"):
            cured = row["longest_ms"] < (fresh["longest_ms"] + 2 * touched["longest_ms"]) / 3
            parts.append(f"'{kind}' {'removes most of it' if cured else 'does not remove it'}")
    return "; ".join(parts)
