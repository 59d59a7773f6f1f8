"""Readers of recorded runs; each gives a :class:`streamlint.trace.model.Trace`."""
