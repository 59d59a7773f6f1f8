"""Checks: one module for each rule, with its page, its evidence in the model and the words of its findings; the folder is the registry.

In: operations, as `findings.operations` has them. Out: findings. May import: ``findings``, ``support``.
"""
