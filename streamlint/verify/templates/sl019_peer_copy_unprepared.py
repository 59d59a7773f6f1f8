"""SL019: copies from one device to another, with and without peer access. Measured by hand on two H200s: 256 MB take 7.0 and 0.69 ms.

Each program measures its copies alone. The remedy takes the access back, so that the two can run in turns in one process.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import POINTER, SIZE, function

RULE, NAME = "SL019", "peer-copy-unprepared"
_DEARER = "a copy to another device takes longer without peer access"
_FACTS: dict[str, Any] = {"bytes": 256 << 20, "direction": "peer", "rounds": 4}


def _demand_peers(lab: Lab) -> None:
    if lab.runtime.getDeviceCount() < 2:
        raise UnsupportedError("needs two GPUs")
    if not lab.runtime.deviceCanAccessPeer(0, 1):
        raise UnsupportedError("needs two GPUs that can reach each other's memory")


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_peers(lab)
    exchange = function(library, "exchange", ctypes.c_double, SIZE, ctypes.c_int)
    return Trial(lambda: exchange(parameters["bytes"], parameters["rounds"]))


def _staged(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_peers(lab)
    with contextlib.suppress(Exception):  # what a program before this one left
        lab.runtime.deviceDisablePeerAccess(1)
    size = parameters["bytes"]
    function(library, "prepare", None, SIZE)(size)
    busy, idle = lab.stream(blocking=False), lab.stream(blocking=False)
    exchange = function(library, "exchange", None, SIZE, POINTER, POINTER)
    return Trial(lambda: exchange(size, busy.ptr, idle.ptr), gate=busy.ptr, watch=idle.ptr)


CASES = (
    Case(RULE, "copy_without_access", "cuda", Experiment.COSTS, _DEARER, "sl019_cuda", _cuda, _FACTS, devices=2, takes=("bytes",)),
    Case(
        RULE,
        "staged_copy_holds_other_streams",
        "cuda",
        Experiment.STREAMS_SERIALISE,
        "a staged copy waits for an earlier one on another stream, which waits for its stream's work",
        "sl019_cuda_staged",
        _staged,
        {"bytes": 16 << 20, "direction": "peer"},
        devices=2,
        kinds=(OTHER_CLAIM,),
    ),
)
