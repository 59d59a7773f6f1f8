"""Care for the machine: what is noticed before anything runs, and what is done about it. Fed with plain records, so tests need no GPU."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

# What would change the semantics under test: serialised launches, another default stream, no caching, few hardware queues.
UNSET = (
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_DEVICE_MAX_CONNECTIONS",
    "CUPY_CUDA_PER_THREAD_DEFAULT_STREAM",
    "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM",
    "NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM",
    "PYTORCH_NO_CUDA_MEMORY_CACHING",
    "PYTORCH_CUDA_ALLOC_CONF",
    "PYTORCH_ALLOC_CONF",
    "TORCH_CUDA_SANITIZER",
)
LEAST_BYTES = 256 << 20  # contexts, the lab's buffers and the largest template at its defaults
_BUSY = 20  # percent
_OLD = (11, 2)  # the first CUDA whose driver has the stream-ordered allocator that remedies use
_QUERY = "index,uuid,utilization.gpu,memory.total,memory.used,compute_mode,mig.mode.current,display_active"
_SMI_S = 20.0


@dataclass(frozen=True)
class Gpu:
    """One device as ``nvidia-smi`` sees it. Memory in bytes, utilization in percent."""

    index: int
    uuid: str = ""
    utilization: int = 0
    memory_total: int = 0
    memory_used: int = 0
    compute_mode: str = "Default"
    mig: bool = False
    display: bool = False
    processes: int = 0


@dataclass(frozen=True)
class Survey:
    """The machine before anything runs. ``gpus`` is empty where ``nvidia-smi`` says nothing."""

    gpus: tuple[Gpu, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    mps: bool = False
    wsl: bool = False


@dataclass
class Plan:
    """What is done: how much memory is taken, what the children's environment gets, what is said, and why nothing can run, if so."""

    memory: int
    environment: dict[str, str] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    stop: str | None = None
    one_process: bool = False  # no case may use a second process
    devices: int = 0  # how many are visible; 0: not known


def plan(survey: Survey, number: int, memory: int, probed: Mapping[str, object]) -> Plan:
    """What is noticed about the machine, and what is done about it. ``number`` counts among the visible devices."""
    found = Plan(memory)
    _variables(survey, found)
    _driver(probed, found)
    if survey.wsl:
        found.remarks.append(
            "WSL: the host's driver issues work in batches, so costs are not those of Linux; gates decide by order and hold"
        )
    visible = visible_gpus(survey)
    found.devices = len(visible)
    gpu = visible[number] if number < len(visible) else None
    if survey.gpus and gpu is None:
        found.stop = f"there is no GPU {number}: {_number(len(visible), 'GPU')} visible, counted from 0"
    if gpu is None:
        return found
    if len(visible) > 1:
        found.remarks.append(
            f"{len(visible)} GPUs: number {number} is used (--device chooses another); cases of two GPUs take one beside it"
        )
    _mode(survey, gpu, found)
    _busy(gpu, found)
    _room(gpu, found)
    return found


def _variables(survey: Survey, found: Plan) -> None:
    for name in UNSET:
        if survey.environment.get(name):
            found.remarks.append(f"{name} is set: left out for the programs under test, whose order or waits it would change")


def _driver(probed: Mapping[str, object], found: Plan) -> None:
    supported, needed = (_version(probed.get(key)) for key in ("cuda_driver", "cuda_runtime"))
    if supported and supported < _OLD:
        found.remarks.append(f"an old driver, for CUDA {probed['cuda_driver']}: remedies that need cudaMallocAsync come out INCONCLUSIVE")
    elif supported and needed and supported[0] < needed[0]:
        found.remarks.append(
            f"the driver is for CUDA {probed['cuda_driver']}, CuPy for {probed['cuda_runtime']}: what fails may be due to that"
        )


def _mode(survey: Survey, gpu: Gpu, found: Plan) -> None:
    mode = gpu.compute_mode.lower()
    if "prohibited" in mode:
        found.stop = f"GPU {gpu.index} is in compute mode 'prohibited': nothing may run on it"
    elif "exclusive" in mode and survey.mps:
        found.stop = f"GPU {gpu.index} is given to MPS alone: a program that hangs or crashes would take MPS's other clients with it"
    elif "exclusive" in mode and gpu.processes:
        found.stop = f"GPU {gpu.index} is in exclusive mode, and another process has it"
    elif "exclusive" in mode:
        found.one_process = True
        found.remarks.append(f"GPU {gpu.index} is in exclusive mode: programs run one at a time, those of two processes not at all")
    elif survey.mps:
        # An empty folder holds no daemon's pipe: the children then make contexts of their own.
        found.environment["CUDA_MPS_PIPE_DIRECTORY"] = ""
        found.remarks.append("MPS is running: the programs under test go past it, so that none that hangs or crashes touches its clients")
    if gpu.mig:
        found.remarks.append(f"GPU {gpu.index} is in MIG mode: the first instance is used, and verdicts are of that slice")
    if gpu.display:
        found.remarks.append(f"GPU {gpu.index} drives a screen, which may stand still for up to 3 s at a time")


