"""The facts of the model, each with its strength and its source. ``streamlint litmus`` holds them against the GPU.

Documents: CUDA Runtime API 13.0, "API synchronization behavior" and "Stream synchronization behavior"; CUDA Programming Guide 13.0,
"Asynchronous Execution" (2.3), "CUDA Graphs" (4.2), "Lazy Loading" (4.7); ``cuda_runtime_api.h`` of CUDA 13.0. "H200" is what an NVIDIA
H200 with driver 580.159 did in the litmus runs kept in ``streamlint/litmus/evidence``.
"""

from __future__ import annotations

from streamlint.cuda_model.facts.captures import CAPTURES
from streamlint.cuda_model.facts.locks import LOCKS
from streamlint.cuda_model.facts.order import ORDER
from streamlint.cuda_model.facts.pools import POOLS
from streamlint.cuda_model.facts.ranks import RANKS
from streamlint.cuda_model.facts.waits import WAITS
from streamlint.cuda_model.strength import Fact

GROUPS: dict[str, tuple[Fact, ...]] = {
    "What is behind what": ORDER,
    "What the host waits for": WAITS,
    "Who is held while another thread waits": LOCKS,
    "Stream capture": CAPTURES,
}
FACTS: dict[str, Fact] = {fact.name: fact for group in GROUPS.values() for fact in group}
SENTENCES: dict[str, Fact] = {**FACTS, **{fact.name: fact for fact in (*POOLS, *RANKS)}}
"""All that rules may rest on: also what no program of one process on one GPU can contradict, and litmus does not ask."""
