"""SL035: work is done in a thread, or by an extension, whose current device is another one than that of its data.

All cases need two GPUs: with one there is no other device to be on. A new thread is on device 0, whatever the thread that started it had
set: it waits for that device, allocates there, and an event that it makes cannot be recorded on a stream of another one (400 is
``cudaErrorInvalidResourceHandle``). A kernel that it launches on a stream of another device is not lost: CUDA 13 runs it on the stream's
device (measured on two H100s; the Programming Guide says that the launch fails).
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import function, torch_module

RULE, NAME = "SL035", "wrong-device-context"
_COUNT = 1024
_INVALID_HANDLE = 400


def _demand_two(lab: Lab) -> None:
    if lab.runtime.getDeviceCount() < 2:
        raise UnsupportedError("needs two GPUs")


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """No gate: on device 0 it would hold the thread, too. The program itself keeps device 1 busy."""
    _demand_two(lab)
    torch = torch_module()
    losses = lab.keep(torch.ones(_COUNT, device="cuda:1"))
    host = lab.keep(torch.zeros(_COUNT, pin_memory=True))

    def status() -> int:
        host.fill_(-1.0)
        losses.fill_(1.0).mul_(1.0)  # its kernel is loaded: to load it may wait for the device
        torch.cuda.synchronize(1)
        try:
            return int(snippet.read_back(losses, host) != 2.0)
        finally:
            torch.cuda.synchronize(1)
            torch.cuda.set_device(0)

    return Trial(status, expected=1)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_two(lab)
    return Trial(lambda: int(snippet.device_of_work(_COUNT) != 1), expected=1)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_two(lab)
    return Trial(function(library, "run", ctypes.c_int), expected=_INVALID_HANDLE)


def _extension(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """With peer access: without it the kernel fails, and nothing runs in the process any more."""
    _demand_two(lab)
    if not lab.runtime.deviceCanAccessPeer(0, 1):
        raise UnsupportedError("needs two GPUs that can reach each other's memory")
    torch_module()
    with contextlib.suppress(lab.cupy.cuda.runtime.CUDARuntimeError):  # it is enabled already
        lab.runtime.deviceEnablePeerAccess(1)
    return Trial(lambda: int(snippet.total(_COUNT, 3.0) != 6.0 * _COUNT), expected=1)


CASES = (
    Case(
        RULE,
        "thread_waits_for_device_0",
        "torch",
        Experiment.ERROR,
        "the thread waits for device 0, and reads what device 1 has not written yet (status 1: an old value)",
        "sl035_torch",
        _torch,
        devices=2,
    ),
    Case(
        RULE,
        "thread_allocates_on_device_0",
        "cupy",
        Experiment.ERROR,
        "the thread's array is on device 0 (status 1: not on the device that was set)",
        "sl035_cupy",
        _cupy,
        devices=2,
    ),
    Case(
        RULE,
        "thread_makes_event_on_device_0",
        "cuda",
        Experiment.ERROR,
        "the event cannot be recorded on a stream of the device that was set (status 400)",
        "sl035_cuda",
        _cuda,
        devices=2,
    ),
    Case(
        RULE,
        "extension_without_guard",
        "torch",
        Experiment.ERROR,
        "the kernel runs on device 0's stream, and reads device 1's memory before it is written (status 1: a wrong sum)",
        "sl035_torch_extension",
        _extension,
        devices=2,
        needs=("nvcc", "ninja"),
        builds=True,
    ),
)
