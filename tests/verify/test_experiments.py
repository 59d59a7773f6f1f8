"""Gates and experiments on a made-up device: streams are threads, kernels are functions. The real one is at the end."""

from __future__ import annotations

import ctypes
import queue
import shutil
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from streamlint.verify import experiments, lab
from streamlint.verify.cases import Trial
from streamlint.verify.criteria import Experiment, Verdict, outcome
from streamlint.verify.experiments import EXPERIMENTS
from streamlint.verify.lab import Gate, GateGaveUpError, Lab, LabError, handle_of
from streamlint.verify.timeline import Timeline


class Stream:
    """A FIFO on a thread; ``ptr`` is its handle."""

    def __init__(self, ptr: int) -> None:
        self.ptr = ptr
        self.work: queue.Queue[Callable[[], None]] = queue.Queue()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        while True:
            kernel = self.work.get()
            kernel()
            self.work.task_done()


class FakeRuntime:
    def setDevice(self, number: int) -> None:
        pass


class FakeLab(Lab):
    def __init__(self) -> None:
        self.timeline = Timeline()
        self.runtime = FakeRuntime()
        self.streams = {0: Stream(0)}
        self._flags = (ctypes.c_int32 * 1024)()
        self._token = 0
        self._keep = []
        self.dead = False

    def stream(self, *, blocking: bool = False) -> Any:
        number = len(self.streams)
        self.streams[number] = Stream(number)
        return self.streams[number]

    def synchronize(self) -> None:
        for stream in self.streams.values():
            stream.work.join()

    def wait_for(self, handle: int) -> None:
        self.streams[handle].work.join()

    def mark(self, stream: int) -> int:
        self._token += 1
        token = self._token
        self.streams[stream].work.put(lambda: self._set(4, token))
        return token

    def _launch_gate(self, stream: int, limit_s: float = 0.0) -> None:
        def spin() -> None:
            if self.dead:
                return
            self._set(2, 1)
            end = time.perf_counter() + (limit_s or lab.LIMIT_S)
            while not self._get(1) and time.perf_counter() < end:
                time.sleep(0.0002)
            if not self._get(1):
                self._set(3, 1)

        self.streams[stream].work.put(spin)


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeLab:
    monkeypatch.setattr(experiments, "GATES_MS", (10.0, 30.0, 60.0))
    monkeypatch.setattr(experiments, "ROUNDS", 1)
    monkeypatch.setattr(lab, "START_S", 0.5)
    return FakeLab()


def _shown(experiment: Experiment, fake: FakeLab, trial: Trial) -> bool | None:
    """What the experiment shows. On a busy machine a run may be too noisy to decide, and says so: then it is made again."""
    for _ in range(8):
        shown = outcome(experiment, EXPERIMENTS[experiment](fake, trial)).shown
        if shown is not None:
            return shown
    return None


def test_host_waits(fake: FakeLab) -> None:
    assert _shown(Experiment.HOST_WAITS, fake, Trial(lambda: fake.wait_for(0))) is True
    assert _shown(Experiment.HOST_WAITS, fake, Trial(lambda: None)) is False