def _busy(gpu: Gpu, found: Plan) -> None:
    if gpu.processes or gpu.utilization >= _BUSY:
        users = f"{_number(gpu.processes, 'other process', 'other processes')}, {gpu.utilization} % busy"
        found.remarks.append(f"GPU {gpu.index} is in use ({users}): gates decide by order and hold, costs may come out INCONCLUSIVE")


def _room(gpu: Gpu, found: Plan) -> None:
    free = gpu.memory_total - gpu.memory_used
    if not gpu.memory_total or free >= found.memory + LEAST_BYTES:
        return
    fitting = (free - LEAST_BYTES) // 2
    if fitting < LEAST_BYTES:
        found.stop = f"GPU {gpu.index} has {free >> 20} MiB free, {3 * LEAST_BYTES >> 20} MiB are needed"
        return
    found.memory = min(found.memory, fitting)
    found.remarks.append(f"GPU {gpu.index} has {free >> 20} MiB free: at most {found.memory >> 20} MiB are taken, and sizes cut to fit")


def visible_gpus(survey: Survey) -> list[Gpu]:
    """The devices that CUDA shows, in its order, with ``CUDA_DEVICE_ORDER=PCI_BUS_ID``."""
    words = survey.environment.get("CUDA_VISIBLE_DEVICES")
    if words is None:
        return list(survey.gpus)
    found = []
    for word in words.split(","):
        named = [gpu for gpu in survey.gpus if str(gpu.index) == word.strip() or (word.startswith("GPU-") and gpu.uuid.startswith(word))]
        if not named and word.startswith("MIG-"):
            named = [gpu for gpu in survey.gpus if gpu.mig][:1]
        if not named:  # CUDA ends its list at the first that it does not know
            break
        found.append(named[0])
    return found


def _version(text: object) -> tuple[int, ...] | None:
    found = re.fullmatch(r"(\d+)\.(\d+)", str(text))
    return (int(found[1]), int(found[2])) if found else None


def _number(count: int, noun: str, several: str = "") -> str:
    return f"{count} {noun if count == 1 else several or noun + 's'}"


def survey(environment: Mapping[str, str]) -> Survey:
    """Look at this machine. What cannot be found out is left at what is usual."""
    processes = _smi("--query-compute-apps=gpu_uuid,pid")
    gpus = read_gpus(_smi(f"--query-gpu={_QUERY}"), [row[0] for row in processes if row])
    return Survey(tuple(gpus), dict(environment), mps=_mps_runs(), wsl=_is_wsl())


def read_gpus(rows: Iterable[Sequence[str]], used: Sequence[str] = ()) -> list[Gpu]:
    """The devices from ``nvidia-smi``'s rows; ``used`` holds a device's uuid for each process on it."""
    found = []
    for row in rows:
        if len(row) == len(_QUERY.split(",")) and row[0].isdigit():
            index, uuid, busy, total, taken, mode, mig, display = row
            found.append(
                Gpu(
                    index=int(index),
                    uuid=uuid,
                    utilization=_integer(busy),
                    memory_total=_integer(total) << 20,
                    memory_used=_integer(taken) << 20,
                    compute_mode=mode,
                    mig=mig.lower() == "enabled",
                    display=display.lower() == "enabled",
                    processes=list(used).count(uuid),
                )
            )
    return found


def _integer(text: str) -> int:
    """``[N/A]`` and the like are 0."""
    return int(text) if text.isdigit() else 0


def _smi(query: str) -> list[list[str]]:
    nvidia_smi = shutil.which("nvidia-smi")
    if nvidia_smi is None:
        return []
    try:
        done = subprocess.run(
            [nvidia_smi, query, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=_SMI_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [[cell.strip() for cell in line.split(",")] for line in done.stdout.splitlines()] if done.returncode == 0 else []


def _mps_runs() -> bool:
    """Whether a process of that name is there. Its pipe may lie anywhere, and a stale one says nothing."""
    for path in Path("/proc").glob("[0-9]*/comm"):
        try:
            if path.read_text(encoding="utf-8").startswith("nvidia-cuda-mps"):
                return True
        except OSError:
            continue
    return False


def _is_wsl() -> bool:
    try:
        return "microsoft" in Path("/proc/version").read_text(encoding="utf-8").lower()
    except OSError:
        return False
