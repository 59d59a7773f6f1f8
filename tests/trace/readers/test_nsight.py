"""Exports of Nsight Systems: the tables of newer and older schemas, and what is damaged or missing."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Call, Frame, Stream, Work
from streamlint.trace.readers.opening import read

PID, TID = 300, 301
THREAD = PID << 24 | TID | 7 << 48
PROCESS = PID << 24 | 7 << 48
STRINGS = ["cudaMemcpyAsync_v3020", "cudaLaunchKernel_v7000", "cudaStreamSynchronize_v3020", "add(float*)", "python", "main"]
Table = tuple[str, Sequence[Sequence[object]]]
RUNTIME = "start, end, eventClass, globalTid, correlationId, nameId, returnValue, callchainId"
WHOLE: dict[str, Table] = {
    "StringIds": ("id, value", list(enumerate(STRINGS, 1))),
    "CUPTI_ACTIVITY_KIND_RUNTIME": (
        RUNTIME,
        [
            (100, 150, 0, THREAD, 11, 1, 0, 5),
            (200, 210, 0, THREAD, 12, 2, 0, None),
            (300, 400, 0, THREAD, 13, 3, 2, None),
        ],
    ),
    "CUPTI_ACTIVITY_KIND_MEMCPY": (
        "start, end, deviceId, contextId, streamId, correlationId, globalPid, bytes, copyKind, srcKind, dstKind",
        [(110, 145, 0, 1, 13, 11, PROCESS, 4096, 1, 0, 2)],
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start, end, deviceId, streamId, correlationId, globalPid, demangledName, shortName",
        [(220, 390, 0, 14, 12, PROCESS, 4, 4)],
    ),
    "CUPTI_ACTIVITY_KIND_MEMSET": (
        "start, end, deviceId, streamId, correlationId, globalPid, bytes, memKind",
        [(395, 396, 0, 7, 0, PROCESS, 8, 2)],
    ),
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": ("start, end, streamId, correlationId, globalPid, syncType", [(300, 400, 14, 13, PROCESS, 2)]),
    "ENUM_CUDA_MEM_KIND": ("id, name", [(0, "CUDA_MEMOPR_MEMORY_KIND_PAGEABLE"), (2, "CUDA_MEMOPR_MEMORY_KIND_DEVICE")]),
    "TARGET_INFO_GPU": ("id, name", [(0, "NVIDIA H100 80GB HBM3")]),
    "TARGET_INFO_CUDA_STREAM": ("streamId, processId, contextId, priority, flag", [(13, PID, 1, 0, 2), (14, PID, 1, 0, 1)]),
    "TARGET_INFO_CUDA_CONTEXT_INFO": ("nullStreamId, processId, deviceId, contextId", [(7, PID, 0, 1)]),
    "ThreadNames": ("nameId, globalTid", [(5, THREAD)]),
}


def export(path: Path, tables: Mapping[str, Table]) -> Path:
    with sqlite3.connect(path) as database:
        for name, (columns, rows) in tables.items():
            quoted = ", ".join(f'"{column}"' for column in columns.split(", "))
            database.execute(f"CREATE TABLE {name} ({quoted})")
            database.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns.split(', ')))})", rows)
    database.close()
    return path


def test_an_export_is_read(tmp_path: Path) -> None:
    trace = read(export(tmp_path / "run", WHOLE), [tmp_path])
    assert trace.calls == [
        Call("cudaMemcpyAsync", PID, TID, 100, 150, 11, 13, 4096, "pageable", "device"),
        Call("cudaLaunchKernel", PID, TID, 200, 210, 12, 14),
        Call("cudaStreamSynchronize", PID, TID, 300, 400, 13, 14, failed=2),
    ]
    assert trace.works == [
        Work("copy", "Memcpy HtoD", PID, 0, 13, 110, 145, 11, 4096, "pageable", "device"),
        Work("kernel", "add(float*)", PID, 0, 14, 220, 390, 12),
        Work("fill", "Memset", PID, 0, 7, 395, 396, 0, 8, "", "device"),
    ]
    assert [trace.streams[PID, at] for at in (7, 13, 14)] == [
        *(Stream(PID, 7, True, False), Stream(PID, 13, False, True), Stream(PID, 14, False, False)),
    ]
    assert (trace.origin, trace.gpu, trace.main_threads) == ("nsight", "NVIDIA H100 80GB HBM3", {PID: TID})
    assert (trace.thread_names, trace.start, trace.end) == ({(PID, TID): "python"}, 100, 400)
    assert trace.notes == ["the export has no callers, so costs have no lines: record with --python-backtrace=cuda"]


def test_an_older_schema_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Without the process of work, memory kinds by their numbers alone, and calls of the driver in a table of their own."""
    tables = {name: WHOLE[name] for name in ("StringIds",)}
    tables["CUPTI_ACTIVITY_KIND_DRIVER"] = ("start, end, globalTid, correlationId, nameId", [(100, 150, THREAD, 11, 1)])
    columns = "start, end, deviceId, contextId, streamId, correlationId, bytes, copyKind, srcKind, dstKind"
    tables["CUPTI_ACTIVITY_KIND_MEMCPY"] = (columns, [(110, 145, 0, 1, 13, 11, 4096, 2, 2, 1), (160, 155, 0, 1, 13, 12, 1, 2, 2, 9)])
    path = export(tmp_path / "run", tables)
    trace = read(path, [])
    assert trace.calls == [Call("cudaMemcpyAsync", PID, TID, 100, 150, 11, 13, 4096, "device", "pinned")]
    assert [(work.process, work.end, work.destination) for work in trace.works] == [(PID, 145, "pinned"), (PID, 160, "")]
    names = "CUPTI_ACTIVITY_KIND_RUNTIME and no CUPTI_ACTIVITY_KIND_KERNEL"
    assert trace.notes[1:] == [
        f"{path} has no {names}: nothing is known of what they would say",
        "1 events end before they begin, and count as instants: a clock jumped",
    ]


