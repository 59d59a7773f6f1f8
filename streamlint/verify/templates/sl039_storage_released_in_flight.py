"""SL039: a tensor's storage is released while another stream has yet to read it.

The reader's stream is behind a gate. The storage goes back to the pool of the stream that allocated it, the next allocation of its size
gets the block and fills it: the reader sees the new values. The size is that of the template of SL007, for the same reason.
"""

from __future__ import annotations

from typing import Any

from streamlint.verify.cases import Case
from streamlint.verify.criteria import Experiment
from streamlint.verify.templates._common import FLOAT
from streamlint.verify.templates._trials import BLOCK, torch_copied

RULE, NAME = "SL039", "storage-released-in-flight"
_TAKEN = "data race: the second stream reads what the block's next owner has written"
_PARAMETERS: dict[str, Any] = {"bytes": FLOAT * BLOCK, "stream": "non-blocking"}


CASES = (
    Case(
        RULE,
        "resized_while_copied",
        "torch",
        Experiment.DATA_RACE,
        _TAKEN,
        "sl039_torch",
        torch_copied,
        _PARAMETERS,
        kinds=("resize",),
    ),
    Case(
        RULE,
        "replaced_while_copied",
        "torch",
        Experiment.DATA_RACE,
        _TAKEN,
        "sl039_torch_data",
        torch_copied,
        _PARAMETERS,
        kinds=("replace",),
    ),
)
