"""Work on the null stream, and waits for it: whether anything is beside it, and whether the device is idle.

In: operations, and the streams around them. Out: whether such work is ordered with others, or holds them up.
May import: ``places`` to ``walk``.
"""
