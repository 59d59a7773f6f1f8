"""SL032: a stream waits for itself or for the default stream, and the work that it then uses is on another one.

With the writer behind a gate the reader runs all the same. A tensor that is marked as used on the stream it was made on is not marked
at all: its block is reused while another stream reads it, as in SL007.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import FLOAT, torch_module
from streamlint.verify.templates._trials import BLOCK, BYTES, Turn, cuda_pass_on, cupy_total, torch_total

RULE, NAME = "SL032", "wait-on-wrong-stream"
_ITSELF = "data race: the stream waits for itself, and reads before the other one has written"
_DEFAULT = "data race: the stream waits for the default stream, and reads before the other one has written"
_TAKEN = "data race: the second stream reads what the block's next owner has written"
_PARAMETERS: dict[str, Any] = {"bytes": BYTES, "stream": "non-blocking"}


def _torch_mark(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    torch = torch_module()
    first, second = lab.keep(torch.cuda.Stream()), lab.keep(torch.cuda.Stream())
    turn = Turn(copies=1)
    return Trial(lambda: snippet.copied(turn.value, BLOCK, first, second), gate=handle_of(second), reset=turn.reset)


_MARKED = {**_PARAMETERS, "bytes": FLOAT * BLOCK}
CASES = (
    Case(RULE, "waits_for_itself", "torch", Experiment.DATA_RACE, _ITSELF, "sl032_torch", torch_total, _PARAMETERS),
    Case(RULE, "waits_for_default", "torch", Experiment.DATA_RACE, _DEFAULT, "sl032_torch_default", torch_total, _PARAMETERS),
    Case(RULE, "marked_for_itself", "torch", Experiment.DATA_RACE, _TAKEN, "sl032_torch_mark", _torch_mark, _MARKED),
    Case(RULE, "waits_for_itself", "cupy", Experiment.DATA_RACE, _ITSELF, "sl032_cupy", cupy_total, _PARAMETERS),
    Case(RULE, "waits_for_itself", "cuda", Experiment.DATA_RACE, _ITSELF, "sl032_cuda", cuda_pass_on, _PARAMETERS),
)
