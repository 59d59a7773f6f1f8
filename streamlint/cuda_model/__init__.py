"""What CUDA orders, what makes the host wait, which lock holds whom, and how sure each is: the one model behind prediction and lab.

``effects`` has a row for each call, ``facts`` the sentences that the rows rest on with their strengths and sources, ``clocks`` the order,
``capture`` what graph capture refuses. The litmus runner (``streamlint/litmus``) runs random programs against all of it.
``docs/cuda-model.md`` is generated from here.
"""

from __future__ import annotations

from streamlint.cuda_model.clocks import MAIN, NULL, Clock, Clocks, Stamp, covers
from streamlint.cuda_model.effects import EFFECTS, Effect, Scope, Work
from streamlint.cuda_model.facts import FACTS, SENTENCES
from streamlint.cuda_model.strength import Fact, Strength

__all__ = [
    "EFFECTS",
    "FACTS",
    "MAIN",
    "NULL",
    "SENTENCES",
    "Clock",
    "Clocks",
    "Effect",
    "Fact",
    "Scope",
    "Stamp",
    "Strength",
    "Work",
    "covers",
]
