"""A recording of a program that a stand-in for CUPTI plays, written and read back."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest
from fake_cupti import FakeLibrary, played

from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Call, Trace
from streamlint.trace.readers.recorded import read
from streamlint.trace.recording import cupti, form, output, parts, sessions
from streamlint.trace.recording import recorder as recorders
from streamlint.trace.recording.cupti import Cupti
from streamlint.trace.recording.recorder import Recorder
from streamlint.trace.recording.sessions import Session
from streamlint.trace.recording.taps import PythonTaps


def started(path: Path, library: FakeLibrary, session: Session | None = None) -> Recorder:
    recorder = Recorder(str(path), Cupti(library), session=session)
    recorder.start()
    return recorder


def record_program(path: Path) -> None:
    library = FakeLibrary()
    recorder = started(path, library)
    played(library)
    recorder.stop()


def refused() -> None:
    raise LookupError("no compiler")


@pytest.fixture(params=["compiled", "python"])
def callbacks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both kinds of callbacks. Where there is no C compiler, that in Python is what runs, and is tested twice."""
    if request.param == "python" or not shutil.which("cc"):
        monkeypatch.setattr(recorders, "compiled", refused)
        return "python"
    return "compiled"


def test_a_run_comes_back(tmp_path: Path, callbacks: str) -> None:
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    played(library)
    recorder.stop()
    trace = read(path)
    assert library.ended
    assert [(one.name, one.start, one.end, one.stream, one.bytes, one.source, one.destination) for one in trace.calls] == [
        ("cudaMalloc", 10, 20, None, 4096 if callbacks == "compiled" else 0, "", ""),
        ("cudaMemcpy", 30, 40, 7, 4096, "pageable", "device"),
        ("cudaLaunchKernel", 50, 55, 7, 0, "", ""),
    ]
    assert [(one.kind, one.name, one.start, one.end, one.correlation) for one in trace.works] == [
        ("copy", "", 33, 38, 2),  # the runtime's call stands for the driver's below it
        ("kernel", "add_kernel", 60, 70, 4),
    ]
    assert trace.main_threads == {os.getpid(): os.getpid()}
    assert [note for note in trace.notes if "compiler" not in note] == []
    assert isinstance(recorder.taps, PythonTaps) == (callbacks == "python")


