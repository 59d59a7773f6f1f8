"""SL034: a replay reads the memory that was captured, whatever the name of its tensor means by then.

A name that is bound to a new tensor changes nothing of the graph: the replay computes from the old one. The allocator reuses memory that
was freed, and the replay reads what its next owner has written.

The block of the dropped tensor has a size that is neither split nor joined with a neighbour: see the template of SL007.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import FLOAT, POINTER, SIZE, floats, function, host_floats, torch_module
from streamlint.verify.templates._trials import COUNT, Turn, refilled

RULE, NAME = "SL034", "graph-input-replaced"
_STALE = "wrong value: the replay reads the tensor that was captured, not the one that took its name"
_TAKEN = "wrong value: the replay reads what the next owner of the freed memory has written"
_OVERWRITTEN = "wrong value: the replay overwrites the array that got the block of a freed one"
_LARGE = 4 << 20


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    stream, turn = lab.keep(torch.cuda.Stream()), Turn(copies=2)
    lab.keep(torch.ones(COUNT, device="cuda") * 2)  # the kernel is loaded before the capture
    count = parameters["count"]
    return Trial(lambda: snippet.doubled(turn.value, count, stream), gate=handle_of(stream), reset=turn.reset)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream, turn = lab.stream(blocking=False), Turn(copies=2)
    lab.keep(lab.cupy.multiply(floats(lab, COUNT), 2, out=floats(lab, COUNT)))
    return Trial(lambda: snippet.doubled(turn.value, COUNT, stream), gate=stream.ptr, reset=turn.reset)


def _temporary(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream, turn = lab.stream(blocking=False), Turn(copies=1)
    lab.keep(lab.cupy.multiply(floats(lab, COUNT) + 1, 2, out=floats(lab, COUNT)))
    return Trial(lambda: snippet.filled(turn.value, COUNT, stream), gate=stream.ptr, reset=turn.reset)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    source, result, host = floats(lab, COUNT), floats(lab, COUNT), host_floats(lab, COUNT, "pinned")
    copied = function(library, "copied", ctypes.c_float, POINTER, POINTER, POINTER, SIZE, POINTER)

    def call() -> object:
        return copied(source.data.ptr, result.data.ptr, host.ctypes.data, COUNT, stream.ptr)

    return Trial(call, gate=stream.ptr, reset=refilled(source.fill))


_DROP, _BYTES = {"count": _LARGE}, {"bytes": FLOAT * COUNT}
CASES = (
    Case(RULE, "rebound_before_replay", "torch", Experiment.DATA_RACE, _STALE, "sl034_torch", _torch, {"count": COUNT}, kinds=("rebound",)),
    Case(RULE, "dropped_before_replay", "torch", Experiment.DATA_RACE, _TAKEN, "sl034_torch_drop", _torch, _DROP, kinds=("dropped",)),
    Case(RULE, "rebound_before_replay", "cupy", Experiment.DATA_RACE, _STALE, "sl034_cupy", _cupy, kinds=("rebound",)),
    Case(RULE, "temporary_freed", "cupy", Experiment.DATA_RACE, _OVERWRITTEN, "sl034_cupy_temporary", _temporary, kinds=("temporary",)),
    Case(RULE, "freed_before_replay", "cuda", Experiment.DATA_RACE, _TAKEN, "sl034_cuda", _cuda, _BYTES, kinds=("freed",)),
)
