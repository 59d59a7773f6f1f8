"""B: an extension that launches on the legacy stream while torch captures a graph: an error, or silently not captured?

The kernel counts in pinned host memory, so the host sees during the capture, without a call to CUDA, whether it ran.
"""

from __future__ import annotations

import ctypes
import importlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from questions import Part, Row, Say, told
from questions.threads import poll

QUESTION = "torch graph capture and an extension that launches on the legacy stream"
MODES = ("global", "thread_local", "relaxed")
PARTS = tuple(Part(mode, lazy=True) for mode in MODES)
_REPLAYS = 3
_WATCH_S = 0.1
_CURRENT, _NULL, _BLOCKING = "current stream (control)", "stream 0", "stream 0, capture on a blocking stream"
_NAME = "open_question_b"
# No header of torch: it compiles in seconds. cudaPeekAtLastError leaves the error where an extension that checks nothing leaves it.
_SOURCE = r"""
#include <cuda_runtime.h>
__global__ void bump(volatile int* counter) { *counter = *counter + 1; __threadfence_system(); }
extern "C" {
int launch_on_null(int* counter) {
  bump<<<1, 1>>>(counter);  // streamlint: ignore[implicit-default-stream] this is the misuse that the question is about
  return cudaPeekAtLastError();
}
int launch_on(int* counter, void* stream) { bump<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(counter); return cudaPeekAtLastError(); }
int take_error() { return cudaGetLastError(); }
const char* error_name(int status) { return cudaGetErrorName(static_cast<cudaError_t>(status)); }
void* blocking_stream() { cudaStream_t stream = nullptr; cudaStreamCreate(&stream); return stream; }
}
"""


def _build(scratch: Path) -> tuple[Any, str]:
    """The extension, and how it was built: ``load_inline``, or nvcc alone where that fails."""
    try:
        load_inline = importlib.import_module("torch.utils.cpp_extension").load_inline
        folder = scratch / _NAME
        folder.mkdir(exist_ok=True)
        (folder / "lock").unlink(missing_ok=True)  # of a child that was killed while it built
        path = load_inline(
            name=_NAME, cpp_sources="", cuda_sources=_SOURCE, build_directory=str(folder), is_python_module=False, no_implicit_headers=True
        )
        library, how = ctypes.CDLL(str(path)), "load_inline"
    except Exception as problem:
        from streamlint.verify.device import compile_library

        source = scratch / f"{_NAME}.cu"
        source.write_text(_SOURCE, encoding="utf-8")
        compiled, failure = compile_library(source, os.environ.get("TORCH_CUDA_ARCH_LIST", ""))
        if failure is not None:
            raise RuntimeError(f"load_inline: {told(problem)}; {failure}") from problem
        library, how = ctypes.CDLL(compiled), f"nvcc, because load_inline failed: {told(problem)}"
    library.launch_on_null.argtypes = [ctypes.c_void_p]
    library.launch_on.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    library.error_name.restype, library.error_name.argtypes = ctypes.c_char_p, [ctypes.c_int]
    library.blocking_stream.restype = ctypes.c_void_p
    return library, how


class Extension:
    """The extension and its counter."""

    def __init__(self, torch: Any, scratch: Path) -> None:
        self.torch = torch
        self._library, self.built = _build(scratch)
        self._memory = torch.zeros(1, dtype=torch.int32, pin_memory=True)
        self._address = int(self._memory.data_ptr())
        self._counter = ctypes.c_int32.from_address(self._address)
        self._graphs: list[Any] = []

    def keep(self, graph: Any) -> Any:
        """Hold a graph until the process ends: the destructor of one whose capture failed is not to be trusted."""
        self._graphs.append(graph)
        return graph

    @property
    def count(self) -> int:
        """How often the kernel has run."""
        return int(self._counter.value)

    def on_null(self) -> int:
        """``<<<1, 1>>>``; returns the status."""
        return int(self._library.launch_on_null(self._address))

    def on_current(self) -> int:
        """On torch's current stream; returns the status."""
        return int(self._library.launch_on(self._address, self.torch.cuda.current_stream().cuda_stream))

    def status(self, number: int) -> str:
        """A status by its name."""
        return f"{number} {self._library.error_name(number).decode()}"

    def take_error(self) -> None:
        """Reset the runtime's last error."""
        self._library.take_error()

    def blocking_stream(self) -> Any:
        """A stream of ``cudaStreamCreate``, for torch."""
        return self.torch.cuda.ExternalStream(int(self._library.blocking_stream() or 0))


