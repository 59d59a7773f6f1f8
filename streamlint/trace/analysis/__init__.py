"""What the places of a recorded run cost: host time, idle time of the GPU, and an estimate of what the removal of their waits gains.

`timeline` puts calls and work of each process together, `places` groups calls by the user's lines, `waits` says what held each call,
`idle` finds whom a GPU's gaps belong to, `ranks` what was waiting for other ranks, `streams` what the default stream serialized and which
launches were held up, `simulation` and `gains` replay the timeline without the waits of a place, `costs` sums up all of it.
"""

from streamlint.trace.analysis.costs import costs_of

__all__ = ["costs_of"]
