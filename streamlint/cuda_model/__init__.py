"""What CUDA orders, what makes the host wait, which lock holds whom, and how sure each is: the one model behind prediction and lab.

``effects`` has a row for each call, ``facts`` the sentences that the rows rest on with their strengths and sources, ``clocks`` the order,
``capture`` what graph capture refuses, ``waits`` what is asked of a copy and of an allocation. The litmus runner
(``streamlint/litmus``) runs random programs against all of it. ``docs/cuda-model.md`` is generated from here.
"""

from __future__ import annotations

from streamlint.cuda_model.clocks import MAIN, NULL, Clock, Clocks, Stamp, covers
from streamlint.cuda_model.effects import EFFECTS, STAGED_BYTES, Effect, Scope, Work
from streamlint.cuda_model.facts import FACTS
from streamlint.cuda_model.strength import Fact, Strength
from streamlint.cuda_model.waits import HostWait, alloc_wait, copy_wait

__all__ = [
    "EFFECTS",
    "FACTS",
    "MAIN",
    "NULL",
    "STAGED_BYTES",
    "Clock",
    "Clocks",
    "Effect",
    "Fact",
    "HostWait",
    "Scope",
    "Stamp",
    "Strength",
    "Work",
    "alloc_wait",
    "copy_wait",
    "covers",
]
