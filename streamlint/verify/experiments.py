"""The experiments. Each runs one program behind gates and returns figures; ``criteria`` says what they mean."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from streamlint.verify.cases import Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import LIMIT_S, Lab, LabError
from streamlint.verify.timeline import STREAM

GATES_MS = (20.0, 60.0, 120.0)
ROUNDS = 2  # of all gate times
RACES = 20  # repetitions of a race
RACE_GATE_MS = 15.0
GRACE_MS = 40.0  # how long work on another stream or thread may take to show that it is free
HELD_ROUNDS = 5
CATCH_UP_S = 5.0
LAPSE_S = 0.2  # device time after which a gate opens that no Python thread may be able to open
BEAT_S = 0.002
COST_RUNS = 21
MAIN, SHUT = "host thread", "gated stream"
CALL = "the program's call"


_MARGIN = 3.0  # a call may be this much slower behind a gate than it was in the warm-up
_MOST_OWN_S = LIMIT_S / 10  # of a call's own work: with longer, no gate could outlast the experiment


def _warm(lab: Lab, trial: Trial) -> float:
    """Two runs with no gate: kernels are loaded, allocators filled and given back to once.

    Returns seconds within which the call has come to where it waits, if it does: what it does itself (touch fresh memory, copy) takes
    the host no longer than the whole call with no gate. No experiment may open its gate, or ask another thread, before that.
    """
    own = 0.0
    for number in range(2):
        lab.timeline.stands(MAIN, f"warm-up run {number + 1}, no gate")
        trial.reset(0)
        lab.synchronize()
        start = time.perf_counter()
        trial.call()
        own = time.perf_counter() - start
        lab.synchronize()
    return own * _MARGIN


def _patience(lab: Lab, trial: Trial) -> float:
    """Warm up; the seconds that the call needs for its own work, as :func:`_warm` has them. No number comes of a call that is too long."""
    own = _warm(lab, trial)
    if own > _MOST_OWN_S * _MARGIN:
        raise LabError(f"the call takes {own / _MARGIN:.2g} s with no gate: too long to tell what a gate adds")
    return own


def host_waits(lab: Lab, trial: Trial) -> dict[str, Any]:
    """Time the call behind gates of three lengths. ``gate_ms`` and ``host_ms`` count from the call's start."""
    own_ms = _patience(lab, trial) * 1e3
    later = own_ms if own_ms > min(GATES_MS) else 0.0
    gates: list[float] = []
    hosts: list[float] = []
    for milliseconds in [later + gate for gate in GATES_MS] * ROUNDS:
        trial.reset(len(gates) + 1)
        lab.synchronize()
        lab.timeline.stands(MAIN, f"{CALL}, behind a gate of {milliseconds:.0f} ms")
        lab.timeline.begin()
        with lab.gate(trial.gate) as gate:
            gate.open_after(milliseconds)
            start = time.perf_counter()
            kept = trial.call()
            end = time.perf_counter()
            opened = gate.await_open()
        del kept  # only now: a destructor may wait for the device
        lab.timeline.add(MAIN, CALL, start, end)
        lab.timeline.gate(SHUT, gate.shut_at, opened, gate.idle_at)
        gates.append(round((opened - start) * 1e3, 3))
        hosts.append(round((end - start) * 1e3, 3))
    return {"gate_ms": gates, "host_ms": hosts}


class _Worker:
    """A thread that has used the device before any gate shuts, and then runs what it is given."""

    def __init__(self, lab: Lab, name: str, doing: str) -> None:
        self._lab, self._name, self._doing = lab, name, doing
        self._work: queue.SimpleQueue[tuple[Callable[[], object], threading.Event]] = queue.SimpleQueue()
        self.failures: list[str] = []
        threading.Thread(target=self._run, daemon=True).start()

    def submit(self, work: Callable[[], object]) -> threading.Event:
        """Run it in the thread; the event is set when it came back, with or without an exception."""
        done = threading.Event()
        self._work.put((work, done))
        return done

    def _run(self) -> None:
        self._lab.runtime.setDevice(0)
        while True:
            work, done = self._work.get()
            try:
                with self._lab.timeline.during(self._name, self._doing):
                    self._lab.keep(work())
            except Exception as problem:  # lost otherwise, and the round would look as if it were held
                self.failures.append(f"{type(problem).__name__}: {problem}")
            done.set()


