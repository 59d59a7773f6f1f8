"""Graphs: what is captured, what a capture refuses, what a replay reads; and functions that a compiler takes apart.

In: calls that begin and end captures. Out: what a graph has of the memory and of the streams around it.
May import: ``places`` to ``walk``.
"""
