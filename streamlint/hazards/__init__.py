"""Hazards: one module for each rule, which finds what the rule reports in a program.

Each has ``RULE``, the check whose words it uses, and ``find``, which gives the findings of a `context.Context`.
In: `transfer`, `ordering`, program facts. Out: findings. May import: ``transfer``, ``ordering``, ``facts``, ``checks``, ``findings``.
"""
