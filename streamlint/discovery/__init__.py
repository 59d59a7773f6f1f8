"""Which files belong to a run: paths and patterns, words of CUDA, and files that others lead to.

In: paths and settings. Out: the files to read.
May import: ``config``, ``facts`` (how modules are named), ``models``, ``findings``, ``support``.
"""
