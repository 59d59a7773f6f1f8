"""SL039: a tensor's storage is released while another stream has yet to read it.

The reader's stream is behind a gate. The storage goes back to the pool of the stream that allocated it, the next allocation of its size
gets the block and fills it: the reader sees the new values. The size is that of the template of SL007, for the same reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab, handle_of
from streamlint.verify.templates._common import FLOAT, torch_module
from streamlint.verify.templates._trials import Turn

RULE, NAME = "SL039", "storage-released-in-flight"
_TAKEN = "data race: the second stream reads what the block's next owner has written"
_COUNT = 4 << 20
_PARAMETERS: dict[str, Any] = {"bytes": FLOAT * _COUNT, "stream": "non-blocking"}


def _torch(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    stream, turn = lab.keep(torch_module().cuda.Stream()), Turn(copies=1)
    return Trial(lambda: snippet.copied(turn.value, _COUNT, stream), gate=handle_of(stream), reset=turn.reset)


CASES = (
    Case(RULE, "resized_while_copied", "torch", Experiment.DATA_RACE, _TAKEN, "sl039_torch", _torch, _PARAMETERS, kinds=("resize",)),
    Case(RULE, "replaced_while_copied", "torch", Experiment.DATA_RACE, _TAKEN, "sl039_torch_data", _torch, _PARAMETERS, kinds=("replace",)),
)