def thread_held(lab: Lab, trial: Trial) -> dict[str, Any]:
    """While one thread is in the call, another launches on a non-blocking stream of its own: does that launch return?"""
    grace = max(GRACE_MS / 1e3, _patience(lab, trial))
    other = lab.stream(blocking=False)
    first, second = _Worker(lab, "thread 1", CALL), _Worker(lab, "thread 2", "a launch on a stream of its own")
    first.submit(trial.call).wait(CATCH_UP_S)
    second.submit(lambda: lab.mark(other.ptr)).wait(CATCH_UP_S)
    before = after = inside = 0
    for number in range(HELD_ROUNDS):
        trial.reset(number + 1)
        lab.synchronize()
        lab.timeline.begin()
        with lab.gate(trial.gate) as gate:
            call = first.submit(trial.call)
            inside += not call.wait(grace)
            launch = second.submit(lambda: lab.mark(other.ptr))
            before += launch.wait(GRACE_MS / 1e3)
            gate.open()
            after += launch.wait(CATCH_UP_S) and call.wait(CATCH_UP_S)
        lab.timeline.gate(SHUT, gate.shut_at, gate.opened_at, gate.idle_at)
    failures = first.failures + second.failures
    if failures or after != HELD_ROUNDS:
        return {"failure": failures[0] if failures else f"both threads came back in {after} of {HELD_ROUNDS} runs only"}
    return {"runs": HELD_ROUNDS, "returned_before": before, "first_inside": inside}


def gil_held(lab: Lab, trial: Trial) -> dict[str, Any]:
    """While one thread is in the call, behind a gate that lapses by itself, another Python thread counts: how far does it come?"""
    lapse = max(LAPSE_S, 2 * _patience(lab, trial))
    beats: list[float] = []
    stop = threading.Event()

    def count() -> None:
        while not stop.is_set():
            beats.append(time.perf_counter())
            time.sleep(BEAT_S)

    counter = threading.Thread(target=count, daemon=True)
    counter.start()
    inside: list[float] = []
    counted: list[int] = []
    try:
        for number in range(HELD_ROUNDS):
            trial.reset(number + 1)
            lab.synchronize()
            lab.timeline.stands(MAIN, f"{CALL}, behind a gate that lapses after {lapse * 1e3:.0f} ms")
            lab.timeline.begin()
            with lab.gate(trial.gate, lapses_s=lapse) as gate:
                start = time.perf_counter()
                kept = trial.call()
                end = time.perf_counter()
            del kept
            lab.timeline.add(MAIN, CALL, start, end)
            for beat in [beat for beat in list(beats) if start < beat < end]:
                lab.timeline.add("another Python thread", "runs", beat, beat)
            lab.timeline.gate(SHUT, gate.shut_at, end, None)
            inside.append(round((end - start) * 1e3, 3))
            counted.append(sum(start + BEAT_S < beat < end - BEAT_S for beat in list(beats)))
    finally:
        stop.set()
        counter.join(CATCH_UP_S)
    return {"inside_ms": inside, "beats": counted, "beat_ms": BEAT_S * 1e3}


