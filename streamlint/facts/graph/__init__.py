"""What others ask: the values of registers, the call graph, conditions, and what of a program never runs.

In: the solver. Out: facts, with their reasons.
May import: ``code`` to ``cpp``.
"""
