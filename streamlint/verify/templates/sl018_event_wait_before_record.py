"""SL018: a stream waits for an event before it is recorded, and so for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._trials import BYTES, Turn, passed_between_streams, passed_between_streams_in_python

RULE, NAME = "SL018", "event-wait-before-record"
_STALE = "data race: the wait comes before the record, and the second stream does not wait"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    first, second = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream())
    turn = Turn()
    return Trial(lambda: snippet.total(turn.value, first, second), gate=handle_of(first), reset=turn.reset)


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    return passed_between_streams(lab, library)


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    turn = Turn()
    return Trial(lambda: snippet.total(turn.value, first, second), gate=first.ptr, reset=turn.reset)


def _cuda_python(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    return passed_between_streams_in_python(lab, snippet)


CASES = (
    Case(RULE, "stream_waits_too_early", "torch", Experiment.DATA_RACE, _STALE, "sl018_torch", _torch, _PARAMETERS),
    Case(RULE, "stream_waits_too_early", "cupy", Experiment.DATA_RACE, _STALE, "sl018_cupy", _cupy, _PARAMETERS),
    Case(RULE, "stream_waits_too_early", "cuda-python", Experiment.DATA_RACE, _STALE, "sl018_cuda_python", _cuda_python, _PARAMETERS),
    Case(RULE, "stream_waits_too_early", "cuda", Experiment.DATA_RACE, _STALE, "sl018_cuda", _cuda, _PARAMETERS),
)