def ask(part: str, say: Say, scratch: Path) -> None:
    """One capture mode; the variant that is expected to break the capture comes last."""
    torch: Any = importlib.import_module("torch")
    torch.zeros(1, device="cuda")
    extension = Extension(torch, scratch)
    say({"case": "facts", "torch": str(torch.__version__), "cuda": str(torch.version.cuda), "built": extension.built})
    for launch in (extension.on_null, extension.on_current):  # loads the kernel
        if status := launch():
            raise RuntimeError(f"the extension does not run: {extension.status(status)}")
    torch.cuda.synchronize()
    if extension.count != 2:
        raise RuntimeError(f"the kernel ran {extension.count} times instead of 2")
    for case, launch, stream in (
        (_CURRENT, extension.on_current, None),
        (_NULL, extension.on_null, None),
        (_BLOCKING, extension.on_null, extension.blocking_stream()),
    ):
        try:
            say(_capture(extension, part, case, launch, stream))
        except Exception as problem:  # after a capture, not in it
            say({"case": case, "mode": part, "failure": told(problem)})
        extension.take_error()
        torch.cuda.set_stream(torch.cuda.default_stream())


def _capture(extension: Extension, mode: str, case: str, launch: Callable[[], int], stream: Any) -> Row:
    torch = extension.torch
    x = torch.zeros(4, device="cuda")
    x.add_(1).zero_()
    torch.cuda.synchronize()
    graph = extension.keep(torch.cuda.CUDAGraph())
    row: Row = {"case": case, "mode": mode, "status": "not launched", "exception": "none", "raised_at": "-"}
    stage = "the capture's begin"
    before = extension.count
    try:
        with torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
            stage = "torch's operation before the launch"
            x.add_(1)
            stage = "the extension's launch"
            row["status"] = extension.status(launch())
            row["ran_during_capture"] = poll(lambda: extension.count > before, _WATCH_S)
            stage = "torch's operation after the launch"
            x.add_(1)
            stage = "the capture's end"
    except Exception as problem:
        row |= {"exception": told(problem), "raised_at": stage, "first_exception": _first(problem)}
        return row | {"ran_by_the_end": extension.count - before}
    torch.cuda.synchronize()
    row["ran_by_the_end"] = extension.count - before
    before = extension.count
    for _ in range(_REPLAYS):
        graph.replay()
    torch.cuda.synchronize()
    return row | {"replays": _REPLAYS, "reruns": extension.count - before, "torch_operations_rerun": float(x[0].item())}


def _first(problem: BaseException) -> str:
    """What was raised first: the capture's end raises anew over an error in the region."""
    while problem.__context__ is not None:
        problem = problem.__context__
    return told(problem)


def answer(rows: Sequence[Row]) -> str:
    """What each mode does, and whether the control was captured."""
    texts = []
    for mode in MODES:
        found = {row["case"]: row for row in rows if row.get("mode") == mode and "failure" not in row}
        told_ = [f"{case}: {_reading(found[case])}" for case in (_NULL, _BLOCKING) if case in found]
        if found.get(_CURRENT, {}).get("reruns") != _REPLAYS:
            told_.append("the control on the current stream was not captured as it should be, so do not trust this")
        if told_:
            texts.append(f"{mode}: {'; '.join(told_)}")
    return ". ".join(texts) + "." if any("replays" in row or "raised_at" in row for row in rows) else "no answer: nothing was measured"


def _reading(row: Row) -> str:
    launched = f"the launch answers {row['status']}"
    if row["exception"] != "none":
        return f"{launched}, and {row['raised_at']} raises {row['first_exception'][:120]}"
    when = "ran at once, during the capture" if row["ran_during_capture"] else "did not run during the capture"
    again = "re-run by each replay" if row["reruns"] == row["replays"] else f"re-run by {row['reruns']} of {row['replays']} replays"
    return f"{launched}, no exception; the kernel {when}, and is {again}"
