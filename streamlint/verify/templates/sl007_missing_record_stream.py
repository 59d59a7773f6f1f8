"""SL007: the allocator reuses a block on its own stream while another stream has yet to read it.

The reader's stream is behind a gate. The block's last reference goes, and the next allocation of its size on the first stream gets it and
fills it: the reader sees the new values. Measured by hand on an H200: without ``record_stream`` 19 of 20 runs were wrong, with it none.

The size is such that a block is neither split nor joined with a neighbour: from 10 MiB on PyTorch takes a segment of its own for each
(CUDACachingAllocator.cpp, ``kMinLargeAlloc``), and what is free and fits exactly is taken first. CuPy's pool keeps free blocks by size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamlint.verify.cases import Case, Trial
from streamlint.verify.criteria import Experiment
from streamlint.verify.lab import Lab
from streamlint.verify.templates._common import FLOAT
from streamlint.verify.templates._trials import BLOCK, Turn, torch_copied

RULE, NAME = "SL007", "missing-record-stream"
_TAKEN = "data race: the second stream reads what the block's next owner has written"
_PARAMETERS: dict[str, Any] = {"bytes": FLOAT * BLOCK, "stream": "non-blocking"}


def _cupy(lab: Lab, snippet: Any, parameters: Mapping[str, Any]) -> Trial:
    first, second = lab.stream(blocking=False), lab.stream(blocking=False)
    turn = Turn(copies=1)
    return Trial(lambda: snippet.copied(turn.value, BLOCK, first, second), gate=second.ptr, reset=turn.reset)


CASES = (
    Case(RULE, "dropped_while_copied", "torch", Experiment.DATA_RACE, _TAKEN, "sl007_torch", torch_copied, _PARAMETERS),
    Case(RULE, "dropped_while_copied", "cupy", Experiment.DATA_RACE, _TAKEN, "sl007_cupy", _cupy, _PARAMETERS),
)