def test_callers_become_stacks(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("def main(x):\n    x.item()\n")
    texts = ["libcudart", "/usr/lib/libcudart.so", "run", "/home/me/app", str(program), "main", "train.py:2", "helper"]
    strings = [*WHOLE["StringIds"][1], *enumerate(texts, 20)]
    chain = [(5, 20, 21, 0), (5, 22, 23, 1), (5, 25, 24, 2), (5, 27, 26, 3), (6, 22, 23, 0)]
    tables = {**WHOLE, "StringIds": ("id, value", strings), "CUDA_CALLCHAINS": ("id, symbol, module, stackDepth", chain)}
    trace = read(export(tmp_path / "run", tables), [tmp_path])
    assert trace.stacks == [
        (),
        (Frame("/home/me/app", 0, "run"), Frame(str(program), 0, "main"), Frame(str(program), 2, "helper")),
    ]
    assert [call.stack for call in trace.calls] == [1, 0, 0]


def test_a_database_of_something_else_is_refused(tmp_path: Path) -> None:
    path = export(tmp_path / "run", {"People": ("id", [(1,)])})
    with pytest.raises(StreamlintError, match=r"run has no tables of CUDA: record with nsys profile --trace=cuda, and export with"):
        read(path, [])


def test_empty_tables_are_refused(tmp_path: Path) -> None:
    path = export(tmp_path / "run", {"CUPTI_ACTIVITY_KIND_RUNTIME": (RUNTIME, [])})
    with pytest.raises(StreamlintError, match=r"run has no CUDA events: record with"):
        read(path, [])


def test_a_damaged_database_is_refused(tmp_path: Path) -> None:
    path = export(tmp_path / "run", WHOLE)
    data = path.read_bytes()
    path.write_bytes(data[:100] + b"\xff" * 900 + data[1000:])
    with pytest.raises(StreamlintError, match=r"run cannot be read: .*; it is damaged or encrypted$"):
        read(path, [])


def test_a_cut_database_is_read_up_to_there(tmp_path: Path) -> None:
    rows = [(10 * at, 10 * at + 5, 0, THREAD, at, 1, 0, None) for at in range(2000)]
    path = export(tmp_path / "run", {**WHOLE, "CUPTI_ACTIVITY_KIND_RUNTIME": (RUNTIME, rows)})
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * (size // 4))
    trace = read(path, [])
    assert 0 < len(trace.calls) < 2000
    assert any(note.startswith(f"CUPTI_ACTIVITY_KIND_RUNTIME of {path} was read in part: ") for note in trace.notes)
