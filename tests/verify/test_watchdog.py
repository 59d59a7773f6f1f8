"""Children that behave, hang, crash and babble; no GPU."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from streamlint.verify import runner, templates, watchdog
from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment, deadlock
from streamlint.verify.runner import Job, run_jobs
from streamlint.verify.stacks import Stack
from streamlint.verify.watchdog import Child

SAY = "import json, os, sys, time\ndef say(**m): os.write(1, (json.dumps(m) + chr(10)).encode())\n"


def _child(code: str) -> Child:
    return Child([sys.executable, "-c", SAY + code])


def _jobs(number: int, experiment: Experiment = Experiment.HOST_WAITS) -> list[Job]:
    case = next(case for template in templates.load().values() for case in template.cases if case.experiment is experiment)
    return [Job(case, "misuse") for _ in range(number)]


def _script(*codes: str) -> Callable[[Sequence[Job]], Child]:
    left = list(codes)
    return lambda jobs: _child(left.pop(0))


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits long for the stacks of children that write none."""
    monkeypatch.setattr(watchdog, "_DUMP_S", 1.0)


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
    child = _child("print('hello'); print('[1, 2]', flush=True); say(event='a')")
    try:
        assert child.read(20) == {"event": "a"}
        assert child.garbage == ["hello", "[1, 2]"]
    finally:
        child.kill()


def test_run_goes_on_after_a_hang(hasty: None) -> None:
    spawn = _script(
        "say(event='start', job=0); say(event='figures', job=0, figures={'n': 1}); say(event='start', job=1); time.sleep(600)",
        "say(event='start', job=0); say(event='figures', job=0, figures={'n': 3}); say(event='end')",
    )
    answers = run_jobs(_jobs(3), spawn, timeout=0.5)
    assert [answer.figures for answer in answers] == [{"n": 1}, {"failure": "the case did not end within 0.5 s, killed"}, {"n": 3}]


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


def test_an_armed_child_that_does_not_end_is_a_deadlock(hasty: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "HANG_S", 0.3)
    spawn = _script("say(event='start', job=0); say(event='armed', job=0); time.sleep(600)")
    (answer,) = run_jobs(_jobs(1, Experiment.DEADLOCK), spawn, timeout=20)
    assert answer.figures == {"ended": False, "waited_s": 0.3}


def test_one_that_hangs_by_design_has_a_child_of_its_own() -> None:
    cases: list[Case] = [case for template in templates.load().values() for case in template.cases]
    for batch in runner.batches(cases):
        assert len({case.api for case in batch}) == 1
        assert len(batch) == 1 or all(case.experiment is not Experiment.DEADLOCK for case in batch)


# Where a child stands -----------------------------------------------------------------------------------------------------------

LISTEN = "import faulthandler, signal; faulthandler.enable(); faulthandler.register(signal.SIGUSR1)\n"
HANG = """
import threading
lock = threading.Lock()
def wait_for_lock():
    lock.acquire()
def tell(name, doing):
    say(event='phase', thread=f'0x{threading.get_ident():016x}', name=name, doing=doing)
def second():
    tell('thread 2', 'a launch')
    wait_for_lock()
say(event='start', job=0)
lock.acquire()
threading.Thread(target=second, daemon=True).start()
tell('host thread', "the program's call")
wait_for_lock()
"""


def _named(lines: str) -> int:
    """The row of ``wait_for_lock``'s wait in a child's code."""
    return next(row for row, line in enumerate((SAY + lines).splitlines(), start=1) if line == "    lock.acquire()")


def test_a_hung_child_says_where_its_threads_stand() -> None:
    code = LISTEN + HANG
    (answer,) = run_jobs(_jobs(1), _script(code), timeout=5)
    at = f"at <string>:{_named(code)} in wait_for_lock"
    assert answer.figures == {
        "failure": f"the case did not end within 5 s, killed; host thread: the program's call, {at}; thread 2: a launch, {at}"
    }


