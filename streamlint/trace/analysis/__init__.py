"""What the calls of a recorded run have cost, by the line that made them.

`idle` says which idle time of the GPU follows from which call, `simulation` what the run would take without the waits of a line, `costs`
puts both together. Imports `records` and `trace` alone.
"""

from streamlint.trace.analysis.costs import costs_of

__all__ = ["costs_of"]
