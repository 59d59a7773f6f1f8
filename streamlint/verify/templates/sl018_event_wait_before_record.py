"""SL018: a stream waits for an event before it is recorded, and so for nothing."""

from __future__ import annotations

from typing import Any

from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment
from streamlint.verify.templates._trials import BYTES, cuda_pass_on, cuda_python_pass_on, cupy_total, torch_total

RULE, NAME = "SL018", "event-wait-before-record"
_STALE = "data race: the wait comes before the record, and the second stream does not wait"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}


CASES = (
    Case(RULE, "stream_waits_too_early", "torch", Experiment.DATA_RACE, _STALE, "sl018_torch", torch_total, _PARAMETERS),
    Case(RULE, "stream_waits_too_early", "cupy", Experiment.DATA_RACE, _STALE, "sl018_cupy", cupy_total, _PARAMETERS),
    Case(
        RULE,
        "stream_waits_too_early",
        "cuda-python",
        Experiment.DATA_RACE,
        _STALE,
        "sl018_cuda_python",
        cuda_python_pass_on,
        _PARAMETERS,
    ),
    Case(RULE, "stream_waits_too_early", "cuda", Experiment.DATA_RACE, _STALE, "sl018_cuda", cuda_pass_on, _PARAMETERS),
)
