"""Children that behave, hang, crash and babble; no GPU."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence

import pytest

from streamlint.verify import runner, templates
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment
from streamlint.verify.runner import Job, run_jobs
from streamlint.verify.watchdog import Child

SAY = "import json, os, sys, time\ndef say(**m): print(json.dumps(m), flush=True)\n"


def _child(code: str) -> Child:
    return Child([sys.executable, "-c", SAY + code])


def _jobs(number: int, experiment: Experiment = Experiment.HOST_WAITS) -> list[Job]:
    case = next(case for template in templates.load().values() for case in template.cases if case.experiment is experiment)
    return [Job(case, "misuse") for _ in range(number)]


def _script(*codes: str) -> Callable[[Sequence[Job]], Child]:
    left = list(codes)
    return lambda jobs: _child(left.pop(0))


def test_answers_come_one_by_one() -> None:
    child = _child("say(event='a'); say(event='b', n=1)")
    try:
        assert child.read(20) == {"event": "a"}
        assert child.read(20) == {"event": "b", "n": 1}
        assert child.read(20) is None
    finally:
        child.kill()


def test_silence_is_a_timeout_and_the_child_is_killed() -> None:
    child = _child("say(event='a'); time.sleep(600)")
    child.read(20)
    with pytest.raises(TimeoutError):
        child.read(0.1)
    started = time.perf_counter()
    child.kill()
    assert time.perf_counter() - started < 5


def test_grandchildren_die_too() -> None:
    code = "import subprocess; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)']); say(event='a'); time.sleep(600)"
    child = _child(code)
    child.read(20)
    child.kill()
    assert child.read(20) is None  # the pipe is closed, so nobody holds it


def test_a_crash_is_named() -> None:
    child = _child("sys.stderr.write('bad news\\n'); sys.stderr.flush(); os.kill(os.getpid(), 11)")
    try:
        assert child.read(20) is None
        assert child.epitaph() == "the child died of SIGSEGV: bad news"
    finally:
        child.kill()


def test_garbage_is_no_answer() -> None:
    child = _child("print('hello'); print('[1, 2]'); say(event='a')")
    try:
        assert child.read(20) == {"event": "a"}
        assert child.garbage == ["hello", "[1, 2]"]
    finally:
        child.kill()


def test_run_goes_on_after_a_hang() -> None:
    spawn = _script(
        "say(event='start', job=0); say(event='figures', job=0, figures={'n': 1}); say(event='start', job=1); time.sleep(600)",
        "say(event='start', job=0); say(event='figures', job=0, figures={'n': 3}); say(event='end')",
    )
    answers = run_jobs(_jobs(3), spawn, timeout=0.5)
    assert [answer.figures for answer in answers] == [{"n": 1}, {"failure": "the case did not end within 0 s, killed"}, {"n": 3}]


def test_run_goes_on_after_a_crash() -> None:
    spawn = _script(
        "say(event='start', job=0); os.kill(os.getpid(), 11)",
        "say(event='start', job=0); say(event='figures', job=0, figures={'n': 2})",
    )
    answers = run_jobs(_jobs(2), spawn, timeout=20)
    assert answers[0].figures == {"failure": "the child died of SIGSEGV"}
    assert answers[1].figures == {"n": 2}


def test_a_child_that_cannot_start_answers_for_all() -> None:
    answers = run_jobs(_jobs(2), _script("print('no such thing'); sys.exit(3)"), timeout=20)
    assert [answer.figures["failure"] for answer in answers] == ["the child ended with status 3 and without an answer: no such thing"] * 2


def test_a_broken_context_ends_the_child_and_a_fresh_one_goes_on() -> None:
    spawn = _script(
        "say(event='start', job=0); say(event='failure', job=0, reason='ValueError: x'); say(event='end')",
        "say(event='start', job=0); say(event='unsupported', job=0, reason='no CUDA in torch')",
    )
    first, second = run_jobs(_jobs(2), spawn, timeout=20)
    assert first.figures == {"failure": "ValueError: x"}
    assert second.unsupported == "no CUDA in torch"


def test_an_armed_child_that_does_not_end_is_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HANG_S", 0.3)
    spawn = _script("say(event='start', job=0); say(event='armed', job=0); time.sleep(600)")
    (answer,) = run_jobs(_jobs(1, Experiment.DEADLOCK), spawn, timeout=20)
    assert answer.figures == {"ended": False, "waited_s": 0.3}


def test_one_that_hangs_by_design_has_a_child_of_its_own() -> None:
    cases: list[Case] = [case for template in templates.load().values() for case in template.cases]
    for batch in runner.batches(cases):
        assert len({case.api for case in batch}) == 1
        assert len(batch) == 1 or all(case.experiment is not Experiment.DEADLOCK for case in batch)
