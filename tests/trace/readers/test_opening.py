"""Recognising a run by its content, and folders of runs."""

from __future__ import annotations

from pathlib import Path

import fake_kineto
import pytest
from fake_kineto import PROCESS, Event, span

from streamlint.support.errors import PathError, StreamlintError
from streamlint.trace.readers.opening import read


def rank(start: float, process: int = PROCESS) -> list[Event]:
    return [
        span("python_function", "train.py(1): main", start, 90, process=process),
        span("python_function", "<built-in method item of Tensor object at 0x1>", start + 5, 50, process=process),
        span("cuda_runtime", "cudaDeviceSynchronize", start + 10, 5, process=process),
    ]


def put(folder: Path, name: str, events: list[Event], base: int = 10**18) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(fake_kineto.document(events).replace("1700000000000000000", str(base)))
    return path


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_text("def main(x):\n    x.item()\n")
    return path


def test_the_name_of_a_file_does_not_matter(tmp_path: Path) -> None:
    path = put(tmp_path, "report.sqlite", rank(10))
    assert len(read(path, []).calls) == 1


def test_ranks_in_a_folder_are_one_run(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "run"
    put(folder, "b.1.pt.trace.json", rank(100, 2))
    put(folder, "a.0.pt.trace.json", rank(10, 1), base=10**18 + 50_000)
    (folder / "notes.txt").write_text("not of the run")
    trace = read(folder, [program])
    assert [(call.process, call.start - 10**18) for call in trace.calls] == [(1, 70_000), (2, 110_000)]
    assert [trace.frames(call)[0].line for call in trace.calls] == [2, 2]
    assert trace.main_threads == {1: PROCESS, 2: PROCESS}
    assert trace.notes == []


def test_one_process_number_on_two_machines_is_two_processes(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "run"
    put(folder, "a.json", rank(10, 1))
    put(folder, "b.json", rank(12, 1))
    put(folder, "c.json", rank(9000, 1))  # the first process again, later
    processes = [call.process for call in read(folder, [program]).calls]
    assert processes[0] == processes[2] == 1
    assert processes[1] > 1


def test_work_before_its_call_is_told(tmp_path: Path) -> None:
    for start, notes in ((9_500, 0), (8_000, 1)):
        call = span("cuda_runtime", "cudaLaunchKernel", 10_000, 5, correlation=1)
        work = span("kernel", "add", start, 5, process=0, thread=7, correlation=1, stream=7, device=0)
        trace = read(put(tmp_path, "run.json", [call, work]), [])
        told = "1 kernels or copies begin before the calls that started them: a clock jumped, so times and costs are wrong"
        assert trace.notes.count(told) == notes


def test_what_cannot_be_read_of_a_folder_is_told(tmp_path: Path, program: Path) -> None:
    folder = tmp_path / "run"
    put(folder, "a.json", rank(10))
    (folder / "b.json").write_text("{}")
    trace = read(folder, [program])
    assert trace.notes == [f"{folder / 'b.json'} is JSON, but no trace: it has no list 'traceEvents'"]


def refused(path: Path) -> str:
    with pytest.raises(StreamlintError) as error:
        read(path, [])
    return str(error.value)


def test_a_folder_without_a_run_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path} is a folder without a recorded run"
    (tmp_path / "a.json").write_text("")
    assert refused(tmp_path) == f"{tmp_path} is a folder without a recorded run: {tmp_path / 'a.json'} is empty"


def test_a_report_of_nsight_systems_is_to_be_exported(tmp_path: Path) -> None:
    path = tmp_path / "run.nsys-rep"
    path.write_bytes(b"\1\2\3")
    assert refused(path) == f"{path} is a report of Nsight Systems: export it with `nsys export --type sqlite -o run.sqlite run.nsys-rep`"


def test_a_database_without_its_header_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    path.write_bytes(b"\x93\x11 encrypted")
    assert refused(path) == f"{path} is no SQLite database: it is damaged or encrypted"


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PathError, match=r"run\.json does not exist$"):
        read(tmp_path / "run.json", [])
