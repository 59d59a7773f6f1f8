"""What the code of one function or file says by itself: instructions, abstract objects, what is stored and what counts.

In: the intermediate representation. Out: functions and classes with what their instructions say.
May import: ``ir``, ``models``.
"""
