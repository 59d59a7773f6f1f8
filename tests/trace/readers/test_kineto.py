"""Traces of PyTorch's profiler: forms, joins, and input that is damaged or none."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import fake_kineto
import pytest
from fake_kineto import PROCESS, Event, span
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Call, Stream, Trace, Work
from streamlint.trace.readers import json_stream
from streamlint.trace.readers.opening import read

NO_STACKS = (
    "the trace has no Python stacks, so costs have no lines: "
    "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True)"
)


def device(category: str, name: str, start: float, length: float, **arguments: object) -> Event:
    return span(category, name, start, length, process=0, thread=7, device=0, stream=7, **arguments)


def write(folder: Path, events: list[Event], name: str = "run.json", **header: object) -> Path:
    path = folder / name
    path.write_text(fake_kineto.document(events, **header))
    return path


COPY = [
    span("cpu_op", "aten::to", 1, 90),
    span("cpu_op", "aten::copy_", 2, 80),
    span("cuda_runtime", "cudaMemcpyAsync", 10.25, 5.125, correlation=3, cbid=41),
    device("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 12, 30.5, correlation=3, bytes=4096),
    span("cuda_driver", "cuLaunchKernel", 50, 2, correlation=4),
    device("kernel", "void add<float>(float*)", 60, 7.001, correlation=4),
    span("cuda_runtime", "cudaMemsetAsync", 55, 2, correlation=5),
    device("gpu_memset", "Memset (Device)", 70, 1, correlation=5, bytes=8),
    span("cuda_runtime", "cudaStreamSynchronize", 60, 20, correlation=6),
    device("cuda_sync", "Stream Sync", 61, 19, cuda_sync_kind="Stream Sync", correlation=6),
]


def without_base(trace: Trace) -> Trace:
    """With times as they stand in the file."""
    base = 1_700_000_000_000_000_000
    for one in (*trace.calls, *trace.works):
        one.start, one.end = one.start - base, one.end - base
    return trace


def test_calls_and_work_are_joined(tmp_path: Path) -> None:
    trace = without_base(read(write(tmp_path, COPY), [tmp_path]))
    made = {"process": PROCESS, "thread": PROCESS, "operator": "aten::to"}
    assert trace.calls == [
        Call(
            "cudaMemcpyAsync", start=10_250, end=15_375, correlation=3, stream=7, bytes=4096, source="pinned", destination="device", **made
        ),
        Call("cuLaunchKernel", start=50_000, end=52_000, correlation=4, stream=7, **made),
        Call("cudaMemsetAsync", start=55_000, end=57_000, correlation=5, stream=7, bytes=8, destination="device", **made),
        Call("cudaStreamSynchronize", start=60_000, end=80_000, correlation=6, stream=7, **made),
    ]
    assert trace.works == [
        Work("copy", "Memcpy HtoD (Pinned -> Device)", PROCESS, 0, 7, 12_000, 42_500, 3, 4096, "pinned", "device"),
        Work("kernel", "void add<float>(float*)", PROCESS, 0, 7, 60_000, 67_001, 4),
        Work("fill", "Memset (Device)", PROCESS, 0, 7, 70_000, 71_000, 5, 8, "", "device"),
    ]
    assert trace.streams == {(PROCESS, 7): Stream(PROCESS, 7, is_default=True)}
    assert (trace.origin, trace.gpu, trace.main_threads, trace.notes) == ("kineto", "NVIDIA H100", {PROCESS: PROCESS}, [NO_STACKS])


def test_times_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    event = '{"ph": "X", "cat": "cuda_runtime", "name": "cudaFree", "pid": 1, "tid": 1, "ts": 1712195495505543.217, "dur": 41.768}'
    path.write_text(f'{{"traceEvents": [{event}]}}')
    (call,) = read(path, []).calls
    assert (call.start, call.end) == (1712195495505543217, 1712195495505584985)


def test_packed_listed_and_reordered_forms_are_the_same(tmp_path: Path) -> None:
    text = fake_kineto.document(COPY)
    whole = json.loads(text)
    forms = {
        "plain.json": text.encode(),
        "mark.json": b"\xef\xbb\xbf" + json.dumps(whole, indent=1).encode(),
        "last.json": json.dumps(
            {**{key: whole[key] for key in whole if key != "traceEvents"}, "traceEvents": whole["traceEvents"]}
        ).encode(),
        "first.json": json.dumps({"traceEvents": whole["traceEvents"], **whole}).encode(),
        "packed": gzip.compress(text.encode()),
        "two": gzip.compress(text.encode()[:900]) + gzip.compress(text.encode()[900:]),
    }
    traces = []
    for name, data in forms.items():
        (tmp_path / name).write_bytes(data)
        traces.append(read(tmp_path / name, [tmp_path]))
    assert all(trace == traces[0] for trace in traces)
    (tmp_path / "list.json").write_text(json.dumps(COPY))
    listed = read(tmp_path / "list.json", [tmp_path])
    assert [call.name for call in listed.calls] == [call.name for call in traces[0].calls]


def test_categories_of_old_traces_are_known(tmp_path: Path) -> None:
    old = {
        "cuda_runtime": "Runtime",
        "gpu_memcpy": "Memcpy",
        "gpu_memset": "Memset",
        "kernel": "Kernel",
        "cpu_op": "Operator",
        "cuda_driver": "Runtime",
    }
    events = [{**event, "cat": old.get(str(event["cat"]), event["cat"])} for event in COPY]
    assert read(write(tmp_path, events, "old.json"), []) == read(write(tmp_path, COPY), [])


def test_only_the_outermost_call_counts(tmp_path: Path) -> None:
    events = [
        span("cuda_driver", "cuMemcpyDtoHAsync_v2", 11, 5, correlation=2),
        span("cuda_runtime", "cudaMemcpyAsync_ptsz_v7000", 10, 9, correlation=1),
        device("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", 12, 1, correlation=2, bytes=3),
    ]
    trace = read(write(tmp_path, events), [])
    assert [(call.name, call.bytes, call.source, call.destination) for call in trace.calls] == [
        ("cudaMemcpyAsync", 3, "device", "pageable")
    ]
    assert trace.works[0].correlation == 1


def test_calls_in_a_capture_are_marked(tmp_path: Path) -> None:
    names = ["cudaMalloc", "cudaStreamBeginCapture", "cudaLaunchKernel", "cudaStreamEndCapture", "cudaGraphLaunch"]
    trace = read(write(tmp_path, [span("cuda_runtime", name, 10 * at, 5) for at, name in enumerate(names)]), [])
    assert [call.capturing for call in trace.calls] == [False, False, True, False, False]


def test_processes_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    events = [
        span("cuda_runtime", "cudaLaunchKernel", 10, 2, process="rank0", thread=1, correlation=1),
        span("cuda_runtime", "cudaLaunchKernel", 30, 2, process="rank1", thread=1, correlation=1),
        device("kernel", "of rank0", 15, 2, correlation=1),
        device("kernel", "of rank1", 35, 2, correlation=1),
    ]
    trace = read(write(tmp_path, events), [])
    first, second = (call.process for call in trace.calls)
    assert first != second
    assert {work.name: work.process for work in trace.works} == {"of rank0": first, "of rank1": second}
    assert trace.main_threads == {first: 1, second: 1}


# Bad input --------------------------------------------------------------------------------------------------------------------

HOW = "record with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], with_stack=True)"
REFUSED = {
    "": "{path} is empty",
    "\n ": "{path} is empty",
    "hello": "{path} is not a trace: neither JSON nor an SQLite database",
    '{"a": 1}': "{path} is JSON, but no trace: it has no list 'traceEvents'",
    '{"traceEvents": 3}': "{path} is JSON, but no trace: it has no list 'traceEvents'",
    '{"schemaVersion": 1, "deviceProp': "{path} ends before its list of events",
    '{"traceEvents": []}': f"{{path}} has no CUDA events: {HOW}",
    "[]": f"{{path}} has no CUDA events: {HOW}",
    '[{"ph": "X", "cat": "cpu_op", "name": "aten::add", "ts": 1, "dur": 2}, 7, "x", null]': f"{{path}} has no CUDA events: {HOW}",
    '{"traceEvents": [{"ph": "X", "na': "{path} is cut off before its CUDA events, which PyTorch writes last: export or copy it anew",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_trace_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(StreamlintError) as error:
        read(path, [])
    assert str(error.value) == REFUSED[text].format(path=path)


def test_a_clock_that_jumps_is_told(tmp_path: Path) -> None:
    events = [span("cuda_runtime", "cudaFree", 5_000_000, -3), span("cuda_runtime", "cudaMalloc", 4_000_000, 2)]
    events += [span("cuda_runtime", "cudaMalloc", 4_000_010 + at, 1) for at in range(3)]
    events += [span("cuda_runtime", "cudaFree", 9e12, 3), span("cuda_runtime", "cudaFree", 1e30, 3), {"ph": "X", "cat": "cuda_runtime"}]
    trace = without_base(read(write(tmp_path, events), []))
    assert [(call.name, call.start, call.end) for call in trace.calls][-1] == ("cudaFree", 5_000_000_000, 5_000_000_000)
    assert len(trace.calls) == 5
    assert trace.notes[:3] == [
        "2 events without a time were left out",
        "1 events end before they begin, and count as instants: a clock jumped",
        "1 events lie more than a day from the others and were left out: a clock jumped",
    ]


def test_an_event_that_is_no_json_is_passed_over(tmp_path: Path) -> None:
    good, other = (json.dumps(span("cuda_runtime", "cudaFree", start, 2)) for start in (1, 5))
    path = tmp_path / "run.json"
    path.write_text(f'{{"traceEvents": [{good}, {{"name": "C:\\users"}}, {other}]}}')
    trace = read(path, [])
    assert len(trace.calls) == 2
    assert trace.notes[0] == f"1 events of {path} are no valid JSON and were left out"


@pytest.mark.parametrize(("told", "ranks"), [({"backend": "nccl", "rank": 3}, {PROCESS: 3}), ({"rank": -1}, {}), ("?", {})])
def test_the_rank_is_that_of_the_profilers_header(tmp_path: Path, told: object, ranks: dict[int, int]) -> None:
    assert read(write(tmp_path, COPY, distributedInfo=told), []).ranks == ranks


def test_a_packed_file_that_is_damaged_is_read_up_to_there(tmp_path: Path) -> None:
    events = [span("cuda_runtime", f"cudaFree{at * 7919 % 1000}", 3 * at, 2, correlation=at) for at in range(400)]
    data = gzip.compress(fake_kineto.document(events).encode())
    path = tmp_path / "run.json.gz"
    path.write_bytes(data[: len(data) // 2] + b"\xff" * 99)
    trace = read(path, [])
    assert [call.correlation for call in trace.calls][:150] == list(range(150))  # what damage looks like behind is chance
    assert len(trace.calls) < 400
    assert trace.notes[0].startswith(f"{path} is cut off: ")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), packed=st.booleans())
def test_a_truncated_trace_gives_the_first_of_its_calls(tmp_path: Path, data: st.DataObject, packed: bool) -> None:
    events = [span("cuda_runtime", "cudaFree", 3 * at, 2, correlation=at) for at in range(8)]
    events.insert(3, span("python_function", "train.py(1): main", 0, 99, text="}, {[ \\ ☃"))
    whole = fake_kineto.document(events).encode()
    whole = gzip.compress(whole) if packed else whole
    path = tmp_path / "run.json"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole) - 1))])
    try:
        trace = read(path, [tmp_path])
    except StreamlintError:
        return
    read_calls = [call.correlation for call in trace.calls]
    assert read_calls == list(range(len(read_calls)))
    told = trace.notes[0] == f"{path} is cut off: {len(read_calls)} calls up to there were read"
    assert told or len(read_calls) == 8


def test_events_are_read_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where pieces end within events, numbers and characters; and no more than a piece and an event is held."""
    events = [span("cuda_runtime", "cudaFree ☃" + "x" * at, 1.5 * at, 2, correlation=at) for at in range(40)]
    path = write(tmp_path, events, number=123456789, text="☃" * 9)
    monkeypatch.setattr(json_stream, "_CHUNK", 7)
    stream = json_stream.EventStream(path)
    held = [(event, len(stream._text))[0] for event in stream.events() if len(stream._text) < 400]
    assert held == [{**event, "ts": str(event["ts"])} for event in events]
    assert (stream.truncated, stream.skipped, stream.header["number"], stream.header["baseTimeNanoseconds"]) == (
        *(False, 0, 123456789, 1_700_000_000_000_000_000),
    )
