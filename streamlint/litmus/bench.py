"""Runs one program on the GPU: threads issue in a fixed order, a gate holds, and what finished all the same is read."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from streamlint.litmus.device import Device
from streamlint.litmus.predict import leaves_a_mark
from streamlint.litmus.program import THREADS, Call, Program
from streamlint.verify.lab import LIMIT_S, Gate, LabError

PATIENCE_S = 0.08  # for what the model says will finish
STEP_S = 0.003  # for a call that the model says will not return
QUIET_S = 0.006  # after all that was expected is there: what else would finish, does
QUERY_S = 0.003  # before a query: work that is not held has ended
GATE_S = 2.0  # for the gate to start
END_S = 8.0  # after the gate is open
_TICK_S = 0.00003


@dataclass
class Seen:
    """What a run showed. ``problem`` says why there is no outcome: the gate did not run or gave up, or threads did not come back."""

    words: set[str] = field(default_factory=set)
    problem: str = ""
    hung: bool = False


class HostGate:
    """Holds a stream shut with a host function that blocks; a gate as :class:`~streamlint.verify.lab.Gate` is."""

    def __init__(self, device: Device, stream: int) -> None:
        self._device, self._stream = device, stream
        self._open, self._runs = threading.Event(), threading.Event()
        self._gave_up = False

    def _block(self, _argument: Any) -> None:
        self._runs.set()
        self._gave_up = not self._open.wait(LIMIT_S)

    def __enter__(self) -> HostGate:
        self._device.runtime.launchHostFunc(self._stream, self._block, 0)
        if not self._runs.wait(1.0):
            raise LabError("the host function did not start")
        return self

    def open(self) -> None:
        self._open.set()

    @property
    def gave_up(self) -> bool:
        return self._gave_up


class Bench:
    """Threads and the runs on them. One at a time; a hung run ends the process."""

    def __init__(self) -> None:
        self.device = Device()
        self._queues: list[queue.SimpleQueue[Callable[[], None]]] = [queue.SimpleQueue() for _ in range(THREADS)]
        for jobs in self._queues:
            threading.Thread(target=self._work, args=(jobs,), daemon=True).start()

    def _work(self, jobs: queue.SimpleQueue[Callable[[], None]]) -> None:
        self.device.cupy.cuda.Device(0).use()
        while True:
            jobs.get()()

    def warm(self, programs: Iterable[Program]) -> None:
        """Run each call once with an open gate, so that nothing is loaded, grown or created for the first time behind a shut one."""
        for program in programs:
            self.run(program, frozenset(f"h{index}" for index in range(len(program.calls))), shut=False)

    def run(self, program: Program, expected: frozenset[str], *, shut: bool = True) -> Seen:
        """One run. ``expected`` only says how long to be patient; what is reported is what was seen."""
        self.device.prepare(program)
        run = _Run(self.device, program)
        waiting: set[int] = set()
        for index, call in enumerate(program.calls):
            if call.call.endswith("Query"):
                time.sleep(QUERY_S)
            gated = shut and index == program.gate
            if gated:  # what comes before the gate is not held: let it end
                self._await(partial(run.shows, {word for word in expected if _index(word) < index}), PATIENCE_S)
            self._queues[call.thread].put(run.job(index, call, gated=gated))
            if gated:
                self._await(run.gate_is_decided, GATE_S)
            if call.thread not in waiting:
                self._await(partial(run.has_returned, index), PATIENCE_S if f"h{index}" in expected else STEP_S)
                if index not in run.returned:
                    waiting.add(call.thread)
        if not run.problem:
            self._await(partial(run.shows, expected), PATIENCE_S)
            time.sleep(QUIET_S)
        seen = Seen(run.seen(), run.problem)
        run.open()
        if not self._await(lambda: len(run.returned) == len(program.calls), END_S):
            stuck = sorted(set(range(len(program.calls))) - run.returned)
            return Seen(seen.words, f"calls {stuck} did not return {END_S:.0f} s after the gate was open", hung=True)
        self.device.clear(lambda: self._end_captures(program))
        seen.problem = seen.problem or run.epilogue()
        return seen

    def _await(self, condition: Callable[[], bool], seconds: float) -> bool:
        end = time.perf_counter() + seconds
        while not condition():
            if time.perf_counter() > end:
                return condition()
            time.sleep(_TICK_S)
        return True

    def _end_captures(self, program: Program) -> None:
        """End what is still being captured, each from the thread that began it."""
        for call in program.calls:
            if call.call.startswith("beginCapture"):
                done = threading.Event()
                self._queues[call.thread].put(_Ender(self.device, call, done))
                done.wait(END_S)


@dataclass
class _Ender:
    device: Device
    call: Call
    done: threading.Event

    def __call__(self) -> None:
        runtime, stream = self.device.runtime, self.device.handles[self.call.stream]
        try:
            runtime.graphDestroy(runtime.streamEndCapture(stream))
        except Exception:  # it was ended by the program, or is invalid: both leave nothing behind
            pass
        finally:
            self.done.set()


class _Run:
    def __init__(self, device: Device, program: Program) -> None:
        self._device, self._program = device, program
        self._gate: Gate | HostGate | None = None
        self.returned: set[int] = set()
        self._statuses: dict[int, int] = {}
        self._ready: set[int] = set()
        self.problem = ""
        self._decided = False

    def gate_is_decided(self) -> bool:
        """Whether the gate is shut, or could not be."""
        return self._decided

    def shows(self, words: Collection[str]) -> bool:
        """Whether all of these words are there by now."""
        return set(words) <= self.seen()

    def job(self, index: int, call: Call, *, gated: bool) -> Callable[[], None]:
        def work() -> None:
            if gated:
                try:
                    self._shut(call)
                except Exception as problem:
                    self.problem = f"no gate: {problem}"
                self._decided = True
            try:
                said = self._device.call(index, call)
            except Exception as problem:
                self._statuses[index] = int(getattr(problem, "status", -1))
                self._device.refused(index, call)
                if self._statuses[index] < 0:
                    self.problem = f"call {index}: {type(problem).__name__}: {problem}"
            else:
                if said == 0:
                    self._ready.add(index)
                elif said is not None and said != 600:  # cudaErrorNotReady
                    self._statuses[index] = said
            self.returned.add(index)

        return work

    def _shut(self, call: Call) -> None:
        peer = self._device.peer if call.stream == "q1" else None
        stream = peer.stream if peer else self._device.handles[call.stream or "null"]
        gate: Gate | HostGate = HostGate(self._device, stream)
        if self._program.kind == "gate":
            gate = (peer.lab if peer else self._device.lab).gate(stream)
        self._gate = gate
        if peer:
            with self._device.cupy.cuda.Device(1):
                gate.__enter__()
        else:
            gate.__enter__()

    def has_returned(self, index: int) -> bool:
        return index in self.returned

    def open(self) -> None:
        if self._gate is not None:
            self._gate.open()

    def seen(self) -> set[str]:
        """The words of the outcome as of now."""
        calls = self._program.calls
        words = {f"h{index}" for index in list(self.returned)}
        words |= {f"x{index}:{status}" for index, status in list(self._statuses.items())}
        words |= {f"r{index}" for index in list(self._ready)}
        return words | {
            f"d{index}" for index, call in enumerate(calls) if not call.captures and leaves_a_mark(call) and self._device.done(index, call)
        }

    def epilogue(self) -> str:
        """Why the run is void after all."""
        if self._gate is not None and self._gate.gave_up:
            return f"the gate gave up by itself after {LIMIT_S:.0f} s"
        return ""


def _index(word: str) -> int:
    """The number of the call that a word of an outcome speaks of."""
    return int(word[1:].partition(":")[0])
