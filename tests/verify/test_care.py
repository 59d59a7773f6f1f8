"""What is noticed about a machine, and what is done about it: records in, plans out."""

from __future__ import annotations

import pytest

from streamlint.verify.care import LEAST_BYTES, Gpu, Plan, Survey, plan, read_gpus, visible_gpus

GIB = 1 << 30
IDLE = Gpu(0, "GPU-aaaa", memory_total=16 * GIB, memory_used=GIB)
PROBED = {"cuda_driver": "13.0", "cuda_runtime": "13.0"}


def _plan(survey: Survey, number: int = 0, **probed: str) -> Plan:
    return plan(survey, number, GIB, {**PROBED, **probed})


def _with(**changes: object) -> Survey:
    from dataclasses import replace

    return Survey((replace(IDLE, **changes),))  # type: ignore[arg-type]


def test_an_idle_machine_needs_no_remark() -> None:
    assert _plan(Survey((IDLE,))) == Plan(GIB, devices=1)


def test_a_machine_of_which_nothing_is_known_runs() -> None:
    assert _plan(Survey()) == Plan(GIB)


@pytest.mark.parametrize(
    ("survey", "words"),
    [
        (_with(utilization=83, processes=2), "GPU 0 is in use (2 other processes, 83 % busy)"),
        (_with(processes=1), "1 other process"),
        (_with(mig=True), "MIG mode: the first instance"),
        (_with(display=True), "drives a screen"),
        (_with(compute_mode="Exclusive_Process"), "exclusive mode: programs run one at a time"),
        (Survey((IDLE,), environment={"CUDA_LAUNCH_BLOCKING": "1"}), "CUDA_LAUNCH_BLOCKING is set: left out"),
        (Survey((IDLE,), wsl=True), "WSL"),
        (Survey((IDLE,), mps=True), "MPS is running: the programs under test go past it"),
        (Survey((IDLE, Gpu(1, "GPU-bbbb", memory_total=GIB * 16))), "2 GPUs: number 0 is used (--device chooses another)"),
        (_with(memory_used=15 * GIB), "1024 MiB free: at most 384 MiB are taken"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_one_remark_says_what_is_done(survey: Survey, words: str) -> None:
    found = _plan(survey)
    assert found.stop is None
    (remark,) = found.remarks
    assert words in remark


@pytest.mark.parametrize(
    ("survey", "number", "words"),
    [
        (_with(compute_mode="Prohibited"), 0, "'prohibited'"),
        (_with(compute_mode="Exclusive_Process", processes=1), 0, "another process has it"),
        (Survey(_with(compute_mode="Exclusive_Process").gpus, mps=True), 0, "given to MPS alone"),
        (_with(memory_used=16 * GIB - LEAST_BYTES), 0, "256 MiB free, 768 MiB are needed"),
        (Survey((IDLE,)), 1, "there is no GPU 1: 1 GPU visible"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_some_machines_are_left_alone(survey: Survey, number: int, words: str) -> None:
    stop = _plan(survey, number).stop
    assert stop is not None
    assert words in stop


def test_exclusive_mode_has_no_room_for_a_second_process() -> None:
    assert _plan(_with(compute_mode="Exclusive_Process")).one_process
    assert not _plan(_with()).one_process


def test_past_mps_needs_a_folder_without_its_pipe() -> None:
    assert _plan(Survey((IDLE,), mps=True)).environment == {"CUDA_MPS_PIPE_DIRECTORY": ""}  # the device fills its scratch folder in


def test_old_drivers() -> None:
    assert "an old driver, for CUDA 11.1" in _plan(Survey((IDLE,)), cuda_driver="11.1").remarks[0]
    assert "the driver is for CUDA 12.4, CuPy for 13.0" in _plan(Survey((IDLE,)), cuda_driver="12.4").remarks[0]
    assert _plan(Survey((IDLE,)), cuda_driver="13.2").remarks == []


def test_devices_are_counted_as_cuda_shows_them() -> None:
    second = Gpu(1, "GPU-bbbb")

    def shown(value: str | None) -> list[int]:
        return [gpu.index for gpu in visible_gpus(Survey((IDLE, second), {} if value is None else {"CUDA_VISIBLE_DEVICES": value}))]

    assert shown(None) == [0, 1]
    assert shown("1,0") == [1, 0]
    assert shown("GPU-bb") == [1]
    assert shown("1,-1,0") == [1]
    assert shown("") == []


def test_rows_of_nvidia_smi() -> None:
    rows = [
        ["0", "GPU-aaaa", "7", "143771", "512", "Default", "Disabled", "Disabled"],
        ["1", "GPU-bbbb", "[N/A]", "143771", "0", "Exclusive_Process", "Enabled", "[N/A]"],
        ["No devices were found"],
    ]
    first, second = read_gpus(rows, ["GPU-aaaa", "GPU-aaaa"])
    assert first == Gpu(0, "GPU-aaaa", 7, 143771 << 20, 512 << 20, "Default", False, False, 2)
    assert (second.utilization, second.mig, second.display, second.processes) == (0, True, False, 0)
