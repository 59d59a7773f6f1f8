"""Two ranks, each a process with a GPU of its own: the child is rank 0, and rank 1 does what it is told.

NVLink multicast stays off in both: a program that ends while it is in use can put the GPUs of a host out of service.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.util
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from streamlint.verify.cases import UnsupportedError
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

LOOK_S = 0.0002
_QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
_PR_SET_PDEATHSIG = 1
Work = Callable[[Any, Any, Any, Any], None]
"""What rank 1 does: with torch, the snippet, the end of a pipe that orders come through, and its parameters."""


def distributed(torch: Any) -> Any:
    """``torch.distributed``, if it has NCCL and sees two GPUs."""
    dist: Any = importlib.import_module("torch.distributed")
    if not dist.is_available() or not dist.is_nccl_available():
        raise UnsupportedError("the installed torch has no NCCL")
    if torch.cuda.device_count() < 2:
        raise UnsupportedError("needs two GPUs")
    return dist


def _join(dist: Any, torch: Any, store: Any, rank: int) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=2, device_id=torch.device("cuda", rank))


def _second(work: Work, path: str, orders: Any, port: int, parameters: Any) -> None:
    """Rank 1, in a process of its own on the second GPU."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # it may hang in a collective
    torch: Any = importlib.import_module("torch")
    dist = distributed(torch)
    _join(dist, torch, dist.TCPStore("127.0.0.1", port, 2, is_master=False), 1)
    with contextlib.suppress(EOFError):  # the child has ended
        work(torch, load(path), orders, parameters)


def load(path: str) -> Any:
    """Import a snippet, in rank 1."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ranks:
    """Two ranks for the programs of a child: a group that was destroyed is not made again, so both programs of a case use the same."""

    made: Ranks | None = None

    def __init__(self, lab: Lab, work: Work, snippet: Any, parameters: Any) -> None:
        os.environ.update(_QUIET)
        torch = torch_module()
        dist = distributed(torch)
        store = lab.keep(dist.TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False))
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        path = str(Path(snippet.__file__).resolve())
        given = (work, path, theirs, store.port, parameters)
        self._lab, self._orders = lab, ours
        self.process = lab.keep(context.Process(target=_second, args=given, daemon=True))
        self.process.start()
        theirs.close()
        _join(dist, torch, store, 0)

    def order(self, what: object) -> None:
        """Have rank 1 do something."""
        self._orders.send(what)

    def answer(self) -> object:
        """What rank 1 says."""
        return self._orders.recv()

    def order_when_open(self, what: object) -> None:
        """Have rank 1 do something as soon as no gate is shut."""

        def look() -> None:
            while not self._lab.is_open():
                time.sleep(LOOK_S)
            self._orders.send(what)

        threading.Thread(target=look, daemon=True).start()
