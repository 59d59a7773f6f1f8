"""The questions that documents left open, as ``benchmarks/open_questions.py`` answered them: a section of the model's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

# What the rows say, in a sentence or two; the columns of the table below it.
_CONCLUSIONS = {
    "A": """
A tensor that was written on a side stream and put into an `mp.Queue` without a wait is read too early, in the side stream's scope
as well as outside of it: the feeder thread records on its own current stream, the default one. `SimpleQueue` records on the
putting thread's current stream, so it is right inside of the scope. The same buffer sent again while the consumer holds its first
view is read too early, sent again after the view was dropped it is not. A sender that deletes its tensor right after `put` did no
harm here.
""",
    "B": """
In `torch.cuda.graph`, whatever its error mode, a kernel that an extension launches on stream 0 raises no error: it runs at once,
is not in the graph, and no replay runs it. Only where the capturing stream is a blocking one is the launch refused (906).
""",
    "C": """
With `CUDA_MODULE_LOADING=LAZY` the first launch of a kernel waits for all work of the device (slope 1.0 over gates of 20, 60 and
120 ms), and meanwhile other threads' launches, copies, allocations and host functions are held. On an idle device it costs some
20 to 60 microseconds. With `EAGER` the launch is free of this, and `cuLibraryLoadData` is what waits and holds.
""",
    "D": """
A download into fresh pageable memory on the null stream holds other threads' launches for the whole of the call, and the call is
ten times as long because the copying thread takes a page fault for every 4 KB under that lock. Pages that were touched before, by
anybody, leave the copy itself; huge pages halve it; pinned memory holds nobody. On a non-blocking stream nobody is held, fresh or
not.
""",
    "E": """
`empty_cache` with something to release is `cudaFree`: it waits, and holds everybody. `cudaStreamDestroy` (also with work
pending), `cudaGraphLaunch` and `cudaLaunchHostFunc` return and hold nobody. A host function that blocks keeps other streams' host
functions of the device from running, and nothing else.
""",
    "F": """
An asynchronous upload of pageable memory returns at once up to 2 MiB exactly, and waits for its stream from the next byte on: the same
for the runtime, CuPy and PyTorch, on the null stream, blocking and non-blocking streams (H100). While the stream is shut, uploads of more
than 64 KiB share staging memory for two: the third in a row waits (of 2 MiB the second), also where the others stand on streams of other
threads. Up to 64 KiB some 4 MiB in all return. So a loop that uploads more than 64 KiB at a time on a busy stream waits in
its third copy, and a single copy of 1 MiB does not wait.
""",
}
_COLUMNS = {
    "A": ("case", "runs", "new", "old", "answer_ms"),
    "B": ("case", "mode", "status", "ran_during_capture", "replays", "reruns"),
    "C": (
        "part",
        "case",
        "image",
        "first_us",
        "again_us",
        "gate_20_ms",
        "gate_120_ms",
        "slope",
        "call",
        "launch",
        "pinned copy",
        "cudaMalloc",
    ),
    "D": ("case", "stream", "beside", "longest_ms", "call_ms", "faults"),
    "E": (
        "case",
        "gate_on",
        "call",
        "launch",
        "pinned copy",
        "cudaMalloc",
        "cudaMallocAsync",
        "event query",
        "null launch",
        "host function",
    ),
    "F": ("case", "stream", "kib", "idle_us", "waits", "returned"),
}


def section(found: Sequence[Mapping[str, Any]]) -> str:
    """The section, or nothing where no answers are kept."""
    parts = ["## Questions that were open"] if found else []
    for report in found:
        parts += [_answer(letter, answer) for letter, answer in report["answers"].items()]
    return "\n\n".join(parts)


def _answer(letter: str, answer: Mapping[str, Any]) -> str:
    head = _COLUMNS[letter]
    rows = [row for row in answer["rows"] if row["case"] != "facts"]
    lines = ["| " + " | ".join(word.replace("_", " ") for word in head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(_plain(row.get(key)) for key in head) + " |" for row in rows]
    title = answer["question"][0].upper() + answer["question"][1:]
    return f"### {letter}. {title}\n\n{_CONCLUSIONS[letter].strip()}\n\n" + "\n".join(lines)


def _plain(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value >= 1000:
        return f"{value:.7g}"
    return f"{value:.3g}" if isinstance(value, float) else str(value).replace("|", "\\|").replace("\n", " ")
