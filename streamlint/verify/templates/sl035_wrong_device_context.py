"""SL035: work is done in a thread, or by an extension, whose current device is another one than that of its data.

All cases need two GPUs: with one there is no other device to be on. A new thread is on device 0, whatever the thread that started it had
set: it waits for that device, allocates there, and cannot launch on a stream of another one (400 is ``cudaErrorInvalidResourceHandle``).
"""

from __future__ import annotations

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
    _demand_two(lab)
    torch = torch_module()
    losses = lab.keep(torch.zeros(_COUNT, device="cuda:1"))
    host = lab.keep(torch.zeros(_COUNT, pin_memory=True))

    def reset(number: int) -> object:
        host.fill_(-1.0)
        losses.fill_(float(number))
        torch.cuda.synchronize(1)
        return 2.0 * number

    def call() -> object:
        try:
            return snippet.read_back(losses, host)
        finally:
            torch.cuda.synchronize(1)
            torch.cuda.set_device(0)

    return Trial(call, reset=reset)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_two(lab)
    return Trial(lambda: int(snippet.device_of_work(_COUNT) != 1), expected=1)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    _demand_two(lab)
    run = function(library, "run", ctypes.c_int, ctypes.c_int)
    return Trial(lambda: run(_COUNT), expected=_INVALID_HANDLE)


def _extension(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """Where the devices reach each other's memory, the kernel reads it too early; where they do not, it fails."""
    _demand_two(lab)
    torch = torch_module()
    torch.zeros(1, device="cuda:0").copy_(torch.ones(1, device="cuda:1"))  # PyTorch enables peer access with the first copy

    def status() -> int:
        try:
            return int(snippet.total(_COUNT, 3.0) != 6.0 * _COUNT)
        except RuntimeError as problem:
            if "CUDA error" in str(problem):
                return 1
            raise

    return Trial(status, expected=1)


CASES = (
    Case(
        RULE,
        "thread_waits_for_device_0",
        "torch",
        Experiment.DATA_RACE,
        "data race: the thread waits for device 0, and reads what device 1 has not written",
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
        "thread_launches_on_foreign_stream",
        "cuda",
        Experiment.ERROR,
        "the launch fails: the stream is of another device than the thread's (status 400)",
        "sl035_cuda",
        _cuda,
        devices=2,
    ),
    Case(
        RULE,
        "extension_without_guard",
        "torch",
        Experiment.ERROR,
        "the kernel runs on device 0, and reads device 1's memory too early or not at all (status 1: a wrong sum, or a CUDA error)",
        "sl035_torch_extension",
        _extension,
        devices=2,
        needs=("nvcc", "ninja"),
        builds=True,
    ),
)
