"""SL013: calls that a stream capture refuses.

Measured on an H200 (``docs/cuda-model.md``, "Stream capture"): synchronize and query calls are refused with status 900, null-stream work
beside a blocking stream's capture with 906, and a fork that is not joined ends the capture with 904.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.cuda_model.capture import Status
from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, floats, function, torch_module

RULE, NAME = "SL013", "capture-illegal-call"
_REFUSED = "refused: status 900"
_ENDS, _BESIDE = "the capture ends with status 904", "refused: status 906"
_WAIT = ("synchronize",)
_COUNT = 1024
# What PyTorch says where it gives no number.
_WORDS = {"not permitted when stream is capturing": Status.UNSUPPORTED, "StreamCaptureUnsupported": Status.UNSUPPORTED}


def _status(work: Callable[[], object]) -> int:
    """The first CUDA status that the work fails with; a failed end of the capture is a consequence."""
    try:
        work()
    except Exception as problem:
        first: BaseException = problem
        while first.__context__ is not None:
            first = first.__context__
        for name in ("status", "error_code"):
            if isinstance(found := getattr(first, name, None), int):
                return found
        return next((int(status) for word, status in _WORDS.items() if word in str(first)), -1)
    return 0


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    values, out = floats(lab, _COUNT), floats(lab, _COUNT)
    lab.keep(lab.cupy.multiply(values, 2))  # the kernel is loaded before the capture
    stream = lab.stream(blocking=False)
    return Trial(lambda: _status(lambda: snippet.record(values, out, stream)), expected=int(Status.UNSUPPORTED))


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    values, stream = lab.keep(torch.ones(_COUNT, device="cuda")), lab.keep(torch.cuda.Stream())
    lab.keep((values * 2).sum())
    return Trial(lambda: _status(lambda: snippet.record(values, stream)), expected=int(Status.UNSUPPORTED))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    record = function(library, "record", ctypes.c_int, POINTER, POINTER)
    left, right = floats(lab, _COUNT), floats(lab, _COUNT)
    return Trial(lambda: record(left.data.ptr, right.data.ptr), expected=int(parameters["status"]))


CASES = (
    Case(RULE, "synchronize_in_capture", "cupy", Experiment.ERROR, _REFUSED, "sl013_cupy", _cupy, kinds=_WAIT),
    Case(RULE, "synchronize_in_capture", "torch", Experiment.ERROR, _REFUSED, "sl013_torch", _torch, kinds=_WAIT),
    Case(RULE, "fork_not_joined", "cuda", Experiment.ERROR, _ENDS, "sl013_cuda_fork", _cuda, {"status": 904}, kinds=("unjoined",)),
    Case(RULE, "null_stream_copy", "cuda", Experiment.ERROR, _BESIDE, "sl013_cuda_null", _cuda, {"status": 906}, kinds=("null-stream",)),
    Case(RULE, "read_in_capture", "torch", Experiment.ERROR, _REFUSED, "sl013_torch_read", _torch, kinds=("copy",)),
    Case(
        RULE,
        "allocation_in_capture",
        "cuda",
        Experiment.ERROR,
        _REFUSED,
        "sl013_cuda_allocate",
        _cuda,
        {"status": 900},
        kinds=("allocate",),
    ),
)
