"""Two ranks, each a process with a GPU of its own: the child is rank 0, and rank 1 does what it is sent.

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
from typing import Any, ClassVar

from streamlint.verify.cases import UnsupportedError
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

LOOK_S = 0.0002
_QUIET = {"NCCL_NVLS_ENABLE": "0", "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1", "NVSHMEM_DISABLE_NVLS": "1"}
_PR_SET_PDEATHSIG = 1
Work = Callable[..., None]
"""What rank 1 does until an order is false: with torch, the end of a pipe that orders come through, and its parameters."""


def distributed(torch: Any, gpus: int = 2) -> Any:
    """``torch.distributed``, if it has NCCL and sees that many GPUs. Raises :class:`UnsupportedError`."""
    dist: Any = importlib.import_module("torch.distributed")
    if not dist.is_available() or not dist.is_nccl_available():
        raise UnsupportedError("the installed torch has no NCCL")
    if torch.cuda.device_count() < gpus:
        raise UnsupportedError("needs two GPUs" if gpus == 2 else "needs a GPU")
    return dist


def _join(dist: Any, torch: Any, store: Any, rank: int) -> None:
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", store=store, rank=rank, world_size=2, device_id=torch.device("cuda", rank))


def _second(orders: Any, port: int) -> None:
    """Rank 1, in a process of its own on the second GPU: does one work after the other."""
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # it may hang in a collective
    torch: Any = importlib.import_module("torch")
    dist = distributed(torch)
    _join(dist, torch, dist.TCPStore("127.0.0.1", port, 2, is_master=False), 1)
    do_works(torch, orders)


def do_works(torch: Any, orders: Any) -> None:
    """What rank 1 does until the child ends: works as they come, each until the child ends it."""
    with contextlib.suppress(EOFError):
        while True:
            work, parameters = orders.recv()
            work(torch, orders, *parameters)


def path_of(snippet: Any) -> str:
    """Where a snippet lies, for rank 1 to load."""
    return str(Path(snippet.__file__).resolve())


def load(path: str) -> Any:
    """Import a snippet, in rank 1."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Ranks:
    """Two ranks for all programs of a child: a group that was destroyed is not remade, and there is one default group in a process."""

    _made: ClassVar[Ranks | None] = None

    def __init__(self, lab: Lab) -> None:
        os.environ.update(_QUIET)
        torch = torch_module()
        dist = distributed(torch)
        store = lab.keep(dist.TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False))
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._lab, self._orders = lab, ours
        self._works: tuple[Work, tuple[Any, ...]] | None = None  # what rank 1 does at present, and its parameters
        lab.keep(context.Process(target=_second, args=(theirs, store.port), daemon=True)).start()
        theirs.close()
        _join(dist, torch, store, 0)

    @classmethod
    def at(cls, work: Work, lab: Lab, *parameters: Any) -> Ranks:
        """The two ranks, with rank 1 at a work; one that it does already, with the same parameters, goes on."""
        cls._made = cls._made or cls(lab)
        cls._made._begin(work, parameters)
        return cls._made

    def _begin(self, work: Work, parameters: tuple[Any, ...]) -> None:
        if self._works == (work, parameters):
            return
        if self._works is not None:
            self._orders.send(None)
        self._works = work, parameters
        self._orders.send(self._works)

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