def test_thread_held(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _shown(Experiment.THREAD_HELD, fake, Trial(lambda: fake.wait_for(0))) is False
    lock, launch = threading.Lock(), fake.mark

    def locked_wait() -> None:
        with lock:
            fake.wait_for(0)

    def locked_mark(stream: int) -> int:
        with lock:
            return launch(stream)

    monkeypatch.setattr(fake, "mark", locked_mark)
    assert _shown(Experiment.THREAD_HELD, fake, Trial(locked_wait)) is True


def _slow_to_wait(fake: FakeLab, seconds: float, lock: threading.Lock) -> Callable[[], None]:
    """A call that works by itself for a while (it touches fresh memory, say) before it waits under a lock."""

    def call() -> None:
        time.sleep(seconds)
        with lock:
            fake.wait_for(0)

    return call


def test_a_call_that_comes_late_to_its_wait_holds_all_the_same(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other thread launches when the first is where it waits, however long that takes: 64 MiB of fresh memory take some 30 ms."""
    monkeypatch.setattr(experiments, "HELD_ROUNDS", 2)
    lock, launch = threading.Lock(), fake.mark

    def locked_mark(stream: int) -> int:
        with lock:
            return launch(stream)

    monkeypatch.setattr(fake, "mark", locked_mark)
    figures = EXPERIMENTS[Experiment.THREAD_HELD](fake, Trial(_slow_to_wait(fake, 0.08, lock)))
    assert outcome(Experiment.THREAD_HELD, figures).shown is True
    assert figures["first_inside"] == 2


def test_gates_are_longer_than_the_calls_own_work(fake: FakeLab) -> None:
    slow = _slow_to_wait(fake, 0.08, threading.Lock())
    assert _shown(Experiment.HOST_WAITS, fake, Trial(slow)) is True
    assert _shown(Experiment.HOST_WAITS, fake, Trial(lambda: time.sleep(0.08))) is False


def test_a_race_that_comes_late_is_still_one(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "RACES", 2)
    numbers = {"written": 0, "next": 0}

    def reset(number: int) -> object:
        numbers["next"] = number
        return number

    def reads_late() -> object:
        fake.streams[0].work.put(lambda: numbers.update(written=numbers["next"]))
        time.sleep(0.05)
        return numbers["written"]

    assert EXPERIMENTS[Experiment.DATA_RACE](fake, Trial(reads_late, reset=reset))["wrong"] == 2


def test_a_call_without_end_yields_no_number(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiments, "_MOST_OWN_S", 0.01)
    with pytest.raises(LabError, match="too long to tell"):
        EXPERIMENTS[Experiment.HOST_WAITS](fake, Trial(lambda: time.sleep(0.02)))


def test_thread_held_reports_a_failing_thread(fake: FakeLab) -> None:
    calls = iter(range(100))

    def fails_later() -> None:
        if next(calls) > 3:
            raise ValueError("boom")

    assert EXPERIMENTS[Experiment.THREAD_HELD](fake, Trial(fails_later)) == {"failure": "ValueError: boom"}


def test_gil_held(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    """``ctypes.PyDLL`` keeps the GIL around a call, ``ctypes.CDLL`` does not."""
    monkeypatch.setattr(experiments, "HELD_ROUNDS", 2)
    monkeypatch.setattr(experiments, "LAPSE_S", 0.01)
    assert _shown(Experiment.GIL_HELD, fake, Trial(lambda: ctypes.PyDLL(None).usleep(100_000))) is True
    assert _shown(Experiment.GIL_HELD, fake, Trial(lambda: ctypes.CDLL(None).usleep(100_000))) is False
    assert _shown(Experiment.GIL_HELD, fake, Trial(lambda: None)) is None


def test_a_gate_may_be_meant_to_lapse(fake: FakeLab) -> None:
    with fake.gate(0, lapses_s=0.01) as gate:
        fake.wait_for(0)
        assert gate.gave_up


def test_streams_serialise(fake: FakeLab) -> None:
    a, b = fake.stream(), fake.stream()

    def barrier() -> None:
        passed = threading.Event()
        a.work.put(passed.set)
        b.work.put(lambda: (passed.wait(), None)[1])

    assert _shown(Experiment.STREAMS_SERIALISE, fake, Trial(barrier, gate=a.ptr, watch=b.ptr)) is True
    assert _shown(Experiment.STREAMS_SERIALISE, fake, Trial(lambda: None, gate=a.ptr, watch=b.ptr)) is False
    assert _shown(Experiment.STREAMS_SERIALISE, fake, Trial(lambda: fake.wait_for(a.ptr), gate=a.ptr, watch=b.ptr)) is None


def test_data_race(fake: FakeLab) -> None:
    value = [0]

    def reset(number: int) -> object:
        value[0] = -1
        return number

    def read(*, wait: bool) -> object:
        number = counter[0] = counter[0] + 1
        fake.streams[0].work.put(lambda: value.__setitem__(0, number - 2))  # two warm runs come first
        if wait:
            fake.wait_for(0)
        return value[0]

    counter = [0]
    assert _shown(Experiment.DATA_RACE, fake, Trial(lambda: read(wait=False), reset=reset)) is True
    counter[0] = 0
    assert _shown(Experiment.DATA_RACE, fake, Trial(lambda: read(wait=True), reset=reset)) is False


def test_deadlock_and_error(fake: FakeLab) -> None:
    assert _shown(Experiment.DEADLOCK, fake, Trial(lambda: None)) is False
    assert _shown(Experiment.ERROR, fake, Trial(lambda: 800, expected=800)) is True
    assert _shown(Experiment.ERROR, fake, Trial(lambda: 0, expected=800)) is False


def test_a_gate_that_gave_up_yields_no_number(fake: FakeLab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "LIMIT_S", 0.05)
    with pytest.raises(GateGaveUpError, match="gave up by itself"), fake.gate(0) as gate:  # noqa: PT012
        gate.open_after(200)
        fake.wait_for(0)


def test_a_gate_that_never_starts(fake: FakeLab) -> None:
    fake.dead = True
    with pytest.raises(LabError, match="did not start"), fake.gate(0):
        pass


def test_an_exception_opens_the_gate_at_once(fake: FakeLab) -> None:
    started = time.perf_counter()
    with pytest.raises(ValueError, match="boom"), fake.gate(0) as gate:  # noqa: PT012
        gate.open_after(10_000)
        raise ValueError("boom")
    assert time.perf_counter() - started < 2


def test_opening_counts_once(fake: FakeLab) -> None:
    with Gate(fake, 0) as gate:
        gate.open()
        first = gate.opened_at
        gate.open()
        assert gate.opened_at == first == gate.await_open()


class _Handle:
    def __init__(self, **attributes: Any) -> None:
        self.__dict__.update(attributes)


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (_Handle(cuda_stream=7), 7),
        (_Handle(ptr=8), 8),
        (_Handle(handle=ctypes.c_void_p(9)), 9),
        (_Handle(handle=ctypes.c_void_p(None)), 0),
        (_Handle(handle=10), 10),
    ],
)
def test_handle_of(stream: object, handle: int) -> None:
    assert handle_of(stream) == handle


@pytest.mark.gpu
def test_on_this_machine(tmp_path: Any) -> None:
    pytest.importorskip("cupy", reason="CuPy is not installed", exc_type=ImportError)
    if shutil.which("nvidia-smi") is None:
        pytest.skip("no NVIDIA driver here")
    from streamlint.verify import runner, templates
    from streamlint.verify.device import Device

    device = Device()
    probed = device.probe()
    if "reason" in probed:
        pytest.skip(f"no usable GPU: {probed['reason']}")
    case = templates.find("SL003", "cuda_free_in_loop", "cupy")
    (result,) = runner.run_batch([case], device.spawn, {}, 30.0)
    assert result.judgement.verdict is Verdict.CONFIRMED, result
