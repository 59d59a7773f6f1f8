"""SL010: a thread that waits in a copy to pageable memory on the null stream holds every other thread's launches.

Measured on an H200 (driver 580.159): docs/cuda-model.md, "Who is held while one thread waits".

The last two cases are the deadlock that comes of it: the default stream waits for a callback that another thread is to let go, and that
thread launches first. Pageable memory on the default stream hangs; pinned memory passes, and so does a copy stream of its own (where the
same copy into pageable memory is SL001, a stall and no deadlock).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import FLOAT, POINTER, SIZE, floats, function, torch_module

RULE, NAME = "SL010", "pageable-d2h-stall"
_HELD = "another thread's launch on a stream of its own does not return before the copy has ended"
_DEADLOCK = "deadlock: the copy holds the launch that comes before what it waits for"
_SMALL: dict[str, Any] = {"bytes": 1024, "direction": "d2h", "memory": "pageable", "stream": "null"}
_FACTS: dict[str, Any] = {"bytes": 16 << 20, "direction": "d2h", "memory": "pageable", "stream": "null"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    field = lab.keep(torch_module().zeros(parameters["bytes"] // FLOAT, device="cuda"))
    return Trial(lambda: snippet.bring_home(field))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    field = floats(lab, parameters["bytes"] // FLOAT)
    return Trial(lambda: snippet.bring_home(field))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    count = parameters["bytes"] // FLOAT
    field = floats(lab, count)
    function(library, "prepare", None, SIZE)(count)  # the memory is there, and touched, before any gate shuts
    bring_home = function(library, "bring_home", None, POINTER, SIZE)
    return Trial(lambda: bring_home(field.data.ptr, count))


def _callback(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    # The program starts no gate: its own callback holds the side stream, until a thread that cannot launch says go.
    count = parameters["bytes"] // FLOAT
    result, state = floats(lab, count), floats(lab, 1)
    side, own = lab.stream(blocking=False), lab.stream(blocking=False)
    fetch = function(library, "fetch", None, POINTER, SIZE, POINTER, POINTER, POINTER)
    return Trial(lambda: fetch(result.data.ptr, count, state.data.ptr, side.ptr, own.ptr))


CASES = (
    Case(RULE, "fetching_thread", "torch", Experiment.THREAD_HELD, _HELD, "sl010_torch", _torch, _FACTS, takes=("bytes",)),
    Case(RULE, "fetching_thread", "cupy", Experiment.THREAD_HELD, _HELD, "sl010_cupy", _cupy, _FACTS, takes=("bytes",)),
    Case(RULE, "fetching_thread", "cuda", Experiment.THREAD_HELD, _HELD, "sl010_cuda", _cuda, _FACTS, takes=("bytes",)),
    Case(
        RULE,
        "copy_and_callback_deadlock",
        "cuda",
        Experiment.DEADLOCK,
        f"{_DEADLOCK}; into pinned memory it passes",
        "sl010_cuda_callback",
        _callback,
        _SMALL,
        kinds=(OTHER_CLAIM,),
    ),
    Case(
        RULE,
        "copy_and_callback_on_a_stream_of_its_own",
        "cuda",
        Experiment.DEADLOCK,
        f"{_DEADLOCK}; on a stream of its own it passes, pageable as it is",
        "sl010_cuda_callback_own",
        _callback,
        _SMALL,
        kinds=(OTHER_CLAIM,),
    ),
)
