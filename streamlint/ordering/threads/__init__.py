"""Threads, processes and devices: what runs beside what, with which lock, on which device.

In: threads, callbacks, entries from Python, collectives. Out: what they wait for, and what they share.
May import: ``places`` to ``walk``.
"""
