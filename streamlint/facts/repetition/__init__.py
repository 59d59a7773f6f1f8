"""Rounds: which loops train, decode or serve, how often they go round, and what each round may do to devices.

In: the call graph. Out: hot regions, trips and effects.
May import: ``code`` to ``graph``.
"""