def asks_driver(library: FakeLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the call that is made for CUPTI to leave be one of the library."""

    def asked(_version: object) -> None:
        with library.call(1, 2, 9, 90, 95):
            pass

    monkeypatch.setattr(cupti, "load", lambda _name: types.SimpleNamespace(cuDriverGetVersion=asked))
    monkeypatch.setattr(recorders, "gpu_name", lambda: "")


def test_cupti_leaves_at_the_end_of_a_call(tmp_path: Path, callbacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process in which it stays launches slowly from then on. The call that is made for it is none of the program's."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    asks_driver(library, monkeypatch)
    recorder = started(path, library)
    played(library)
    recorder.stop(leaves=True)
    assert (library.left, library.ended) == ((1, False) if callbacks == "compiled" else (0, True))
    assert [one.name for one in read(path).calls] == ["cudaMalloc", "cudaMemcpy", "cudaLaunchKernel"]


@pytest.mark.parametrize(("leaves", "version"), [(False, 28), (True, 23)])
def test_cupti_stays(tmp_path: Path, callbacks: str, monkeypatch: pytest.MonkeyPatch, leaves: bool, version: int) -> None:
    """It stays in a program that ends, and in one with a version that must not leave."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    monkeypatch.setattr(cupti, "load", lambda _name: types.SimpleNamespace(cuDriverGetVersion=lambda _version: None))
    monkeypatch.setattr(recorders, "gpu_name", lambda: "")
    recorder = started(path, library)
    recorder._cupti.version = version
    played(library)
    recorder.stop(leaves=leaves)
    assert (library.left, library.ended) == (0, True)


def lines(trace: Trace, call: Call) -> list[tuple[str, str]]:
    """The function and the text of the line of each frame that stands in this file."""
    rows = Path(__file__).read_text().split("\n")
    return [(one.function, rows[one.line - 1].strip()) for one in trace.frames(call) if one.file == __file__]


def test_a_recording_in_parts(tmp_path: Path, callbacks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CUPTI leaves between them. Numbers of calls begin anew, and what passed in between is cut out of the run."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    asks_driver(library, monkeypatch)
    library.time = 1
    recorder = Recorder(str(path), Cupti(library), share=0.5)
    monkeypatch.setattr(parts, "PART", 1e9)  # this test says when
    recorder.start()
    played(library)
    library.time = 100
    recorder._pause()
    assert library.left == (callbacks == "compiled")
    with library.call(2, 20, 1, 200, 210):
        pass
    library.time = 1100
    recorder._resume()
    with library.call(2, 20, 1, 1110, 1120, second=8192), library.call(2, 211, 2, 1111, 1112):
        pass
    library.records(library.launched(1115, 1119, 2))
    library.time = 1150
    recorder.stop()
    trace = read(path)
    assert [(one.name, one.start, one.end) for one in trace.calls] == [
        ("cudaMalloc", 10, 20),
        ("cudaMemcpy", 30, 40),
        ("cudaLaunchKernel", 50, 55),
        ("cudaMalloc", 110, 120),
    ]
    assert [(one.name, one.start, one.end, one.correlation) for one in trace.works][1:] == [
        ("add_kernel", 60, 70, 4),
        ("add_kernel", 115, 119, 1),
    ]
    assert (trace.end, trace.left_out) == (150, 1000)
    assert any("in 2 parts, 13 % of the time" in note for note in trace.notes)
    assert any("CUPTI could not leave" in note for note in trace.notes) == (callbacks == "python")


def test_parts_take_their_share() -> None:
    one = parts.Parts(0.25)
    assert one.until == float("inf")
    one.begin()
    assert 0 < one.until - time.monotonic() <= parts.PART
    one.is_away = True
    one.begin()
    assert 2 * parts.PART < one.until - time.monotonic() <= 3 * parts.PART
    assert not one.is_over()
    assert not parts.Parts().is_over()


def test_calls_within_others_and_halves_of_calls(tmp_path: Path, callbacks: str) -> None:
    """The driver's calls below the runtime's have its number on CUDA 13; a call may have begun before the recording did."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    data = (ctypes.c_uint32 * 18)(1)
    if callbacks == "compiled":
        library._called(None, 2, 131, data)  # it ends
    with library.call(2, 31, 5, 30, 40), library.call(1, 276, 5, 32, 39):
        pass
    library.records(library.copied(33, 38, 5, 4096, (1, 3)))
    recorder.stop()
    trace = read(path)
    assert [(one.name, one.start, one.end, one.bytes) for one in trace.calls] == [("cudaMemcpy", 30, 40, 4096)]
    assert [links for kind, links in form.Blocks(path) if kind == form.LINKS and callbacks == "compiled"][1:] == []


def waits(library: FakeLibrary, number: int) -> None:
    with library.call(2, 131, number, 10 * number, 10 * number + 5):
        pass


def test_lines_are_exact_in_every_thread(tmp_path: Path, callbacks: str) -> None:
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    threads: list[int] = []

    def work() -> None:
        threads.append(threading.get_native_id())
        [waits(library, number) for number in (2,)]

    waits(
        library,
        1,  # the call begins on the line above
    )
    worker = threading.Thread(target=work, name="worker")
    worker.start()
    worker.join()
    recorder.stop()
    trace = read(path)
    first, second = trace.calls
    assert lines(trace, first)[1] == ("test_lines_are_exact_in_every_thread", "waits(")
    assert lines(trace, second)[-1] == (
        "test_lines_are_exact_in_every_thread.<locals>.work",
        "[waits(library, number) for number in (2,)]",
    )
    assert trace.main_threads[os.getpid()] == first.thread != second.thread


def test_a_crash_loses_what_was_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorders, "FLUSH", 0.01)
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    played(library)
    copy = tmp_path / "copy.slt"
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        time.sleep(0.01)
        copy.write_bytes(path.read_bytes())
        with contextlib.suppress(StreamlintError):  # no call is written yet
            if copy.stat().st_size > 20 and len((trace := read(copy)).calls) == 3:
                break
    recorder.stop()
    assert [note.partition(": ")[2] for note in trace.notes] == [
        f"the recording breaks off; up to the last second of process {os.getpid()} is missing"
    ]


def test_a_forked_child_leaves_the_file_alone(tmp_path: Path) -> None:
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    child = os.fork()
    if not child:
        recorder.stop()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    played(library)
    recorder.stop()
    assert len(read(path).calls) == 3


def test_other_processes_stand_beside(tmp_path: Path) -> None:
    path = tmp_path / "run.slt"
    session = Session("a", is_shared=True)
    for name in ("run.slt", "run.slt.77"):
        library = FakeLibrary()
        recorder = started(tmp_path / name, library, session)
        played(library)
        recorder.stop()
    (tmp_path / "run.slt.78").write_bytes(b"?")
    (tmp_path / "run.slt.txt").write_bytes(b"?")
    trace = read(path)
    assert len(trace.calls) == 6
    assert trace.notes == [f"{tmp_path}/run.slt.78: not a recording of streamlint"]


@pytest.mark.parametrize(
    ("status", "message"),
    [(39, "another profiler is subscribed to CUPTI"), (35, "ERR_NVGPUCTRPERM"), (999, "cuptiSubscribe returned 999")],
)
def test_a_refusal_says_why(tmp_path: Path, status: int, message: str) -> None:
    with pytest.raises(StreamlintError, match=message):
        started(tmp_path / "run.slt", FakeLibrary(refuses=status))
    assert not (tmp_path / "run.slt").exists()


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    library = FakeLibrary()
    with pytest.raises(StreamlintError, match="No such file or directory"):
        started(tmp_path / "none" / "run.slt", library)
    assert library.ended


class Refusing(FakeLibrary):
    """CUPTI that can be subscribed to, and makes no records."""

    def cuptiActivityEnable(self, _kind: int) -> int:
        return 35


@pytest.mark.parametrize("content", [b"import torch\n", form.MAGIC + b"\x02\x00"])
def test_what_a_file_held_stays_where_nothing_is_recorded(tmp_path: Path, content: bytes) -> None:
    path, library = tmp_path / "model.py", Refusing()
    path.write_bytes(content)
    with pytest.raises(StreamlintError, match="no recording" if b"import" in content else "ERR_NVGPUCTRPERM"):
        started(path, library)
    assert path.read_bytes() == content
    assert library.ended


def test_no_empty_file_is_left(tmp_path: Path) -> None:
    with pytest.raises(StreamlintError, match="ERR_NVGPUCTRPERM"):
        started(tmp_path / "run.slt", Refusing())
    assert list(tmp_path.iterdir()) == []


def test_cupti_is_released_after_the_disk_is_full(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    library = FakeLibrary()
    recorder = started(tmp_path / "run.slt", library)
    assert recorder._file is not None
    os.dup2(os.open("/dev/full", os.O_WRONLY), recorder._file.fileno())
    played(library)
    recorder.stop()
    assert library.ended
    assert "No space left on device; the program goes on, the recording ends here" in capsys.readouterr().err


def test_processes_of_a_run_write_files_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that begins while another records, and one that begins when that has ended; another run would write over it."""
    path, mine = tmp_path / "run.slt", f"run.slt.{os.getpid()}"
    session = Session("a", is_shared=True)
    first = Recorder(str(path), Cupti(FakeLibrary()), session=session)
    first.process = 77
    first.start()
    second = started(path, FakeLibrary(), session)
    monkeypatch.setattr(output, "WAIT", 0.1)
    for other in (Session("b"), Session("b", is_shared=True)):
        with pytest.raises(StreamlintError, match="another run is being recorded into it; choose another file"):
            started(path, FakeLibrary(), other)
    second.stop()
    first.process = os.getpid()
    first.stop()
    started(path, FakeLibrary(), session).stop()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["run.slt", mine]
    assert [form.head(tmp_path / name)["process"] for name in ("run.slt", mine)] == [77, os.getpid()]
    started(path, FakeLibrary(), Session("b")).stop()
    assert form.head(path)["session"] == "b"


def test_ranks_of_a_launcher_share_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(sessions.VARIABLE, raising=False)
    assert sessions.own() != sessions.own()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert sessions.own() == sessions.own()
    assert sessions.own().is_shared
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    restarted = sessions.own()
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "0")
    assert restarted != sessions.own()


def test_a_rank_is_named_once_it_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RANK", raising=False)
    for name, distributed in (("early", types.ModuleType("torch.distributed")), ("known", Group)):
        monkeypatch.setitem(sys.modules, "torch.distributed", distributed)  # type: ignore[arg-type]
        record_program(tmp_path / name)
        assert read(tmp_path / name).ranks == ({os.getpid(): 3} if name == "known" else {})


class Group:
    """What `torch.distributed` says of a group that has begun."""

    @staticmethod
    def is_initialized() -> bool:
        return True

    @staticmethod
    def get_rank() -> int:
        return 3


def test_arguments_of_other_calls_than_allocations_are_not_read(tmp_path: Path) -> None:
    """`cudaFree` has one argument: what stands behind it is not its own."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    for number, correlation in ((20, 1), (31, 2)):
        with library.call(2, number, correlation, 10, 20, second=4096):
            pass
    recorder.stop()
    links = [link for kind, data in form.Blocks(path) if kind == form.LINKS for link in form.LINK.iter_unpack(data)]
    assert {number: word for number, _, word in links} in ({1: 4096, 2: 0}, {2: 0})


def test_a_wait_names_its_stream(tmp_path: Path) -> None:
    """As records of work number it. CUPTI's own records of waits, which make all launches slower, are left to the callbacks in Python."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    library.streams = {7: 3, 13: 2}
    recorder = started(path, library)
    for correlation, stream in ((1, 0x10D), (2, 0), (3, 0xBAD)):
        with library.call(2, 131, correlation, 10 * correlation, 10 * correlation + 5, first=stream):
            pass
    recorder.stop()
    trace = read(path)
    compiled = not isinstance(recorder.taps, PythonTaps)
    assert [one.stream for one in trace.calls] == ([13, 7, None] if compiled else [None] * 3)
    assert (38 in library.enabled_once) != compiled
    assert [(one.number, one.is_default, one.non_blocking) for one in trace.streams.values()] == [(7, True, False), (13, False, True)]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        (
            "echo 'no pthread.h' >&2; exit 1",
            "/cc could not compile the recorder's functions: no pthread.h",
        ),
        ('while [ "$1" != -o ]; do shift; done; echo text > "$2"', "the recorder's compiled functions could not be loaded: "),
        ("", "/cc could not be run: "),
    ],
)
def test_the_note_says_why_callbacks_are_not_compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str) -> None:
    compiler = tmp_path / "cc"
    if script:
        compiler.write_text(f"#!/bin/sh\n{script}\n")
        compiler.chmod(0o700)
    monkeypatch.setenv("CC", str(compiler))
    record_program(tmp_path / "run.slt")
    (note,) = read(tmp_path / "run.slt").notes
    assert note.startswith("calls that allocate or free memory have no lines: ")
    assert reason in note


