"""SL024: a loop that only asks takes the processor for as long as the device works."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import POINTER, function, torch_module

RULE, NAME = "SL024", "event-spin"
_TAKES = "takes a core while the device works"
_GATE_MS = 30.0


def _processor_time(lab: Lab, gate: int, wait: Callable[[], object]) -> Trial:
    """What the wait takes of the processor while the gate is shut."""

    def processor_ms() -> float:
        with lab.gate(gate) as shut:
            shut.open_after(_GATE_MS)
            before = time.thread_time()
            wait()
            return (time.thread_time() - before) * 1e3

    return Trial(processor_ms)


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(torch_module().cuda.Stream())
    return _processor_time(lab, handle_of(stream), lambda: snippet.wait_for(stream))


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    return _processor_time(lab, stream.ptr, lambda: snippet.wait_for(stream))


def _cuda(lab: Lab, library: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.stream(blocking=False)
    wait_for = function(library, "wait_for", None, POINTER)
    return _processor_time(lab, stream.ptr, lambda: wait_for(stream.ptr))


CASES = (
    Case(RULE, "spin_on_event", "torch", Experiment.COSTS, _TAKES, "sl024_torch", _torch),
    Case(RULE, "spin_on_event", "cupy", Experiment.COSTS, _TAKES, "sl024_cupy", _cupy),
    Case(RULE, "spin_on_event", "cuda", Experiment.COSTS, _TAKES, "sl024_cuda", _cuda),
)
