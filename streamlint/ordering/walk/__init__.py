"""The walk: one pending operation is followed forward over all paths, into calls and back to callers.

In: an operation, and the names of what it uses. Out: what each kind of walk says of the actions that it meets.
May import: ``places``, ``paths``, ``streams``, ``memory``.
"""
