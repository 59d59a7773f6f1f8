"""How code names an object, and where assignments, containers and iteration lead it.

In: instructions and the facts of their program. Out: places, by which an object is known before and after an instruction.
May import: ``facts``, ``transfer``, ``waits`` and what is below the whole folder.
"""
