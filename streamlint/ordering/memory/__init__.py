"""Which memory a register means, what is touched of it, and where it is.

In: registers of a function, on a chain of calls. Out: memory behind pointers and views, its parts, its device, and who else may have it.
May import: ``places``, ``paths``, ``streams``.
"""
