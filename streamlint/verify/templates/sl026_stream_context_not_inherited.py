"""SL026: a thread that is started under a stream works on the default stream.

The stream is held shut before the value is written; the thread adds up what was there before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import floats, torch_module
from streamlint.verify.templates._trials import COUNT, refilled

RULE, NAME = "SL026", "stream-context-not-inherited"
_STALE = "data race: the thread reads on its default stream what the stream has not written yet"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    values = lab.keep(torch.zeros(COUNT, device="cuda"))
    return Trial(lambda: snippet.total(values), gate=handle_of(snippet.side), reset=refilled(values.fill_, COUNT, more=COUNT))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    values = floats(lab, COUNT)
    return Trial(lambda: snippet.total(values, stream), gate=stream.ptr, reset=refilled(values.fill, COUNT, more=COUNT))


CASES = (
    Case(RULE, "thread_under_stream", "torch", Experiment.DATA_RACE, _STALE, "sl026_torch", _torch),
    Case(RULE, "thread_under_stream", "cupy", Experiment.DATA_RACE, _STALE, "sl026_cupy", _cupy),
)
