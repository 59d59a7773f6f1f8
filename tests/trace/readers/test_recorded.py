"""Recordings of several threads, streams and a capture, read to the form of `trace.model`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Frame
from streamlint.trace.readers.recorded import read
from streamlint.trace.recording import form, layouts

API = struct.Struct("<IIQQIIII")
NAMES = {1: "cudaStreamBeginCapture", 2: "cudaMemcpyAsync", 3: "cudaStreamEndCapture", 4: "cudaStreamSynchronize"}


def called(number: int, start: int, correlation: int, thread: int = 7, status: int = 0) -> bytes:
    return API.pack(layouts.RUNTIME, number, start, start + 5, 9, thread, correlation, status)


def written(path: Path, rows: list[list[object]], records: list[bytes], links: list[tuple[int, int, int]], session: str = "a") -> Path:
    with path.open("wb") as file:
        form.begin(file)
        form.write_rows(file, [["run", {"process": 9, "main": 7, "start": 1, "session": session}], ["names", 2, NAMES], *rows])
        form.write_rows(file, [["size", kind, size] for kind, size in layouts.KEPT.items()])
        form.write(file, form.RECORDS, b"".join(records))
        form.write(file, form.LINKS, b"".join(form.LINK.pack(*link) for link in links))
        form.write_rows(file, [["a row of a later recorder", 1], ["gpu", "H100"], ["end", 100]])
    return path


def test_a_capture_marks_the_calls_of_its_thread(tmp_path: Path) -> None:
    calls = [called(1, 10, 1), called(2, 20, 2), called(2, 21, 3, thread=8), called(3, 30, 4), called(2, 40, 5, status=2)]
    trace = read(written(tmp_path / "run.slt", [], calls, []))
    assert [(one.name, one.thread, one.capturing, one.failed) for one in trace.calls] == [
        ("cudaStreamBeginCapture", 7, False, 0),
        ("cudaMemcpyAsync", 7, True, 0),
        ("cudaMemcpyAsync", 8, False, 0),
        ("cudaStreamEndCapture", 7, False, 0),
        ("cudaMemcpyAsync", 7, False, 2),
    ]
    assert (trace.gpu, trace.start, trace.end, trace.main_threads) == ("H100", 1, 100, {9: 7})


def test_waits_know_their_stream(tmp_path: Path) -> None:
    waits = [struct.pack("<IIQQIII4x", layouts.SYNCHRONIZATION, 3, 10, 15, 1, 1, stream) for stream in (13, layouts.NO_STREAM)]
    made = [struct.pack("<IIIIII", layouts.STREAM, 1, number, 0, flag, 0) for number, flag in ((7, 3), (13, 2), (14, 1))]
    trace = read(written(tmp_path / "run.slt", [], [called(4, 10, 1), *waits, *made], []))
    assert [one.stream for one in trace.calls] == [13]
    assert [(one.number, one.is_default, one.non_blocking) for one in trace.streams.values()] == [
        (7, True, False),
        (13, False, True),
        (14, False, False),
    ]


def test_a_thread_without_frames_is_told(tmp_path: Path) -> None:
    rows = [["frame", 0, "a.py", 12, "step", 10], ["stack", 1, [0]], ["thread", 8, "autograd"], ["meanwhile", 8]]
    trace = read(written(tmp_path / "run.slt", rows, [called(4, 10, 1, thread=8)], [(1, 1, 0)]))
    assert trace.frames(trace.calls[0]) == (Frame("a.py", 12, "step", 10),)
    assert trace.thread_names == {(9, 8): "autograd"}
    assert trace.notes == ["process 9, thread 8 ran none of your code: its calls show the lines that the main thread was at meanwhile"]


def test_threads_without_frames_are_told_once(tmp_path: Path) -> None:
    trace = read(written(tmp_path / "run.slt", [["meanwhile", 8], ["meanwhile", 10]], [called(4, 10, 1, thread=8)], []))
    assert trace.notes == ["2 threads ran none of your code: their calls show the lines that the main thread was at meanwhile"]


@pytest.mark.parametrize("session", ["a", ""])
def test_another_run_beside_it_is_left_out(tmp_path: Path, session: str) -> None:
    """However near in time it began. Recordings of version 1 have no id: each is read alone."""
    path = written(tmp_path / "run.slt", [], [called(4, 5, 1)], [], session)
    for name, note in (("run.slt.9", "run.slt.9"), ("run.slt.10", "run.slt.9 and 1 more")):
        written(tmp_path / name, [], [called(4, 5, 1)], [], "b" if session else "")
        trace = read(path)
        assert len(trace.calls) == 1
        assert trace.notes == [f"{note} beside run.slt: of another run, left out"]


def test_a_recording_without_calls_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "run.slt", [], [], [])
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(StreamlintError, match=r"holds no call of CUDA; .* the recording breaks off"):
        read(path)


def test_a_file_without_a_process(tmp_path: Path) -> None:
    with (tmp_path / "run.slt").open("wb") as file:
        form.begin(file)
    with pytest.raises(StreamlintError, match="holds no process"):
        read(tmp_path / "run.slt")
