"""SL038: memory is used on another stream before the stream of its allocation has come to that.

The block is one that the first stream still writes: its free and the new allocation stand behind that work. With the first stream behind
a gate the second one fills the block at once, and the old work overwrites it when the gate opens.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, function, host_floats
from streamlint.verify.templates._trials import BYTES, COUNT, Turn

RULE, NAME = "SL038", "use-before-allocation"
_OVERWRITTEN = "data race: earlier work on the block overwrites what the second stream has written"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}
_THRESHOLD = 4  # cudaMemPoolAttrReleaseThreshold


def _keep_blocks(lab: Lab) -> None:
    """The default pool keeps its memory: nothing is mapped while a gate is shut."""
    runtime = lab.runtime
    runtime.memPoolSetAttribute(runtime.deviceGetDefaultMemPool(0), _THRESHOLD, 1 << 40)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    _keep_blocks(lab)
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    host, turn = host_floats(lab, COUNT, "pinned"), Turn(1)
    renew = function(library, "renew", ctypes.c_float, POINTER, SIZE, ctypes.c_float, POINTER, POINTER)
    return Trial(lambda: renew(host.ctypes.data, COUNT, turn.value, first.ptr, second.ptr), gate=first.ptr, reset=turn.reset)


def _in_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """``renew(host, value, first, second, event)``: each byte is the round's number, and the sum of all comes home."""
    _keep_blocks(lab)
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    event = lab.keep(lab.cupy.cuda.Event(disable_timing=True))
    host, turn = host_floats(lab, COUNT, "pinned").view("uint8"), Turn(BYTES)
    return Trial(lambda: snippet.renew(host, int(turn.value), first.ptr, second.ptr, event.ptr), gate=first.ptr, reset=turn.reset)


CASES = (
    Case(RULE, "fill_on_other_stream", "cuda", Experiment.DATA_RACE, _OVERWRITTEN, "sl038_cuda", _cuda, _PARAMETERS),
    Case(RULE, "fill_on_other_stream", "cupy", Experiment.DATA_RACE, _OVERWRITTEN, "sl038_cupy", _in_python, _PARAMETERS),
    Case(RULE, "fill_on_other_stream", "cuda-python", Experiment.DATA_RACE, _OVERWRITTEN, "sl038_cuda_python", _in_python, _PARAMETERS),
)
