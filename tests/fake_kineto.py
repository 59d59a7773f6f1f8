"""Traces as PyTorch's profiler writes them, without PyTorch: a program is run under `sys.setprofile` against tensors that only pretend.

Functions of `fake_torch.py` play the library's Python files, those of `fake_builtins` its compiled functions: a special method makes no
event of its own there, as with PyTorch's. The clock ticks a microsecond an event. Beside the events stands the truth: the user's line in
progress at each call of CUDA.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

Event = dict[str, Any]
PROCESS = 4000
BUILTINS = """
class Tensor:
    def item(self): _op("aten::item", "cudaMemcpyAsync", "cudaStreamSynchronize"); return 1.0
    def cpu(self): _op("aten::to", "cudaMemcpyAsync", "cudaStreamSynchronize"); return self
    def to(self, where): _op("aten::to", "cudaMemcpyAsync"); return self
    def tolist(self): _op("aten::to", "cudaMemcpyAsync", "cudaStreamSynchronize"); return [1]
    def nonzero(self): _op("aten::nonzero", "cudaMemcpyAsync", "cudaStreamSynchronize"); return self
    def mean(self): _op("aten::mean", "cudaLaunchKernel"); return self
    def backward(self): _op("aten::mul", "cudaLaunchKernel")
    def __float__(self): _op("aten::item", "cudaMemcpyAsync", "cudaStreamSynchronize"); return 1.0
    def __bool__(self): _op("aten::is_nonzero", "cudaMemcpyAsync", "cudaStreamSynchronize"); return True
    def __gt__(self, other): _op("aten::gt", "cudaLaunchKernel"); return self
    def __add__(self, other): _op("aten::add", "cudaLaunchKernel"); return self
    def __getitem__(self, key): _op("aten::index", "cudaMemcpyAsync", "cudaStreamSynchronize"); return self
    def __setitem__(self, key, value): _op("aten::index_put_", "cudaMemcpyAsync", "cudaStreamSynchronize")
    def __iter__(self): _op("aten::unbind"); return iter([self])
"""
LIBRARY = """
class no_grad:
    def __enter__(self): pass
    def __exit__(self, *error): pass
    def __call__(self, function):
        def decorate_context(*given):
            with no_grad():
                return function(*given)
        return decorate_context
class Module:
    def _wrapped_call_impl(self, *given): return self.forward(*given)
    __call__ = _wrapped_call_impl
class Optimizer:
    def step(self): return self.wrapper()
    def wrapper(self): return Tensor().mean()
def clip_grad_norm_(parameters, most):
    total = Tensor().mean()
    if total > most:
        pass
    return total
def show(self): return str(self.item())
def __format__(self, how): return show(self)
Tensor.__repr__ = Tensor.__str__ = show
Tensor.__format__ = __format__
"""


class Recorder:
    """Events and truth of one program."""

    def __init__(self, user: Path) -> None:
        self.user = str(user)
        self.events: list[Event] = []
        self.truth: list[int] = []
        self.clock = itertools.count(10_000_000)
        self.correlations = itertools.count(1)
        self._open: list[tuple[Any, Event | None]] = []

    def event(self, category: str, name: str, **arguments: object) -> Event:
        """Begin an event now; its duration comes when it ends."""
        now = next(self.clock)
        made: Event = {
            "ph": "X",
            "cat": category,
            "name": name,
            "pid": PROCESS,
            "tid": PROCESS,
            "ts": float(now),
            "dur": 0,
            "args": arguments,
        }
        self.events.append(made)
        return made

    def end(self, event: Event) -> None:
        """End an event now."""
        event["dur"] = next(self.clock) - event["ts"] + 0.5

    def operator(self, name: str, *calls: str) -> None:
        """An operator of PyTorch that calls CUDA."""
        frame = sys._getframe()
        while frame.f_code.co_filename != self.user:
            frame = frame.f_back  # type: ignore[assignment]  # the user's is below
        outer = self.event("cpu_op", name)
        for call in calls:
            self.truth.append(frame.f_lineno)
            correlation = next(self.correlations)
            made = self.event("cuda_runtime", call, correlation=correlation, cbid=1)
            self.end(made)
            if call == "cudaMemcpyAsync":
                copy = self.event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", correlation=correlation, stream=7, device=0, bytes=4)
                copy.update(pid=0, tid=7)
                self.end(copy)
        self.end(outer)

    def profile(self, frame: FrameType, what: str, value: Any) -> None:
        """What `sys.setprofile` calls."""
        if what in ("call", "c_call"):
            name = _name(frame, value if what == "c_call" else None)
            self._open.append((frame, self.event("python_function", name) if name else None))
        elif self._open and self._open[-1][0] is frame:
            _, event = self._open.pop()
            if event is not None:
                self.end(event)


def _name(frame: FrameType, builtin: Any) -> str:
    code: CodeType = frame.f_code
    if builtin is not None:
        return "" if "fake_" in code.co_filename or code.co_filename == __file__ else repr(builtin)
    if code.co_filename == "fake_builtins":
        return "" if code.co_name.startswith("_") else f"<built-in method {code.co_name} of Tensor object at 0x7f00>"
    if code.co_filename == __file__:
        return ""
    if code.co_name == "_wrapped_call_impl":
        return f"nn.Module: {type(frame.f_locals['self']).__name__}_0"
    return f"{code.co_filename}({code.co_firstlineno}): {code.co_name}"


def run(path: Path, function: str = "main") -> Recorder:
    """Run a program's function: it may use `Tensor`, `Module`, `no_grad`, `Optimizer` and `clip_grad_norm_`."""
    recorder = Recorder(path)
    around: dict[str, Any] = {"_op": recorder.operator, "__name__": "program"}
    for text, file in ((BUILTINS, "fake_builtins"), (LIBRARY, "torch/fake_torch.py"), (path.read_text(), str(path))):
        exec(compile(text, file, "exec"), around)
    before = sys.getprofile()
    sys.setprofile(recorder.profile)
    try:
        around[function]()
    finally:
        sys.setprofile(before)
    return recorder


def document(events: list[Event], **header: object) -> str:
    """The text of a trace, its times as the profiler writes them."""
    top = {"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "NVIDIA H100"}], "with_stack": 1, **header}
    return json.dumps(
        {**top, "traceEvents": events, "traceName": "x", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1_700_000_000_000_000_000}
    )


def span(
    category: str, name: str, start: float, length: float, *, process: int | str = PROCESS, thread: int = PROCESS, **arguments: object
) -> Event:
    """One event by hand."""
    return {"ph": "X", "cat": category, "name": name, "pid": process, "tid": thread, "ts": start, "dur": length, "args": arguments}
