"""SL043: a function that ``torch.compile`` compiles names streams, and the compiled code does not keep their order.

What it changes in place it changes in a buffer of its own, and copies back behind the waits that the program wrote; waits that give no
value may come before what they were written behind. The side stream is behind a gate. The reader's stream has the higher priority:
where nothing orders the two, its small kernel comes first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import FLOAT, torch_module

RULE, NAME = "SL043", "stream-in-compiled-region"
_STALE = "data race: the caller reads the old value behind the wait that the compiled function has written"
_COUNT = 1 << 24
_PARAMETERS: dict[str, Any] = {"bytes": FLOAT * _COUNT, "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return _reader(lab, snippet, lambda value: 2.0 * value + 1.0)


def _torch_join(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return _reader(lab, snippet, lambda value: 2.0 * value + 2.0)


def _reader(lab: Lab, snippet: Any, result: Any) -> Trial:
    torch = torch_module()
    side, reader = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream(priority=-1))
    values = lab.keep(torch.zeros(_COUNT, device="cuda"))

    def reset(number: int) -> object:
        values.fill_(float(number))
        return result(float(number))

    def call() -> object:
        with torch.cuda.stream(reader):
            return snippet.last(values, side)

    return Trial(call, gate=handle_of(side), reset=reset)


def _torch_fails(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    """1 where one of the first calls raises: the first compiles, the second warms up, the third records a graph."""
    torch = torch_module()
    values, side = lab.keep(torch.ones(1024, device="cuda")), lab.keep(torch.cuda.Stream())

    def call() -> object:
        try:
            for _ in range(4):
                snippet.last(values, side)
            torch.cuda.synchronize()
        except RuntimeError:
            return 1
        return 0

    return Trial(call, expected=1)


_NEEDS = ("python-headers",)  # Triton compiles the calls of its kernels
_STREAM = {"stream": "non-blocking"}
_FAILS = "the compiled function raises (1)"
CASES = (
    Case(RULE, "changed_in_place", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch", _torch, _PARAMETERS, needs=_NEEDS),
    Case(RULE, "waits_inside", "torch", Experiment.DATA_RACE, _STALE, "sl043_torch_join", _torch_join, _PARAMETERS, needs=_NEEDS),
    Case(RULE, "events_inside", "torch", Experiment.ERROR, _FAILS, "sl043_torch_events", _torch_fails, _STREAM, needs=_NEEDS),
    Case(RULE, "recorded_as_graph", "torch", Experiment.ERROR, _FAILS, "sl043_torch_graphs", _torch_fails, _STREAM, needs=_NEEDS),
)
