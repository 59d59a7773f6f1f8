"""Numbers in, verdicts out."""

from __future__ import annotations

import pytest

from streamlint.verify.criteria import Experiment, Verdict, outcome, slope, verdict

GATES = [20.0, 60.0, 120.0]
WAITS = {"gate_ms": GATES, "host_ms": [21.0, 61.2, 121.1]}
FREE = {"gate_ms": GATES, "host_ms": [0.4, 0.3, 0.5]}
STALE = {"runs": 20, "wrong": 20}
FRESH = {"runs": 20, "wrong": 0}


def test_slope_is_least_squares() -> None:
    assert slope([1.0, 2.0, 3.0], [2.0, 4.0, 6.0]) == pytest.approx(2.0)


@pytest.mark.parametrize(("xs", "ys"), [([], []), ([1.0], [1.0]), ([2.0, 2.0], [1.0, 3.0]), ([1.0, 2.0], [1.0])])
def test_slope_needs_a_spread(xs: list[float], ys: list[float]) -> None:
    assert slope(xs, ys) is None


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ([20.5, 60.4, 120.7], True),
        ([28.0, 68.0, 128.0], True),  # the copy itself adds the same to each
        ([0.1, 0.2, 0.1], False),
        ([9.0, 9.5, 9.1], False),  # slow, but not waiting
        ([10.0, 30.0, 60.0], None),  # half
        ([19.0, 59.0, 119.0], None),  # slope 1, but it came back before the gate opened
        ([40.0, 120.0, 240.0], None),
    ],
)
def test_host_waits(host: list[float], shown: bool | None) -> None:
    assert outcome(Experiment.HOST_WAITS, {"gate_ms": GATES, "host_ms": host}).shown is shown


def test_no_slope_has_no_sign() -> None:
    figures = {"gate_ms": [20.0, 60.0, 120.0], "host_ms": [0.2, 0.1, 0.1]}
    assert "gate time 0.00 over" in outcome(Experiment.HOST_WAITS, figures).reason


def test_host_waits_needs_three_gate_times() -> None:
    assert outcome(Experiment.HOST_WAITS, {"gate_ms": [20.0, 60.0], "host_ms": [20.5, 60.5]}).shown is None
    assert outcome(Experiment.HOST_WAITS, {}).shown is None


@pytest.mark.parametrize(("before", "shown"), [(0, True), (5, False), (2, None)])
def test_thread_held(before: int, shown: bool | None) -> None:
    assert outcome(Experiment.THREAD_HELD, {"runs": 5, "returned_before": before}).shown is shown


def test_a_thread_that_is_not_inside_holds_nobody() -> None:
    held = outcome(Experiment.THREAD_HELD, {"runs": 5, "returned_before": 0, "first_inside": 3})
    assert held.shown is None
    assert "in 3 of them by the call at most" in held.reason
    assert outcome(Experiment.THREAD_HELD, {"runs": 5, "returned_before": 0, "first_inside": 5}).shown is True
    assert outcome(Experiment.THREAD_HELD, {"runs": 5, "returned_before": 5, "first_inside": 0}).shown is False


@pytest.mark.parametrize(
    ("beats", "inside", "shown"),
    [([0, 1], [200.0, 201.0], True), ([80, 90], [200.0, 201.0], False), ([0, 90], [200.0, 201.0], None), ([0, 0], [200.0, 3.0], None)],
)
def test_gil_held(beats: list[int], inside: list[float], shown: bool | None) -> None:
    assert outcome(Experiment.GIL_HELD, {"beats": beats, "inside_ms": inside, "beat_ms": 2.0}).shown is shown
    assert outcome(Experiment.GIL_HELD, {}).shown is None


@pytest.mark.parametrize(
    ("before", "after", "waited", "shown"),
    [(0, 5, False, True), (5, 5, False, False), (3, 5, False, None), (0, 4, False, None), (0, 5, True, None)],
)
def test_streams_serialise(before: int, after: int, waited: bool, shown: bool | None) -> None:
    figures = {"runs": 5, "started_before": before, "finished_after": after, "host_waited": waited}
    assert outcome(Experiment.STREAMS_SERIALISE, figures).shown is shown