def test_a_child_that_hangs_with_the_gil_held_says_so_too() -> None:
    code = LISTEN + "import ctypes\nsay(event='start', job=0); say(event='armed', job=0)\nctypes.PyDLL(None).sleep(600)\n"
    original = runner.HANG_S
    try:
        runner.HANG_S = 3.0
        (answer,) = run_jobs(_jobs(1, Experiment.DEADLOCK), _script(code), timeout=20)
    finally:
        runner.HANG_S = original
    row = len((SAY + code).splitlines())
    assert answer.figures == {"ended": False, "waited_s": 3.0, "stood": [f"host thread, at <string>:{row} in <module>"]}
    assert deadlock(answer.figures).reason == f"did not end within 3.0 s, killed; host thread, at <string>:{row} in <module>"


def test_a_child_that_does_not_listen_is_killed_all_the_same(hasty: None) -> None:
    code = "import signal; signal.signal(signal.SIGUSR1, signal.SIG_IGN)\nsay(event='start', job=0); time.sleep(600)"
    (answer,) = run_jobs(_jobs(1), _script(code), timeout=0.5)
    assert answer.figures == {"failure": "the case did not end within 0.5 s, killed"}


def test_phases_move_no_deadline() -> None:
    code = "say(event='start', job=0)\nwhile True:\n  say(event='phase', thread='0x1', name='host thread', doing='spins'); time.sleep(0.05)"
    started = time.perf_counter()
    (answer,) = run_jobs(_jobs(1), _script(LISTEN + code), timeout=0.5)
    assert time.perf_counter() - started < 15
    assert answer.figures["failure"].startswith("the case did not end within 0.5 s, killed; host thread: spins")


def test_a_crash_says_where_and_with_which_last_words() -> None:
    code = LISTEN + (
        "import ctypes, threading\n"
        "say(event='start', job=0)\n"
        "say(event='phase', thread=f'0x{threading.get_ident():016x}', name='host thread', doing='the call')\n"
        "sys.stderr.write('first\\nsecond\\n'); sys.stderr.flush()\n"
        "def crash():\n"
        "    ctypes.string_at(0)\n"
        "crash()\n"
    )
    spawn = _script(code, "say(event='start', job=0); say(event='figures', job=0, figures={'n': 2})")
    first, second = run_jobs(_jobs(2), spawn, timeout=20)
    failure = first.figures["failure"]
    assert failure.startswith("the child died of SIGSEGV: first / second; host thread: the call, at ")
    assert second.figures == {"n": 2}


def test_the_real_child_listens() -> None:
    """``report_stacks`` is what the children of this package call."""
    code = "from streamlint.verify.child import Answers, report_stacks\nreport_stacks(); answers = Answers()\n"
    code += "answers.say('start', job=0); answers.phase('0x1', 'host thread', 'x'); time.sleep(600)"
    child = _child(code)
    try:
        assert child.read(20) == {"event": "start", "job": 0}
        assert child.read(20) == {"event": "phase", "thread": "0x1", "name": "host thread", "doing": "x"}
        (stack,) = child.stacks()
        assert stack.frames[-1] == ("<string>", str(len((SAY + code).splitlines())), "<module>")
    finally:
        child.kill()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="no /dev/shm")
def test_nothing_is_left_in_shared_memory() -> None:
    code = (
        "import multiprocessing as mp\n"
        "context = mp.get_context('spawn'); queue = context.SimpleQueue()\n"
        "say(event='made', names=os.listdir('/dev/shm')); time.sleep(600)"
    )
    before = set(os.listdir("/dev/shm"))
    child = _child(code)
    message = child.read(20)
    assert message is not None
    made = {name for name in set(message["names"]) - before if name.startswith("sem.mp-")}
    assert made
    child.kill()
    assert not made & set(os.listdir("/dev/shm"))


@pytest.mark.parametrize(
    ("frames", "place"),
    [
        ((), ""),
        ((("/x/templates/snippets/sl004_a.py", "18", "flush"),), "at sl004_a.py:18 in flush"),
        (
            (("/x/threading.py", "320", "wait"), ("/x/templates/snippets/sl004_a.py", "18", "flush")),
            "at sl004_a.py:18 in flush (in wait of threading.py)",
        ),
        ((("/x/templates/sl010_b.py", "50", "<lambda>"), ("/x/experiments.py", "1", "deadlock")), "inside of the compiled program"),
        ((("/x/queue.py", "1", "get"),), "at queue.py:1 in get"),
    ],
)
def test_where_a_stack_stands(frames: tuple[tuple[str, str, str], ...], place: str) -> None:
    assert Stack("0x1", frames).place() == place
