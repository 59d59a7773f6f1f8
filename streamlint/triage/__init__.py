"""Which findings of a run are reported: precedence, suppressions, baselines, changed lines, and what a finding is known by."""
