"""SL027: a second library works on memory of the first one, on a stream that nothing orders with the first one's.

PyTorch's streams are non-blocking, and CuPy's current stream is the null stream whatever PyTorch's is: the kernel reads the old value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import numba_cuda, torch_module
from streamlint.verify.templates._trials import COUNT, Turn

RULE, NAME = "SL027", "foreign-library-stream"


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    turn = Turn()
    return Trial(lambda: snippet.total(turn.value, COUNT), gate=handle_of(snippet.side), reset=turn.reset)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    numba_cuda()
    turn = Turn(copies=2 * COUNT)
    return Trial(lambda: snippet.total(turn.value, COUNT), gate=handle_of(snippet.side), reset=turn.reset)


CASES = (
    Case(RULE, "cupy_under_torch_stream", "torch", Experiment.DATA_RACE, "data race: CuPy reads the old value", "sl027_torch_cupy", _cupy),
    Case(
        RULE,
        "numba_under_torch_stream",
        "torch",
        Experiment.DATA_RACE,
        "data race: the numba kernel reads the old value",
        "sl027_torch_numba",
        _numba,
        needs=("numba",),
    ),
)
