"""SL029: a stream for each piece of work. Creating one is a call of the driver that takes its lock."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import floats

RULE, NAME = "SL029", "stream-churn"


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    blocks = [floats(lab, 256) for _ in range(parameters["rounds"])]
    return Trial(lambda: snippet.transform(blocks))


CASES = (
    Case(RULE, "stream_in_loop", "cupy", Experiment.COSTS, "a new stream costs more than the work", "sl029_cupy", _cupy, {"rounds": 50}),
)
