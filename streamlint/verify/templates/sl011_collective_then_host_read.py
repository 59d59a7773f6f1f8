"""SL011: a host read of a collective's result.

One rank is enough to see that ``wait()`` holds the stream and the read holds the host. With two, on two GPUs, what the host waits for is
the other rank: it joins only once the gate is open.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import OTHER_CLAIM, Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._ranks import Ranks, distributed

RULE, NAME = "SL011", "collective-then-host-read"
_FACTS = {"count": 1024}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    dist = distributed(torch, gpus=1)
    device = torch.device("cuda", torch.cuda.current_device())
    if dist.is_initialized():  # by the misuse, which ran first
        dist.destroy_process_group()
    dist.init_process_group("nccl", store=lab.keep(dist.HashStore()), rank=0, world_size=1, device_id=device)
    return Trial(lambda: lab.keep(snippet.average(parameters["count"])))


def _reduce_in_turns(torch: Any, orders: Any, count: int) -> None:
    """Rank 1 joins one collective for each order."""
    total = torch.ones(count, device="cuda")
    while orders.recv():
        torch.distributed.all_reduce(total)


def _two_ranks(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    ranks = Ranks.at(_reduce_in_turns, lab, parameters["count"])
    unused = lab.stream(blocking=False)  # the gate holds nothing of this GPU: the other rank takes it for its own

    def call() -> object:
        ranks.order_when_open("reduce")
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
