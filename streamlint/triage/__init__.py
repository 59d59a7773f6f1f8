"""Which findings of a run are reported: precedence, suppressions, baselines, changed lines, and what a finding is known by.

In: all findings of a run. Out: those that are reported.
May import: ``discovery``, ``frontends`` (comments), ``checks``, ``config``, ``findings``, ``support``.
"""
