"""Who is held while one thread is inside a call: the first call stands behind a shut gate, a second thread makes its own.

"held": the call did not return until the gate was opened; "work waits": it returned, but its work on the device or the host function did
not run until then; "free": neither. The gate decides, not a clock: it stays shut ``GRACE_S`` for each.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import Event
from typing import Any, Protocol

from questions import Row
from questions.threads import Worker, poll
from streamlint.verify.lab import LIMIT_S, GateGaveUpError, Lab, LabError

GRACE_S = 0.02
END_S = 8.0  # after the gate is open
REPEATS = 3
FIRST, SECOND, BEHIND = 0, 1, 2  # flags of the lab
OTHER, SAME = "another stream", "the same stream"
_NON_BLOCKING, _NO_TIMING = 1, 2
_D2H = 2
_BYTES, _VALUE = 64, 7


class Opens(Protocol):
    """A gate: :class:`streamlint.verify.lab.Gate` or :class:`CallbackGate`."""

    def open(self) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, kind: Any, value: Any, trace: Any) -> None: ...


class CallbackGate:
    """A host function that blocks until it is opened: here the first call itself shuts the gate."""

    def __init__(self, lab: Lab, stream: int) -> None:
        self._lab, self._stream = lab, stream
        self._open, self.entered = Event(), Event()
        self._gave_up = False

    def launch(self) -> None:
        """``cudaLaunchHostFunc`` of the function that blocks."""
        self._lab.runtime.launchHostFunc(self._stream, self._block, 0)

    def _block(self, _argument: Any) -> None:
        self.entered.set()
        self._gave_up = not self._open.wait(LIMIT_S)

    def open(self) -> None:
        self._open.set()

    def __enter__(self) -> CallbackGate:
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        self.open()
        self._lab.synchronize()
        if kind is None and self._gave_up:
            raise GateGaveUpError(f"the callback gave up by itself after {LIMIT_S:.0f} s, so there is no number")


@dataclass
class Armed:
    """A run made ready. ``behind`` is queued once the gate is shut; ``ready`` is awaited before the second call."""

    first: Callable[[], Any]
    gate: Opens
    behind: Callable[[], Any] = lambda: None
    ready: Callable[[], bool] = lambda: True
    ran: Callable[[], bool] | None = None  # whether the first call's own work has run, where it has any


@dataclass(frozen=True)
class Holder:
    """A first call. ``gate`` says where the gate stands; ``ordered`` names second calls that the streams themselves put behind it."""

    case: str
    gate: str
    arm: Callable[[], Armed]
    ordered: frozenset[str] = frozenset()


class Bench:
    """The streams, two threads and the second calls."""

    def __init__(self, lab: Lab) -> None:
        self.lab, runtime = lab, lab.runtime
        # Few streams on purpose: beyond CUDA_DEVICE_MAX_CONNECTIONS (8) they share queues, and what stands behind a gate holds the others.
        self.gated, self.first, self.own, self.functions = (int(lab.stream().ptr) for _ in range(4))
        self._source, self._landing = int(runtime.malloc(_BYTES)), int(runtime.hostAlloc(_BYTES, 0))
        runtime.memset(self._source, _VALUE, _BYTES)
        self._landed = ctypes.c_uint8.from_address(self._landing + _BYTES - 1)
        event = int(runtime.eventCreateWithFlags(_NO_TIMING))
        runtime.eventRecord(event, self.own)
        # CuPy holds the GIL in eventQuery; ctypes does not.
        query = ctypes.CDLL("libcuda.so.1").cuEventQuery
        query.argtypes = [ctypes.c_void_p]
        self._one, self._two = Worker(lab.cupy), Worker(lab.cupy)
        self._late: list[Callable[[], Any]] = []
        posted = lambda: lab.posted(SECOND)  # noqa: E731
        self.seconds: dict[str, tuple[Callable[[], Any], Callable[[], bool]]] = {
            "launch": (lambda: lab.post(self.own, SECOND), posted),
            "pinned copy": (self._copy, lambda: self._landed.value == _VALUE),
            "cudaMalloc": (self._malloc, lambda: True),
            "cudaMallocAsync": (self._malloc_async, lambda: True),
            "event query": (lambda: query(event), lambda: True),
            "null launch": (lambda: lab.post(0, SECOND), posted),
            "host function": (lambda: runtime.launchHostFunc(self.functions, lab.raise_flag, SECOND), posted),
        }

    def later(self, undo: Callable[..., Any], *arguments: Any) -> None:
        """Do that once the run is over and the device idle."""
        self._late.append(lambda: undo(*arguments))

    def stream(self) -> int:
        """A non-blocking stream that the run destroys itself."""
        return int(self.lab.runtime.streamCreateWithFlags(_NON_BLOCKING))

    def _copy(self) -> None:
        self.lab.runtime.memcpyAsync(self._landing, self._source, _BYTES, _D2H, self.own)

    def _malloc(self) -> None:
        self.later(self.lab.runtime.free, self.lab.runtime.malloc(1 << 20))

    def _malloc_async(self) -> None:
        self.later(self.lab.runtime.freeAsync, self.lab.runtime.mallocAsync(4096, self.own), self.own)

    def warm(self, holders: Sequence[Holder]) -> None:
        """Make every call once with its gate open: nothing is loaded, grown or created for the first time behind a shut one."""
        for holder in holders:
            armed = holder.arm()
            armed.gate.open()
            self._rehearse(self._one, armed.first, holder.case)
        for name, (call, _done) in self.seconds.items():
            self._rehearse(self._two, call, name)

    def _rehearse(self, worker: Worker, call: Callable[[], Any], name: str) -> None:
        attempt = worker.do(call)
        if not attempt.back_within(END_S):
            raise LabError(f"{name} did not return within {END_S:.0f} s though no gate was shut")
        if attempt.error:
            raise LabError(f"{name}: {attempt.error}")
        self._clean()

    def _clean(self) -> None:
        self.lab.synchronize()
        for undo in self._late:
            with contextlib.suppress(Exception):  # what failed in the run has nothing to undo
                undo()
        self._late.clear()
        self.lab.synchronize()

    def measure(self, holder: Holder) -> Row:
        """The row of a first call: whether it returns itself, and what becomes of each second call."""
        own: Counter[str] = Counter()
        cells: dict[str, Counter[str]] = {}
        problems: list[str] = []
        for name in self.seconds:
            cells[name] = Counter(["ordered"] if name in holder.ordered else [])
            for _ in range(0 if name in holder.ordered else REPEATS):
                if len(problems) > 1:  # each costs the seconds until the gate gives up
                    break
                try:
                    first, second = self._run(holder, name)
                except LabError as problem:
                    problems.append(f"{name}: {problem}")
                    continue
                own[first] += 1
                cells[name][second] += 1
        row = {"case": holder.case, "gate_on": holder.gate, "call": _word(own), **{name: _word(words) for name, words in cells.items()}}
        return {**row, "void": problems} if problems else row

    def _run(self, holder: Holder, second: str) -> tuple[str, str]:
        call, done = self.seconds[second]
        try:
            armed = holder.arm()
            for flag in (FIRST, SECOND, BEHIND):
                self.lab.raise_flag(flag, 0)
            self._landed.value = 0
            self.lab.synchronize()
            with armed.gate as gate:
                armed.behind()
                first = self._one.do(armed.first)
                first_back = first.back_within(GRACE_S)
                if not poll(armed.ready, 1.0):
                    raise LabError("the callback did not start")
                attempt = self._two.do(call)
                back = attempt.back_within(GRACE_S)
                ran = back and poll(done, GRACE_S)
                own = _own(first_back, armed)
                gate.open()
                if not (first.back_within(END_S) and attempt.back_within(END_S)):
                    raise LabError(f"a call did not return {END_S:.0f} s after the gate was open")
        finally:
            self._clean()
        held = "free" if ran else "work waits" if back else "held"
        return first.error or own, attempt.error or held


def _own(back: bool, armed: Armed) -> str:
    word = "returns" if back else "waits"
    if armed.ran is None:
        return word
    return f"{word}, its work {'runs' if poll(armed.ran, GRACE_S) else 'waits'}"


def _word(words: Counter[str]) -> str:
    if len(words) == 1:
        return next(iter(words))
    return ", ".join(f"{word} {count}x" for word, count in words.most_common()) or "not measured"


def sentence(row: Row, seconds: Sequence[str]) -> str:
    """A row in words."""
    by_word: dict[str, list[str]] = {}
    for name in seconds:
        if name in row:
            by_word.setdefault(str(row[name]), []).append(name)
    shown = "; ".join(f"{word}: {', '.join(names)}" for word, names in by_word.items() if word not in ("free", "ordered"))
    return f"{row['case']} (gate on {row['gate_on']}) {row['call']}, " + (shown or "and holds nothing that was tried")
