"""SL006: one stream reads what another is still writing.

With the writer behind a gate the reader runs all the same, and sees what the memory held before.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import host_floats, numba_cuda, torch_module
from streamlint.verify.templates._trials import BYTES, COUNT, Turn, cuda_pass_on, cuda_python_pass_on, cupy_total

RULE, NAME = "SL006", "cross-stream-use-without-wait"
_STALE = "data race: the second stream reads before the first has written"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream = lab.keep(torch_module().cuda.Stream())
    turn = Turn()
    return Trial(lambda: snippet.total(turn.value, stream), gate=handle_of(stream), reset=turn.reset)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    cuda = numba_cuda()
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    streams = lab.keep([cuda.external_stream(stream.ptr) for stream in (first, second)])
    host, turn = host_floats(lab, COUNT, "pinned"), Turn()
    return Trial(lambda: snippet.total(host, turn.value, *streams), gate=first.ptr, reset=turn.reset)


CASES = (
    Case(RULE, "read_on_current_stream", "torch", Experiment.DATA_RACE, _STALE, "sl006_torch", _torch, _PARAMETERS),
    Case(RULE, "read_on_other_stream", "cupy", Experiment.DATA_RACE, _STALE, "sl006_cupy", cupy_total, _PARAMETERS),
    Case(RULE, "copy_on_other_stream", "numba", Experiment.DATA_RACE, _STALE, "sl006_numba", _numba, _PARAMETERS),
    Case(
        RULE,
        "copy_on_other_stream",
        "cuda-python",
        Experiment.DATA_RACE,
        _STALE,
        "sl006_cuda_python",
        cuda_python_pass_on,
        _PARAMETERS,
    ),
    Case(RULE, "copy_on_other_stream", "cuda", Experiment.DATA_RACE, _STALE, "sl006_cuda", cuda_pass_on, _PARAMETERS),
)
