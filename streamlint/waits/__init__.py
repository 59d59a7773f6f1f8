"""Waits of the host in hot regions (SL020, SL021), decided from program facts: no path is executed.

In: program facts. Out: findings. May import: ``facts``, ``ir``, ``models``, ``checks``, ``config``, ``findings``, ``support``.
"""
