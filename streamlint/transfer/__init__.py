"""Transfer: what an instruction does to streams, events and memory, by model rows and by the language; one file for each kind of effect.

In: instructions and program facts. Out: `actions`. May import: ``facts``, ``ir``, ``models``.
"""