def test_the_note_says_that_there_is_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    record_program(tmp_path / "run.slt")
    assert read(tmp_path / "run.slt").notes == ["calls that allocate or free memory have no lines: there is no C compiler (cc, gcc, clang)"]


THREAD = """
#include <pthread.h>
static void (*called)(void *, int, unsigned, const char *);
static void *run(void *data)
{
    called(0, 2, 131, data);
    *(int *)data = 1; /* it ends */
    called(0, 2, 131, data);
    return 0;
}
void in_thread(void *function, void *data)
{
    pthread_t thread;
    called = (void (*)(void *, int, unsigned, const char *))function;
    if (!pthread_create(&thread, 0, run, data))
        pthread_join(thread, 0);
}
"""


@pytest.mark.parametrize("depth", [1, 90])  # 90 frames lie on several pages of memory
def test_a_thread_without_python_shows_the_main_threads_lines(tmp_path: Path, depth: int) -> None:
    """As autograd's does. Python's callbacks run none such."""
    library, path = FakeLibrary(), tmp_path / "run.slt"
    recorder = started(path, library)
    compiler = shutil.which("cc")
    if isinstance(recorder.taps, PythonTaps) or compiler is None:
        recorder.stop()
        assert sys.version_info < (3, 11) or compiler is None
        return
    (tmp_path / "thread.c").write_text(THREAD)
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "-o", "thread.so", "thread.c"], cwd=tmp_path, check=True)
    in_thread = ctypes.CDLL(str(tmp_path / "thread.so")).in_thread
    data = (ctypes.c_uint32 * 18)()
    data[16] = 1

    def down(left: int) -> None:
        down(left - 1) if left else in_thread(recorder.taps.called, data)

    down(depth)
    recorder.stop()
    trace = read(path)
    assert [function.rpartition(".")[2] for function, _ in lines(trace, trace.calls[0])] == [
        *["down"] * (depth + 1),
        "test_a_thread_without_python_shows_the_main_threads_lines",
    ]
    assert [note.partition(" ran ")[2] for note in trace.notes] == [
        "none of your code: its calls show the lines that the main thread was at meanwhile"
    ]
