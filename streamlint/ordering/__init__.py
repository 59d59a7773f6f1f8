"""Order: which operations of the host and of streams nothing orders. A pending operation is followed forward through the program.

In: the intermediate representation and program facts. Out: pairs of operations that no synchronization, event or stream orders.
May import: ``facts``, ``ir``, ``models``, ``operations``, ``findings``.
"""
