"""Which recordings are of one run: each begins with the id of its run.

A program that is recorded draws an id, and its child processes get it through the environment. Ranks that a launcher starts alike
(torchrun, mpirun, srun) have it from that launcher's process: its number and the time at which it was started.
"""

from __future__ import annotations

import os
import secrets

from streamlint.support.records import record

VARIABLE = "STREAMLINT_RECORD_SESSION"
# Environment variables of launchers with the number of ranks. Source: the manuals of torchrun, Open MPI, MPICH (Hydra) and Slurm.
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
_STARTED = 19  # the field of /proc/PID/stat behind the command's name that says when the process was started


@record(frozen=True, slots=True)
class Session:
    """The id of a run, and whether other processes may have it."""

    id: str
    is_shared: bool = False


def new() -> Session:
    """The session of a run that nobody has begun."""
    return Session(secrets.token_hex(8))


def own() -> Session:
    """The session of this process: its parent's, else that of the ranks that its launcher started, else a new one."""
    if inherited := os.environ.get(VARIABLE):
        return Session(inherited, is_shared=True)
    sizes = (os.environ.get(name, "") for name in _SIZES)
    if any(size.isdecimal() and int(size) > 1 for size in sizes) and (started := _started(os.getppid())):
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return Session(f"ranks-{os.getppid()}-{started}-{restarts}", is_shared=True)
    return new()


def _started(process: int) -> str:
    """When a process was started, in ticks since the machine was; empty where that cannot be read."""
    try:
        with open(f"/proc/{process}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[_STARTED]
    except (OSError, IndexError):
        return ""