@pytest.mark.parametrize(("runs", "wrong", "shown"), [(20, 20, True), (20, 1, True), (20, 0, False), (19, 0, None), (0, 0, None)])
def test_data_race(runs: int, wrong: int, shown: bool | None) -> None:
    assert outcome(Experiment.DATA_RACE, {"runs": runs, "wrong": wrong}).shown is shown


def test_deadlock() -> None:
    assert outcome(Experiment.DEADLOCK, {"ended": False, "waited_s": 3.0}).shown is True
    assert outcome(Experiment.DEADLOCK, {"ended": True, "waited_s": 0.01}).shown is False
    assert outcome(Experiment.DEADLOCK, {}).shown is None


@pytest.mark.parametrize(("status", "shown"), [(800, True), (0, False), (700, None), (None, None)])
def test_error(status: int | None, shown: bool | None) -> None:
    assert outcome(Experiment.ERROR, {"status": status, "expected": 800}).shown is shown


@pytest.mark.parametrize("experiment", list(Experiment))
def test_no_run_decides_nothing(experiment: Experiment) -> None:
    for figures in ({}, {"failure": "the gate gave up"}):
        assert outcome(experiment, figures).shown is None


@pytest.mark.parametrize(
    ("experiment", "misuse", "remedy", "expected"),
    [
        (Experiment.HOST_WAITS, WAITS, FREE, Verdict.CONFIRMED),
        (Experiment.HOST_WAITS, FREE, WAITS, Verdict.REFUTED),
        (Experiment.HOST_WAITS, FREE, FREE, Verdict.REFUTED),
        (Experiment.HOST_WAITS, WAITS, WAITS, Verdict.INCONCLUSIVE),
        (Experiment.HOST_WAITS, {"failure": "the gate gave up"}, FREE, Verdict.INCONCLUSIVE),
        (Experiment.HOST_WAITS, WAITS, {"failure": "SIGSEGV"}, Verdict.INCONCLUSIVE),
        (Experiment.DATA_RACE, STALE, FRESH, Verdict.CONFIRMED),
        (Experiment.DATA_RACE, FRESH, FRESH, Verdict.NOT_OBSERVED),
        (Experiment.DATA_RACE, FRESH, STALE, Verdict.NOT_OBSERVED),
        (Experiment.DEADLOCK, {"ended": False, "waited_s": 3}, {"ended": True, "waited_s": 0}, Verdict.CONFIRMED),
        (Experiment.ERROR, {"status": 0, "expected": 800}, {"status": 800, "expected": 800}, Verdict.REFUTED),
    ],
)
def test_verdict(experiment: Experiment, misuse: dict[str, object], remedy: dict[str, object], expected: Verdict) -> None:
    assert verdict(experiment, misuse, remedy).verdict is expected


def test_a_failure_is_told() -> None:
    assert verdict(Experiment.HOST_WAITS, WAITS, {"failure": "the child died of SIGSEGV"}).reason == "remedy: the child died of SIGSEGV"


@pytest.mark.parametrize(
    ("misuse", "remedy", "expected"),
    [
        ([3.3] * 9, [1.1] * 9, Verdict.CONFIRMED),
        ([1.1] * 9, [1.1] * 9, Verdict.REFUTED),
        ([1.0] * 9, [2.0] * 9, Verdict.REFUTED),
        ([1.3, 1.4, 1.3, 1.5, 1.3, 1.6, 1.4, 1.3, 1.4], [1.0, 1.1, 1.0, 1.1, 170.0, 1.2, 1.1, 1.0, 1.1], Verdict.CONFIRMED),
        ([1.0, 1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0], [0.5, 0.5, 1.0, 1.0, 1.0, 1.5, 3.0, 3.0, 3.0], Verdict.INCONCLUSIVE),
        ([3.3] * 3, [1.1] * 9, Verdict.INCONCLUSIVE),
    ],
)
def test_costs(misuse: list[float], remedy: list[float], expected: Verdict) -> None:
    assert verdict(Experiment.COSTS, {"ms": misuse}, {"ms": remedy}).verdict is expected


def test_costs_of_one_program_show_nothing() -> None:
    assert outcome(Experiment.COSTS, {"ms": [1.0, 2.0, 3.0]}).shown is None
    assert verdict(Experiment.COSTS, {"failure": "SIGSEGV"}, {"ms": [1.0] * 9}).reason == "misuse: SIGSEGV"
