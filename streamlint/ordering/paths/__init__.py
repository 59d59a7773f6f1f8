"""What a path knows: of conditions, of flags, of the calls that it has come by.

In: places, and the instructions of a path. Out: which branches it takes, and under which names it goes on in another function.
May import: ``places``.
"""
