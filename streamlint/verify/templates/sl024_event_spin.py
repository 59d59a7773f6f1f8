"""SL024: a loop that only asks takes the processor for as long as the device works."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab

RULE, NAME = "SL024", "event-spin"
_GATE_MS = 30.0


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)

    def processor_ms() -> float:
        with lab.gate(stream.ptr) as gate:
            gate.open_after(_GATE_MS)
            before = time.thread_time()
            snippet.wait_for(stream)
            return (time.thread_time() - before) * 1e3

    return Trial(processor_ms)


CASES = (Case(RULE, "spin_on_event", "cupy", Experiment.COSTS, "takes a core while the device works", "sl024_cupy", _cupy),)
