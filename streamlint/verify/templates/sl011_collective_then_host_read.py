"""SL011: a host read of a collective's result.

One rank is enough to see that ``wait()`` holds the stream and the read holds the host. With two, on two GPUs, what the host waits for is
the other rank: it joins only once the gate is open.
"""

from __future__ import annotations

import importlib
import multiprocessing
import threading
import time
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL011", "collective-then-host-read"
_LOOK_S = 0.0002
_FACTS = {"count": 1024}


def _distributed(torch: Any) -> Any:
    dist: Any = importlib.import_module("torch.distributed")
    if not dist.is_available() or not dist.is_nccl_available():
        raise UnsupportedError("the installed torch has no NCCL")
    return dist


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    dist = _distributed(torch)
    device = torch.device("cuda", torch.cuda.current_device())
    if dist.is_initialized():  # by the misuse, which ran first
        dist.destroy_process_group()
    dist.init_process_group("nccl", store=lab.keep(dist.HashStore()), rank=0, world_size=1, device_id=device)
    return Trial(lambda: lab.keep(snippet.average(parameters["count"])))


def _second_rank(orders: Any, port: int, count: int) -> None:
    """Rank 1, in a process of its own on the second GPU: joins one collective for each order."""
    torch: Any = importlib.import_module("torch")
    dist = _distributed(torch)
    device = torch.device("cuda", 1)
    torch.cuda.set_device(device)
    store = dist.TCPStore("127.0.0.1", port, 2, is_master=False)
    dist.init_process_group("nccl", store=store, rank=1, world_size=2, device_id=device)
    total = torch.ones(count, device=device)
    while orders.recv():
        dist.all_reduce(total)


class _World:
    """Two ranks. Both programs of the case use them: a group that was destroyed is not made again."""

    made: _World | None = None

    def __init__(self, lab: Lab, torch: Any, count: int) -> None:
        dist = _distributed(torch)
        store = lab.keep(dist.TCPStore("127.0.0.1", 0, 2, is_master=True, wait_for_workers=False))
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        self._lab, self._orders = lab, ours
        self._process = lab.keep(context.Process(target=_second_rank, args=(theirs, store.port, count), daemon=True))
        self._process.start()
        dist.init_process_group("nccl", store=store, rank=0, world_size=2, device_id=torch.device("cuda", 0))

    @classmethod
    def get(cls, lab: Lab, torch: Any, count: int) -> _World:
        cls.made = cls.made or cls(lab, torch, count)
        return cls.made

    def join_when_open(self) -> None:
        """Order the other rank into the collective as soon as no gate is shut."""

        def look() -> None:
            while not self._lab.is_open():
                time.sleep(_LOOK_S)
            self._orders.send(True)

        threading.Thread(target=look, daemon=True).start()


def _two_ranks(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    if torch.cuda.device_count() < 2:
        raise UnsupportedError("needs two GPUs")
    world = _World.get(lab, torch, parameters["count"])
    unused = lab.stream(blocking=False)  # the gate holds nothing of this GPU: the other rank takes it for its own

    def call() -> object:
        world.join_when_open()
        return lab.keep(snippet.average(parameters["count"]))

    return Trial(call, gate=unused.ptr)


CASES = (
    Case(RULE, "read_after_wait", "torch", Experiment.HOST_WAITS, "host waits for the collective", "sl011_torch", _torch, _FACTS),
    Case(
        RULE,
        "read_waits_for_the_other_rank",
        "torch",
        Experiment.HOST_WAITS,
        "host waits until the other rank has joined",
        "sl011_torch",
        _two_ranks,
        _FACTS,
        devices=2,
        kinds=(OTHER_CLAIM,),
    ),
)
