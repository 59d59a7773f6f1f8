"""From figures to verdicts. Pure functions, fed with numbers, so that they are tested without a GPU.

A criterion answers one question about one program: *did it show what was predicted?* ``True``, ``False``, or ``None`` where the
figures do not decide. :func:`verdict` then sets the misuse beside its remedy.
"""

from __future__ import annotations

import enum
import random
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]

# A call that waits for the gate gains 1 ms of host time for each ms that the gate is shut; one that does not gains none. What lies
# between is noise or something unknown, and is not decided.
WAITS = (0.8, 1.2)
DOES_NOT_WAIT = 0.2
LONG_BEATS = 20  # a call that is shorter than this many beats of the other thread says nothing of the GIL
FREE_BEATS = 5  # a thread that comes this far runs, however busy the machine
RESAMPLES = 2000
SHORTEST_MS = 1e-4  # what a clock can measure
DEARER = 1.1  # less than a tenth more is no cost worth a word


class Verdict(str, enum.Enum):
    """What a case showed on this GPU and driver. Spelled so everywhere."""

    CONFIRMED = "CONFIRMED"
    REFUTED = "REFUTED"
    NOT_OBSERVED = "NOT OBSERVED"
    INCONCLUSIVE = "INCONCLUSIVE"
    UNSUPPORTED = "UNSUPPORTED"


class Experiment(str, enum.Enum):
    """The kinds of experiment. The value names it in requests to the child process."""

    HOST_WAITS = "host-waits"
    THREAD_HELD = "thread-held"
    GIL_HELD = "gil-held"
    STREAMS_SERIALISE = "streams-serialise"
    DATA_RACE = "data-race"
    DEADLOCK = "deadlock"
    ERROR = "error"
    COSTS = "costs"


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether one program showed the prediction (``None``: not decided), and one sentence with the figures."""

    shown: bool | None
    reason: str


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict and why."""

    verdict: Verdict
    reason: str


