"""Value flow: the solver, and what puts objects into registers, attributes, containers, parameters and results.

In: a question for a node. Out: the objects that it may hold, each with where it came from.
May import: ``code``, ``files``.
"""
