"""Which stream is current, which one work is queued on, who chose it, and what else is queued there.

In: calls, and what paths know of streams and events. Out: streams by name, whether two may be one, what comes before and behind work.
May import: ``places``, ``paths``.
"""
