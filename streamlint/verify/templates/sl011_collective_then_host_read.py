"""SL011: a host read of a collective's result. One rank is enough to see that ``wait()`` holds the stream and the read holds the host."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial, UnsupportedError
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL011", "collective-then-host-read"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    dist: Any = importlib.import_module("torch.distributed")
    if not dist.is_available() or not dist.is_nccl_available():
        raise UnsupportedError("the installed torch has no NCCL")
    device = torch.device("cuda", torch.cuda.current_device())
    if dist.is_initialized():  # by the misuse, which ran first
        dist.destroy_process_group()
    dist.init_process_group("nccl", store=lab.keep(dist.HashStore()), rank=0, world_size=1, device_id=device)
    return Trial(lambda: lab.keep(snippet.average(parameters["count"])))


CASES = (
    Case(RULE, "read_after_wait", "torch", Experiment.HOST_WAITS, "host waits for the collective", "sl011_torch", _torch, {"count": 1024}),
)
