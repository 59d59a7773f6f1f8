"""SL036: an event is destroyed while another process has yet to open the handle that it was sent.

"Performing operations on the imported event after the exported event has been freed with cudaEventDestroy will result in undefined
behavior" (``cuda_runtime_api.h``, ``cudaIpcGetEventHandle``). Measured on an H100 (driver 580.159): the handle of a destroyed event
can be opened. As long as its work is under way, the importer waits for that; then the next event has the same handle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import torch_module
from streamlint.verify.templates._trials import COUNT, refilled
from streamlint.verify.templates.sl012_mp_cuda_tensor import Reader

RULE, NAME = "SL036", "ipc-event-too-short-lived"
_RACES = "data race: the other process waits for an event that its owner has destroyed"
_ANOTHER = "the other process fails, or asks a later event, which is not done (1)"


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    values = lab.keep(torch.zeros(COUNT, device="cuda"))
    reader = lab.keep(Reader(lab, snippet))
    lab.synchronize()
    reader.inbox.put(values)
    reset = refilled(values.fill_, COUNT, more=COUNT)
    return Trial(lambda: snippet.hand_over(values, reader.inbox, reader.outbox), gate=handle_of(snippet.side), reset=reset)


def _later(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    reader = lab.keep(Reader(lab, snippet))
    reader.outbox.get()

    def run() -> int:
        with lab.gate(handle_of(snippet.side)):
            return int(snippet.hand_over(reader.inbox, reader.outbox) != "done")

    return Trial(run, expected=1)


CASES = (
    Case(RULE, "event_of_a_function", "torch", Experiment.DATA_RACE, _RACES, "sl036_torch", _torch),
    Case(RULE, "handle_of_an_earlier_event", "torch", Experiment.ERROR, _ANOTHER, "sl036_later", _later),
)
