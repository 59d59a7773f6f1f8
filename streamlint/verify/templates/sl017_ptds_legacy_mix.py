"""SL017: an extension of PyTorch that is built with per-thread default streams.

PyTorch hands its default stream over as 0. The legacy null stream waits for blocking streams; the thread's own stream does not, so the
extension reads before a blocking stream has written. The value is fetched by PyTorch, whose null stream waits for both.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module

RULE, NAME = "SL017", "ptds-legacy-mix"
_STALE = "data race: the extension does not wait for a blocking stream, as PyTorch's default stream does"
_FACTS: dict[str, Any] = {"bytes": 4096, "stream": "blocking"}
_COUNT = 1024


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    side = lab.stream(blocking=True)
    x = lab.keep(torch.zeros(_COUNT, device="cuda"))
    y = lab.keep(torch.zeros(_COUNT, device="cuda"))
    ones = lab.keep(torch.ones(_COUNT, device="cuda"))

    def reset(_round: int) -> object:
        x.zero_()
        y.zero_()
        return 2.0

    def call() -> object:
        lab.runtime.memcpyAsync(x.data_ptr(), ones.data_ptr(), 4 * _COUNT, 3, side.ptr)
        snippet.step(x, y)
        return y[0].item()

    return Trial(call, gate=side.ptr, reset=reset)


CASES = (
    Case(
        RULE,
        "extension_with_per_thread_streams",
        "torch",
        Experiment.DATA_RACE,
        _STALE,
        "sl017_torch",
        _torch,
        _FACTS,
        needs=("nvcc", "ninja"),
        builds=True,
    ),
)