def slope(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Least-squares slope of ``ys`` on ``xs``; ``None`` with fewer than two different ``xs``."""
    if len(xs) != len(ys) or len(xs) < 2:
        return None
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    spread = sum((x - mean_x) ** 2 for x in xs)
    if spread == 0:
        return None
    return sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True)) / spread


def host_waits(figures: Figures) -> Outcome:
    """The host waits. Figures: ``gate_ms`` (when the gate opened) and ``host_ms`` (when the call returned), both from the call's start."""
    gate, host = list(figures.get("gate_ms", ())), list(figures.get("host_ms", ()))
    found = slope(gate, host)
    if found is None or len(set(gate)) < 3:
        return Outcome(None, "fewer than three gate times")
    early = sum(h < g for g, h in zip(gate, host, strict=True))
    text = f"slope of host time on gate time {round(found, 2) + 0.0:.2f} over gates of {min(gate):.0f} to {max(gate):.0f} ms"
    if WAITS[0] <= found <= WAITS[1] and early == 0:
        return Outcome(True, f"waits: {text}")
    if abs(found) <= DOES_NOT_WAIT:
        return Outcome(False, f"does not wait: {text}, call {sorted(host)[len(host) // 2]:.1f} ms")
    return Outcome(None, f"neither waits nor does not: {text}, {early} of {len(gate)} calls returned before the gate opened")


def thread_held(figures: Figures) -> Outcome:
    """Another thread is held. Figures: ``returned_before``, ``runs``: how often its call returned while the gate was shut;
    ``first_inside``: how often the first thread was still in its own call then. One that has returned holds nobody.
    """
    runs, free = int(figures.get("runs", 0)), int(figures.get("returned_before", 0))
    inside = int(figures.get("first_inside", runs))
    if runs == 0:
        return Outcome(None, "no run")
    if free < runs and inside < runs:
        return Outcome(None, f"the other thread's launch was held in {runs - free} of {runs} runs, in {inside} of them by the call at most")
    if free == 0:
        return Outcome(True, f"the other thread's launch was held in {runs} of {runs} runs")
    if free == runs:
        return Outcome(False, f"the other thread's launch returned in {runs} of {runs} runs while the gate was shut")
    return Outcome(None, f"the other thread's launch was held in {runs - free} of {runs} runs")


def gil_held(figures: Figures) -> Outcome:
    """No other Python thread runs. Figures: ``inside_ms`` (how long each call took), ``beats`` (how far another thread counted meanwhile),
    ``beat_ms`` (how long it sleeps between two).
    """
    inside, beats, beat = list(figures.get("inside_ms", ())), list(figures.get("beats", ())), float(figures.get("beat_ms", 1.0))
    if not inside or len(inside) != len(beats):
        return Outcome(None, "no run")
    if min(inside) < LONG_BEATS * beat:
        return Outcome(None, f"the call took {min(inside):.1f} ms: too short to see whether another thread runs")
    text = f"another Python thread counted to {min(beats)} to {max(beats)} while the call took {min(inside):.0f} to {max(inside):.0f} ms"
    if max(beats) <= 1:
        return Outcome(True, f"{text}, in {len(beats)} runs")
    if min(beats) >= FREE_BEATS:
        return Outcome(False, f"{text}, in {len(beats)} runs")
    return Outcome(None, text)


def streams_serialise(figures: Figures) -> Outcome:
    """Streams serialise. Figures: ``runs``, ``started_before`` (B's work done while A was shut), ``finished_after`` (once A opened)."""
    runs, before, after = (int(figures.get(key, 0)) for key in ("runs", "started_before", "finished_after"))
    if runs == 0:
        return Outcome(None, "no run")
    if after != runs:
        return Outcome(None, f"stream B finished in {after} of {runs} runs even with stream A open")
    if figures.get("host_waited"):
        return Outcome(None, "the call itself waited for the gate, so B was not issued while A was shut")
    if before == 0:
        return Outcome(True, f"stream B did not start while stream A was shut, {runs} of {runs} runs")
    if before == runs:
        return Outcome(False, f"stream B ran while stream A was shut, {runs} of {runs} runs")
    return Outcome(None, f"stream B ran while stream A was shut in {before} of {runs} runs")


def data_race(figures: Figures) -> Outcome:
    """Data race. Figures: ``runs``, ``wrong``. One wrong value is enough; none in fewer than 20 runs says nothing."""
    runs, wrong = int(figures.get("runs", 0)), int(figures.get("wrong", 0))
    if wrong > 0:
        return Outcome(True, f"{wrong} of {runs} wrong")
    if runs < 20:
        return Outcome(None, f"only {runs} runs, none wrong")
    return Outcome(False, f"0 of {runs} wrong")


def deadlock(figures: Figures) -> Outcome:
    """Deadlock. Figures: ``ended`` (the child came back), ``waited_s`` (seconds that it was given after it armed itself), ``stood`` (where
    its threads were then).
    """
    if "ended" not in figures:
        return Outcome(None, "the child never reached the call")
    waited = float(figures.get("waited_s", 0.0))
    if figures["ended"]:
        return Outcome(False, f"ended after {waited:.1f} s")
    stood = "".join(f"; {place}" for place in figures.get("stood", ()))
    return Outcome(True, f"did not end within {waited:.1f} s, killed{stood}")


def error(figures: Figures) -> Outcome:
    """Error. Figures: ``status`` (what the call returned, 0 is success), ``expected`` (the predicted status)."""
    status, expected = figures.get("status"), figures.get("expected")
    if status is None:
        return Outcome(None, "the call reported no status")
    if status == expected:
        return Outcome(True, f"status {status}")
    if status == 0:
        return Outcome(False, "status 0, no error")
    return Outcome(None, f"status {status}, predicted {expected}")


def costs(figures: Figures) -> Outcome:
    """What a program costs. Figures: ``ms``, one number a run. One program alone shows nothing: see :func:`dearer`."""
    samples = sorted(figures.get("ms", ()))
    return Outcome(None, f"median {samples[len(samples) // 2]:.3f} ms in {len(samples)} runs" if samples else "no run")


def median_interval(samples: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median by the percentile bootstrap; the draws are the same each time."""
    draw = random.Random(0)
    medians = sorted(statistics.median(draw.choices(samples, k=len(samples))) for _ in range(RESAMPLES))
    return medians[RESAMPLES // 40], medians[-RESAMPLES // 40 - 1]


def dearer(misuse: Figures, remedy: Figures) -> Judgement:
    """It costs time. The programs ran in turns: what counts is the ratio of each pair, and the interval of their median."""
    for name, figures in (("misuse", misuse), ("remedy", remedy)):
        if "failure" in figures or len(figures.get("ms", ())) < 5:
            return Judgement(Verdict.INCONCLUSIVE, f"{name}: {figures.get('failure', 'fewer than five runs')}")
    bad, good = misuse["ms"], remedy["ms"]
    ratios = [high / max(low, SHORTEST_MS) for high, low in zip(bad, good, strict=False)]
    least, most = median_interval(ratios)
    text = (
        f"misuse: median {statistics.median(bad):.3f} ms; remedy: median {statistics.median(good):.3f} ms; "
        f"ratio of the pairs {statistics.median(ratios):.2f} ({least:.2f} to {most:.2f})"
    )
    if least > DEARER:
        return Judgement(Verdict.CONFIRMED, text)
    if most < DEARER:
        return Judgement(Verdict.REFUTED, text)
    return Judgement(Verdict.INCONCLUSIVE, text)


CRITERIA = {
    Experiment.HOST_WAITS: host_waits,
    Experiment.THREAD_HELD: thread_held,
    Experiment.GIL_HELD: gil_held,
    Experiment.STREAMS_SERIALISE: streams_serialise,
    Experiment.DATA_RACE: data_race,
    Experiment.DEADLOCK: deadlock,
    Experiment.ERROR: error,
    Experiment.COSTS: costs,
}


# In how many runs an experiment did not show what was predicted.
_AGAINST = {Experiment.THREAD_HELD: "returned_before", Experiment.STREAMS_SERIALISE: "started_before"}


def shown_share(experiment: Experiment, figures: Figures) -> float | None:
    """How much of the prediction one program showed, from 0 to 1; ``None`` where there is no figure. For a bar, not for a verdict."""
    runs = float(figures.get("runs", 0))
    share: float | None = None
    if experiment is Experiment.HOST_WAITS:
        share = slope(list(figures.get("gate_ms", ())), list(figures.get("host_ms", ())))
    elif experiment is Experiment.GIL_HELD and figures.get("beats"):
        longest = max(inside / float(figures.get("beat_ms", 1.0)) for inside in figures["inside_ms"])
        share = 1.0 - max(figures["beats"]) / longest
    elif experiment in _AGAINST and runs:
        share = 1.0 - figures.get(_AGAINST[experiment], 0) / runs
    elif experiment is Experiment.DATA_RACE and runs:
        share = figures.get("wrong", 0) / runs
    elif experiment is Experiment.DEADLOCK and "ended" in figures:
        share = float(not figures["ended"])
    elif experiment is Experiment.ERROR and "status" in figures:
        share = float(figures["status"] == figures.get("expected"))
    return None if share is None else min(max(share, 0.0), 1.0)


def outcome(experiment: Experiment, figures: Figures) -> Outcome:
    """Apply the experiment's criterion. Figures with a ``failure`` (a gate gave up, a crash, a deadline) decide nothing."""
    if "failure" in figures:
        return Outcome(None, str(figures["failure"]))
    return CRITERIA[experiment](figures)


def verdict(experiment: Experiment, misuse: Figures, remedy: Figures) -> Judgement:
    """Set the misuse beside its control. CONFIRMED only if the misuse shows the prediction and the remedy does not.

    A race that shows no wrong value is NOT OBSERVED, never REFUTED: the program relies on an order that nobody guarantees.
    """
    if experiment is Experiment.COSTS:
        return dearer(misuse, remedy)
    bad, good = outcome(experiment, misuse), outcome(experiment, remedy)
    if bad.shown is None:
        return Judgement(Verdict.INCONCLUSIVE, f"misuse: {bad.reason}")
    if not bad.shown:
        luck = experiment is Experiment.DATA_RACE
        return Judgement(Verdict.NOT_OBSERVED if luck else Verdict.REFUTED, f"misuse: {bad.reason}")
    if good.shown is None:
        return Judgement(Verdict.INCONCLUSIVE, f"remedy: {good.reason}")
    if good.shown:
        return Judgement(Verdict.INCONCLUSIVE, f"the remedy shows it too, so the marked line is not shown to be the cause ({good.reason})")
    return Judgement(Verdict.CONFIRMED, f"misuse: {bad.reason}; remedy: {good.reason}")