def streams_serialise(lab: Lab, trial: Trial) -> dict[str, Any]:
    """Shut stream A, run the call, mark stream B: is the mark there before A opens?"""
    grace_ms = max(GRACE_MS, _patience(lab, trial) * 1e3)
    lab.await_mark(lab.mark(trial.watch), CATCH_UP_S)
    before = after = 0
    waited = False
    for number in range(HELD_ROUNDS):
        trial.reset(number + 1)
        lab.synchronize()
        lab.timeline.stands(MAIN, f"{CALL}, then a mark on stream B, with stream A shut")
        lab.timeline.begin()
        with lab.gate(trial.gate) as gate:
            gate.open_after(2 * grace_ms + GRACE_MS)
            start = time.perf_counter()
            kept = trial.call()
            end = time.perf_counter()
            token = lab.mark(trial.watch)
            waited = waited or gate.opened_at is not None
            done = lab.await_mark(token, GRACE_MS / 1e3)
            before += done and gate.opened_at is None
            seen = time.perf_counter() if done else None
            gate.open()
            after += lab.await_mark(token, CATCH_UP_S)
            seen = seen or time.perf_counter()
        del kept
        lab.timeline.add(MAIN, CALL, start, end)
        lab.timeline.gate("stream A", gate.shut_at, gate.opened_at, gate.idle_at)
        lab.timeline.add("stream B", "a mark, from its launch until it has run", end, seen, STREAM)
    return {"runs": HELD_ROUNDS, "started_before": before, "finished_after": after, "host_waited": waited}


def data_race(lab: Lab, trial: Trial) -> dict[str, Any]:
    """Hold the producer, let the program read: how often is the value wrong? ``first_wrong`` is the value and the right one."""
    gate_ms = max(RACE_GATE_MS, _patience(lab, trial) * 1e3)
    wrong = early = 0
    first: list[object] | None = None
    for number in range(1, RACES + 1):
        expected = trial.reset(number)
        lab.synchronize()
        lab.timeline.stands(MAIN, f"{CALL}, run {number} of {RACES}, behind a gate of {gate_ms:.0f} ms")
        lab.timeline.begin()
        with lab.gate(trial.gate) as gate:
            gate.open_after(gate_ms)
            start = time.perf_counter()
            value = trial.call()
            end = time.perf_counter()
            early += gate.opened_at is None
        lab.timeline.add(MAIN, f"{CALL}: {'the right value' if value == expected else 'a wrong value'}", start, end)
        lab.timeline.gate(SHUT, gate.shut_at, gate.opened_at, gate.idle_at)
        if value != expected:
            wrong += 1
            first = first or [value, expected]
    return {"runs": RACES, "wrong": wrong, "first_wrong": first, "returned_before_gate": early}


def deadlock(lab: Lab, trial: Trial) -> dict[str, Any]:
    """Just call it. The parent process watches the clock and kills."""
    lab.timeline.begin()
    started = time.perf_counter()
    with lab.timeline.during(MAIN, CALL):
        trial.call()
    return {"ended": True, "waited_s": round(time.perf_counter() - started, 3)}


def error(lab: Lab, trial: Trial) -> dict[str, Any]:
    """The call's own status code; 0 is success, 800 ``cudaErrorNotPermitted``."""
    trial.reset(1)
    lab.synchronize()
    lab.timeline.begin()
    with lab.timeline.during(MAIN, CALL):
        status = trial.call()
    return {"status": status, "expected": trial.expected}


def costs(lab: Lab, trial: Trial, beside: Trial) -> dict[str, Any]:
    """Time two calls in turns with the device idle; one that returns a float has measured its own cost. ``ms`` and ``beside_ms``."""
    samples: list[list[float]] = [[], []]
    for each in (trial, beside):
        _warm(lab, each)
    lab.timeline.begin()  # nothing is drawn of a cost: its figures are many short runs
    lab.timeline.stands(MAIN, f"{COST_RUNS} runs of misuse and remedy in turns")
    for number in range(COST_RUNS):
        for each, taken in zip((trial, beside), samples, strict=True):
            each.reset(number + 1)
            lab.synchronize()
            start = time.perf_counter()
            own = each.call()
            spent = (time.perf_counter() - start) * 1e3
            taken.append(round(own if isinstance(own, float) else spent, 4))
    return {"ms": samples[0], "beside_ms": samples[1]}


EXPERIMENTS: dict[Experiment, Callable[[Lab, Trial], dict[str, Any]]] = {
    Experiment.HOST_WAITS: host_waits,
    Experiment.THREAD_HELD: thread_held,
    Experiment.GIL_HELD: gil_held,
    Experiment.STREAMS_SERIALISE: streams_serialise,
    Experiment.DATA_RACE: data_race,
    Experiment.DEADLOCK: deadlock,
    Experiment.ERROR: error,
}
