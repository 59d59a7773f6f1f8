"""Races: what uses memory, frees it or reads it while work on a stream may not be done with it.

In: work on streams. Out: pairs of accesses that nothing orders.
May import: the folders above.
"""
