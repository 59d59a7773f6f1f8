"""Order: which operations of the host and of streams nothing orders. A pending operation is followed forward through the program.

In: the intermediate representation and program facts. Out: pairs of operations that no synchronization, event or stream orders.
Folders, each of which may import those before it: ``places``, ``paths``, ``streams``, ``memory``, ``walk``, ``null_stream``, ``captures``,
``threads``, ``races``.
May import: ``facts``, ``ir``, ``models``, ``transfer``, ``waits``, ``findings``.
"""
