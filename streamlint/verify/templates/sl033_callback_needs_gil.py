"""SL033: the host waits, with the GIL held, for a stream that has a Python callback queued."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import floats

RULE, NAME = "SL033", "callback-needs-gil"
_DEADLOCK = "deadlock: the callback waits for the GIL, whose owner waits for the stream"
_COUNT = 1024
_LAPSE_S = 0.2  # device time before the callback's turn: the host is in its wait by then


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    rows = floats(lab, _COUNT)
    rows *= 2  # the kernel is loaded
    lab.settle()

    def flush() -> None:
        with lab.gate(snippet.stream.ptr, lapses_s=_LAPSE_S):
            snippet.flush(rows)

    return Trial(flush)


CASES = (Case(RULE, "wait_with_the_gil_held", "cupy", Experiment.DEADLOCK, _DEADLOCK, "sl033_cupy", _cupy),)
