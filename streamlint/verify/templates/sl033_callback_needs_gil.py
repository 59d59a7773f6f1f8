"""SL033: the host waits, with the GIL held, for a stream that has a Python callback queued.

Measured on an H100 (driver 580.159, PyTorch 2.11, CuPy 14.2): with the GIL held, waits for the stream, an event on it, the device or a
stream behind it hang, as do ``cudaFree`` and a kernel behind 1,100 others on the stream (not behind 1,000); other calls return. Of the
libraries' calls ``torch.save``, ``Tensor.numpy(force=True)`` and copies of storages keep the GIL.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import floats, torch_module

RULE, NAME = "SL033", "callback-needs-gil"
_DEADLOCK = "deadlock: the callback waits for the GIL, whose owner waits for the stream"
_COUNT = 1024
_LAPSE_S = 0.2  # device time before the callback's turn: the host is in its wait by then


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    rows = floats(lab, _COUNT)
    rows *= 2  # the kernel is loaded
    lab.synchronize()

    def flush() -> None:
        with lab.gate(snippet.stream.ptr, lapses_s=_LAPSE_S):
            snippet.flush(rows)

    return Trial(flush)


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    torch.save(torch.ones(_COUNT, device="cuda"), io.BytesIO())
    lab.synchronize()

    def checkpoint() -> None:
        with lab.gate(handle_of(snippet.side), lapses_s=_LAPSE_S):
            snippet.checkpoint(io.BytesIO())

    return Trial(checkpoint)


CASES = (
    Case(RULE, "wait_with_the_gil_held", "cupy", Experiment.DEADLOCK, _DEADLOCK, "sl033_cupy", _cupy),
    Case(RULE, "save_with_the_gil_held", "torch", Experiment.DEADLOCK, _DEADLOCK, "sl033_torch", _torch),
)
