"""Waits of the host in hot regions (SL020, SL021), decided from program facts: no path is executed."""
