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
from streamlint.verify.templates._trials import Turn

RULE, NAME = "SL027", "foreign-library-stream"
_COUNT = 1024


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch_module()
    now = [0.0]

    def reset(number: int) -> object:
        now[0] = float(number)
        return float(number * _COUNT)

    return Trial(lambda: snippet.total(now[0], _COUNT), gate=handle_of(snippet.side), reset=reset)


def _numba(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    numba_cuda()
    turn = Turn()

    def reset(number: int) -> object:
        turn.reset(number)
        return 2.0 * number * _COUNT

    return Trial(lambda: snippet.total(turn.value, _COUNT), gate=handle_of(snippet.side), reset=reset)


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
