"""SL036: an event is destroyed while another process has yet to open the handle that it was sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates.sl012_mp_cuda_tensor import ready_for_processes

RULE, NAME = "SL036", "ipc-event-too-short-lived"
_FAILS = "the other process cannot open the handle, or wait for the event (1)"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    ready_for_processes()
    return Trial(lambda: int(snippet.run() != "done"), expected=1)


CASES = (Case(RULE, "event_of_a_function", "torch", Experiment.ERROR, _FAILS, "sl036_torch", _torch),)
